import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.mediawiki.site import SiteInfo
from pipeline.mediawiki.titles import is_disambiguation, normalize_title, redirect_target

NAMESPACES = ((0, ""), (1, "Talk"), (4, "Wikipedia"), (6, "File"), (10, "Template"), (14, "Category"), (100, "Portal"))
ENGLISH = SiteInfo("en", "enwiki", "first-letter", NAMESPACES)
WIKTIONARY = SiteInfo("en", "enwiktionary", "case-sensitive", NAMESPACES)


@pytest.mark.parametrize(
    ("raw", "title", "fragment"),
    [
        ("Port Sorrel", "Port Sorrel", ""),
        ("  gull \t  Bay\n", "Gull Bay", ""),
        (" : gull Bay", "Gull Bay", ""),
        ("Gull Bay#School_house", "Gull Bay", "School house"),
        ("#Notes", "", "Notes"),
        ("Tern%20Rock", "Tern Rock", ""),
        ("Caf%C3%A9", "Café", ""),
        ("100%", "100%", ""),
        ("AT&amp;T", "AT&T", ""),
        ("A&#000000066;&#x00000043;", "ABC", ""),
        ("A&nbsp;B", "A B", ""),
        ("A\u00a0\u2003B", "A B", ""),
        ("\u200eRock\u200f", "Rock", ""),
        ("cafe\u0301", "Café", ""),
        ("ßtraße", "ßtraße", ""),
        ("ǆ", "Ǆ", ""),
        ("ა", "ა", ""),
        ("category: islands", "Category:Islands", ""),
        ("image:rock.jpg", "File:Rock.jpg", ""),
        ("Star: A film", "Star: A film", ""),
        ("", "", ""),
    ],
)
def test_titles_are_read_as_mediawiki_reads_them(raw: str, title: str, fragment: str) -> None:
    assert normalize_title(raw, ENGLISH) == (title, fragment)


def test_case_sensitive_wikis_keep_the_first_letter() -> None:
    assert normalize_title("quay", WIKTIONARY) == ("quay", "")
    assert normalize_title("category:quay", WIKTIONARY) == ("Category:quay", "")


@given(st.text(max_size=40))
def test_normal_titles_stay_as_they_are(raw: str) -> None:
    title, _ = normalize_title(raw, ENGLISH)
    if "%" not in title and "&" not in title and not title.startswith(":"):
        assert normalize_title(title, ENGLISH) == (title, "")


@pytest.mark.parametrize(
    ("language", "text", "target"),
    [
        ("en", "#REDIRECT [[Port Sorrel]]", ("Port Sorrel", "")),
        ("en", "\n #redirect: [[port_Sorrel#Light house|x]]\n{{R}}", ("Port Sorrel", "Light house")),
        ("en", "#REDIRECT[[Port Sorrel]]", ("Port Sorrel", "")),
        ("en", "#WEITERLEITUNG [[Port Sorrel]]", None),
        ("de", "#WEITERLEITUNG [[Port Sorrel]]", ("Port Sorrel", "")),
        ("de", "#REDIRECT [[Port Sorrel]]", ("Port Sorrel", "")),
        ("fr", "#REDIRECTION [[Port]]", ("Port", "")),
        ("ja", "#転送 [[港]]", ("港", "")),
        ("ja", "＃転送[[港]]", ("港", "")),
        ("ja", "＃リダイレクト [[港]]", ("港", "")),
        ("ja", "＃REDIRECT [[港]]", None),
        ("zh", "＃重定向 [[港口]]", None),
        ("en", "＃REDIRECT [[Port]]", None),
        ("en", "# redirect [[Port]] when the tide is low\n# [[Quay]]", None),
        ("en", "# REDIRECT [[Port]]", None),
        ("en", "#\nREDIRECT [[Port]]", None),
        ("de", "# Weiterleitung [[Hafen]]", None),
        ("en", "\n\n#REDIRECT\n[[Port]]", ("Port", "")),
        ("en", "#Redirect [[Port]] when the tide is low", ("Port", "")),
        ("af", "#AANSTUUR [[Hawe]]", ("Hawe", "")),
        ("lv", "#PĀRADRESĀCIJA [[Osta]]", ("Osta", "")),
        ("fr", "#AANSTUUR [[Port]]", None),
        ("en", "# [[Port Sorrel]]", None),
        ("en", "#REDIRECT Port Sorrel", None),
        ("en", "Text #REDIRECT [[Port Sorrel]]", None),
        ("en", "#REDIRECT [[#x]]", None),
        ("en", "", None),
    ],
)
def test_redirects(language: str, text: str, target: tuple[str, str] | None) -> None:
    site = SiteInfo(language, "", "first-letter", NAMESPACES)
    assert redirect_target(text, site) == target


@pytest.mark.parametrize(
    "text",
    [
        "{{disambiguation}}",
        "a\n{{ Disambig \n}}",
        "{{Template:Geodis}}",
        "{{place_name disambiguation}}",
        "{{Begriffsklärung}}",
        "__DISAMBIG__",
        "a __BEGRIFFSKLÄRUNG__",
        "<!-- a --> {{dab}} <!-- b",
    ],
)
def test_disambiguation_pages(text: str) -> None:
    assert is_disambiguation(text, ENGLISH)


@pytest.mark.parametrize(
    ("language", "template"),
    [
        ("tt", "Күп мәгънәләр"), ("km", "ណែនាំ"), ("pms", "Gestion dj'omònim"), ("pa", "ਗੁੰਝਲ-ਖੋਲ੍ਹ"), ("vls", "Db"),
        ("zh-yue", "搞清楚"), ("zh-min-nan", "Khu-pia̍t"),
    ],
)  # fmt: skip
def test_disambiguation_pages_of_languages(language: str, template: str) -> None:
    site = SiteInfo(language, "", "first-letter", NAMESPACES)
    for text in (f"a\n{{{{{template}}}}}", f"{{{{ {template.lower().replace(' ', '_')} |a=b}}}}"):
        assert is_disambiguation(text, site)


@pytest.mark.parametrize(
    "text",
    [
        "{{db}}",
        "{{disambiguation needed}}",
        "_HOMONYMIE_ __TOC__",
        "<!-- __PEKER__ -->",
        "<!-- {{disambig}} -->",
        "disambig",
        "{{Infobox|disambig}}",
        "<!-- {{dab}}",
    ],
)
def test_other_pages(text: str) -> None:
    assert not is_disambiguation(text, ENGLISH)
