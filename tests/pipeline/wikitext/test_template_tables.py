"""The tables of the wikis' languages on their most frequent templates."""

import pytest

from pipeline.mediawiki.languages import read_table
from pipeline.mediawiki.site import SiteInfo
from pipeline.wikitext.extract import extract
from pipeline.wikitext.templates.table import TemplateTable, silent

TABLES = read_table("templates")

LARGEST = (
    *("en", "de", "fr", "es", "ja", "ru", "pt", "it", "zh", "ar", "fa", "pl", "nl"),
    *("sv", "uk", "he", "vi", "id", "ko", "tr", "cs", "hu", "ca", "fi", "no", "ro"),
)
SHOWN = [
    ("en", "Merkel ({{née|Kasner}}; {{nee|X}})", "Merkel (née Kasner; née X)"),
    ("en", "He fell ({{age|1969|07|20}} years ago) here.", "He fell here."),
    ("en", "{{nq|some words}} {{Nihongo4|Emi|エミ|Emi}}", "some words Emi (エミ, Emi)"),
    ("en", "{{Dash year|1943|1945}} {{C$|5}}", "1943–1945"),
    ("en", "{{Carbon}}<sub>n</sub>{{Hydrogen}}<sub>2n+2</sub>, {{hydrogen|2}}{{oxygen}}", "CnH2n+2, H2O"),
    ("de", "({{enS|Hamburg}}, {{RuS|Гамбург}})", "(englisch Hamburg, russisch Гамбург)"),
    ("de", "es liegt {{Höhe|115|DE-NHN}} hoch", "es liegt 115 m hoch"),
    ("fr", "il est {{référence souhaitée|né ici}} et{{refnec}} l'an", "il est né ici et l'an"),
    ("fr", "l'an 5 {{av. J.-C.}}", "l'an 5 av. J.-C."),
    ("fr", "{{n°|5}}, {{p.|12}}, {{M.|Dupont}}, {{nobr|dix ans}}", "no 5, p. 12, M. Dupont, dix ans"),
    ("fr", "mot{{,}} mot {{de}}", "mot mot"),
    ("it", "Dice {{Citazione necessaria|che fu qui}} ieri", "Dice che fu qui ieri"),
    ("it", "a {{TA|18256}} {{m s.l.m.}}", "a 18 256 m s.l.m."),
    ("it", "{{numero|188520}}, 10{{Exp|3}}, 300 {{a.C.}}", "188 520, 10³, 300 a.C."),
    ("es", "{{siglo|XX}} y {{unidad|1500|km}} {{cita requerida|dicen}}", "siglo XX y 1500 km dicen"),
    ("pt", "{{séc|XX}}, {{dtlink|5|5|1990}}, {{fmtn|12345.6}}", "século XX, 5 de maio de 1990, 12 345,6"),
    ("nl", "{{eeuw|19}} {{datum|5|3|1990}} {{Bron?|dit}}", "19e eeuw 5 maart 1990 dit"),
    ("pl", "{{j|de|Berlin}} {{wysokość|1234}} {{fakt|to}}", "Berlin 1234 m n.p.m. to"),
    ("ru", "{{lang-en|London}}, {{число|12345}}", "англ. London, 12 345"),
    ("uk", "{{lang-de|Wien}}; {{число|1234567}}", "нім. Wien; 1 234 567"),
    ("ja", "{{読み仮名|東京|とうきょう}}は{{要出典範囲|首都}}", "東京（とうきょう）は首都"),
    ("zh", "{{link-de|边境总督|Markgraf}}和{{tsl|en|Item|條目}}", "边境总督和條目"),
    ("ar", "{{وإو|مقالة|en|Item}} {{قرن|19}}", "مقالة القرن 19"),
    ("fa", "{{به انگلیسی|London}}", "به انگلیسی: London"),
    ("sv", "{{datum|1|6|1990}} {{formatnum:12345}}", "1 juni 1990 12 345"),
    ("he", "{{מאה|19}} {{אנ|London}}", "המאה ה-19 London"),
    ("vi", "{{thế kỷ|19}} ({{lang-en|Hanoi}})", "thế kỷ 19 (tiếng Anh: Hanoi)"),
    ("id", "{{abad|19}}, {{Rp|5.000}}", "abad ke-19, Rp5.000"),
    ("ko", "{{llang|de|Berlin}}, {{날짜|1990|5|3}}", "Berlin, 1990년 5월 3일"),
    ("tr", "{{yüzyıl|19}}, {{MÖ|300}}", "19. yüzyıl, MÖ 300"),
    ("cs", "{{vjazyce2|de|Wien}} a {{století|19}}", "Wien a 19. století"),
    ("hu", "{{szám|180000}} és {{század|19}}", "180 000 és 19. század"),
    ("ca", "al {{segle|XIII|s}} o {{Segle|XX}}", "al segle XIII o XX"),
    ("fi", "{{k-en|London}}, {{lähde?|näin}}", "engl. London, näin"),
    ("no", "{{århundre|19}} {{dato|5|3|1990}}", "19. århundre 5 mars 1990"),
    ("ro", "{{conversie|22|–|25|C|F}}, {{secol|XX}}", "22–25 °C (72–77 °F), secolul XX"),
    ("lt", "({{de|Berlin}})", "(vok. Berlin)"),
    ("lv", "({{val|de|Berlin}})", "(Berlin)"),
    ("eo", "{{daton|18|januaro|1791}}", "la 18-an de januaro 1791"),
    ("sk", "{{km|70}}, {{m|5}}", "70 km, 5"),
]
# What a wiki without a rule of its own means by a name is not known: nothing wrong is shown.
NOTHING_WRONG = [
    ("{{val|de|Berlin}}", "Berlin"),
    ("{{convert|de|Berlin}}", "Berlin"),
    ("{{e|Berlin}}", "Berlin"),
    ("{{frac|a text of many letters}}", "text"),
    ("{{age|Berlin}}", "Berlin"),
]


@pytest.mark.parametrize(("language", "source", "shown"), SHOWN)
def test_what_a_template_shows_in_its_wiki(language: str, source: str, shown: str) -> None:
    site = SiteInfo(language, f"{language}wiki", "first-letter", ((0, ""),))
    assert " ".join(extract(source, site).texts) == shown


@pytest.mark.parametrize(("source", "wrong"), NOTHING_WRONG)
@pytest.mark.parametrize("language", ["en", "lv", "gl", "xx"])
def test_a_rule_shows_nothing_wrong(language: str, source: str, wrong: str) -> None:
    if (language, source) == ("lv", NOTHING_WRONG[0][0]):
        return  # which has a rule of its own
    site = SiteInfo(language, f"{language}wiki", "first-letter", ((0, ""),))
    assert not any(wrong in text for text in extract(f"a {source} b", site).texts)


@pytest.mark.parametrize("language", LARGEST)
def test_the_largest_wikis_have_tables(language: str) -> None:
    table, own = TemplateTable(SiteInfo(language, "", "first-letter", ())), TABLES[language]
    names = {name for names in own.get("forms", {}).values() for name in names} | set(own.get("text", {}))
    assert sum(table.find(name)[1] not in (None, silent) for name in names) >= 40
    assert len(own["months"]) == 12
