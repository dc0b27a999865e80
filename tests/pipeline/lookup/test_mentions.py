"""The finished mention table: candidates of a name, mentions of a text."""

from pathlib import Path

import pytest

from pipeline.lookup.mentions import MentionEntry, MentionTable, MentionTarget
from tests.support.manifests import write_manifest
from tests.support.mentions import finished_table

ROWS = [
    ("Paris", 3, "Paris", 6, 8, 10),
    ("Paris", None, "Paris (myth)", 2, 8, 10),
    ("new Paris", 3, "Paris", 1, 1, 1),
    ("日本", None, "Japan", 1, 1, 4),
]


@pytest.fixture
def table(tmp_path: Path) -> MentionTable:
    return finished_table(tmp_path, "fixed", ROWS[:2], ROWS[2:])


def test_names_are_looked_up(table: MentionTable) -> None:
    assert len(table) == 3
    candidates = (MentionTarget(3, "Paris", 6, 0.75), MentionTarget(None, "Paris (myth)", 2, 0.25))
    assert table.get("Paris") == MentionEntry("Paris", 8, 10, 0.8, candidates)
    assert table.get("日本") == MentionEntry("日本", 1, 4, 0.25, (MentionTarget(None, "Japan", 1, 1.0),))
    for name in ("", "Pari", "Paris ", "paris"):
        assert name not in table
        assert table.get(name) is None


def test_links_to_titles_are_those_of_all_names(table: MentionTable) -> None:
    assert table.links_to({"Paris", "Japan", "Nowhere"}) == {"Paris": 7, "Japan": 1}
    assert table.links_to(()) == {}


def test_mentions_of_a_text(table: MentionTable) -> None:
    text = "The new Paris, Parisian 日本, Paris"
    found = [(text[start:end], mention.name) for start, end, mention in table.find(text)]
    assert found == [(name, name) for name in ("new Paris", "日本", "Paris")]


def test_mentions_of_a_text_in_the_papers_profile(tmp_path: Path) -> None:
    """The names are folded, and so is the text; the spans are the text's."""
    rows = [("ete", 3, "Summer", 1, 1, 1), ("paris", 4, "Paris", 1, 1, 2)]
    text = "Ét\u0301é, new PÁRIS"
    found = finished_table(tmp_path, "paper", rows).find(text)
    assert [(text[start:end], mention.name) for start, end, mention in found] == [
        ("Ét\u0301é", "ete"),
        ("PÁRIS", "paris"),
    ]


def test_another_stages_folder_is_no_mention_table(tmp_path: Path) -> None:
    write_manifest(tmp_path, "ExtractPages")
    with pytest.raises(ValueError, match="made by ExtractPages; wanted the folder of BuildMentionTable"):
        MentionTable(str(tmp_path))


@pytest.mark.parametrize(
    ("language", "names", "text", "found"),
    [
        ("zh", ["电脑", "計算機"], "他用電腦和计算机，電腦和計算機。", ["電腦", "计算机", "電腦", "計算機"]),
        ("wuu", ["臺灣"], "台湾搭臺灣", ["台湾", "臺灣"]),
        ("sr", ["Београд", "Njegoš"], "Njegoš i Његош, Beograd, БЕОГРАД", ["Njegoš", "Његош", "Beograd"]),
        ("kk", ["Қазақстан"], "Qazaqstan және قازاقستان", ["Qazaqstan", "قازاقستان"]),
        ("ku", ["Kurdistan"], "لە کوردستان Kurdistan", ["کوردستان", "Kurdistan"]),
        ("uz", ["Oʻzbekiston"], "Ўзбекистон ва O'zbekiston", ["Ўзбекистон", "O'zbekiston"]),
        ("tg", ["Тоҷикистон"], "Toçikiston Тоҷикистон", ["Toçikiston", "Тоҷикистон"]),
        ("crh", ["Къырым"], "Qırım, Къырым", ["Qırım", "Къырым"]),
        ("iu", ["ᓄᓇᕗᑦ"], "Nunavut ᓄᓇᕗᑦ", ["Nunavut", "ᓄᓇᕗᑦ"]),
        ("shi", ["Agadir"], "ⴰⴳⴰⴷⵉⵔ Agadir", ["ⴰⴳⴰⴷⵉⵔ", "Agadir"]),
        ("ja", ["电脑"], "電腦と电脑", ["电脑"]),
    ],
)  # fmt: skip
def test_mentions_in_either_script_of_a_wiki(
    tmp_path: Path, language: str, names: list[str], text: str, found: list[str]
) -> None:
    rows = sorted((name, None, f"Page of {name}", 1, 1, 1) for name in names)
    table = finished_table(tmp_path, "fixed", rows, language=language)
    mentions = list(table.find(text))
    assert [text[start:end] for start, end, _ in mentions] == found
    assert {mention.candidates[0].title for *_, mention in mentions} == {f"Page of {name}" for name in names}
    assert all(table.get(each) is not None for each in found)
