"""Candidates of mentions, by brute force over the oracle's tables."""

from collections import Counter
from pathlib import Path

import pytest

pytest.importorskip("marisa_trie", reason="mention tables are read with marisa-trie")

from pipeline.lookup.mentions import MentionTable
from tasks.linking.candidates import NO_LINKS, CandidateFinder
from tasks.linking.documents.document import Document, Mention
from tasks.linking.guesses import DOCUMENT, EXACT, LETTERS, NONE, TITLE, Candidates
from tests.support import DATA
from tests.support import oracle_tables as oracle
from tests.support.mentions import Table, pages_of_dump, small_pages, write_mentions
from tests.support.oracle_tables import Pages, Row


@pytest.fixture(scope="module", params=["fixed", "paper"])
def made(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Table, MentionTable]:
    folder = tmp_path_factory.mktemp("mentions")
    table = write_mentions(folder, pages_of_dump(DATA / "wiki-40.xml", 1 << 20), request.param, size=12)
    return table, MentionTable(str(folder))


def by_force(table: Table, text: str, most: int) -> tuple[str, list[tuple[str, int | None, float]]]:
    """The step and the candidates by loops over all rows."""
    ids = {row["title"]: row["entity_id"] for row in table.targets}
    named = oracle.fold(text) if table.profile == "paper" else text
    rows = [row for row in table.mentions if row["mention"] == named]
    if rows:
        rows.sort(key=lambda row: (-row["link_count"], row["title"]))
        return EXACT, [(row["title"], row["entity_id"], row["commonness"]) for row in rows[:most]]
    ends = {title: oracle.follow(title, table.titles)[0] for title in {*table.titles, *ids}}
    ends = {title: end for title, end in ends.items() if end in ids}
    for title in (text, text[:1].upper() + text[1:]):
        if title in ends:
            return TITLE, [(ends[title], ids[ends[title]], 1.0)]
    letters = oracle.letters_of(text)
    links, total = Counter[str](), 0
    for name in {row["mention"] for row in table.mentions if letters and oracle.letters_of(row["mention"]) == letters}:
        rows = [row for row in table.mentions if row["mention"] == name]
        total += rows[0]["total_links"]
        links.update({row["title"]: row["link_count"] for row in rows})
    reached = {end for title, end in ends.items() if letters and oracle.letters_of(title) == letters}
    links.update(reached)
    total += len(reached)
    ranked = sorted(links, key=lambda title: (-links[title], title))[:most]
    return LETTERS if ranked else NONE, [(title, ids[title], links[title] / total) for title in ranked]


def links_by_force(table: Table, text: str, step: str) -> int:
    """Of how many links the candidates are; a title is one, as each title that has the same letters."""
    if step in (TITLE, NONE):
        return int(step == TITLE)
    if step == EXACT:
        named = oracle.fold(text) if table.profile == "paper" else text
        return sum(row["link_count"] for row in table.mentions if row["mention"] == named)
    letters = oracle.letters_of(text)
    ends = {
        oracle.follow(title, table.titles)[0]
        for title in {*table.titles, *(row["title"] for row in table.targets)}
        if oracle.letters_of(title) == letters
    }
    names = sum(row["link_count"] for row in table.mentions if oracle.letters_of(row["mention"]) == letters)
    return names + len(ends & {row["title"] for row in table.targets})


@pytest.mark.parametrize("most", [1, 2, 30])
def test_candidates_are_those_of_loops(made: tuple[Table, MentionTable], most: int) -> None:
    """Of all names and titles as they are, in other cases, with signs, and without."""
    table, mentions = made
    finder, steps = CandidateFinder(mentions, most), Counter[str]()
    texts = {row["mention"] for row in table.mentions} | set(table.titles)
    texts |= {change(text) for text in texts for change in (str.upper, str.lower, "{}.".format, lambda t: t[1:])}
    for text in sorted(texts - {""}):
        found = finder.of(text)
        step, expected = by_force(table, text, most)
        assert found.step == step, text
        assert [each[:2] for each in found.items] == [each[:2] for each in expected], text
        assert [each.prior for each in found.items] == pytest.approx([each[2] for each in expected])
        assert found.links == links_by_force(table, text, step)
        steps[step] += 1
        if step == NONE:  # so that guesses look in neither way again
            assert finder._title(text, NO_LINKS) == finder._letters(text, NO_LINKS) == ((), 0)
    assert set(steps) == {EXACT, TITLE, LETTERS, NONE}
    assert finder.of("   ") == finder.of("") == Candidates(NONE, ())


def test_own_links_are_taken_out_as_if_the_page_had_none(made: tuple[Table, MentionTable], tmp_path: Path) -> None:
    """Of all names and titles, beside a table that is built of other links; a third of the pages is the document."""
    table, mentions = made
    pages = pages_of_dump(DATA / "wiki-40.xml", 1 << 20)
    own, others = (
        [row for row in pages.paragraphs if bool(row["page_id"] % 3) == is_other] for is_other in (False, True)
    )
    write_mentions(tmp_path, Pages(pages.pages, pages.redirects, [others]), table.profile, size=12)
    expected = CandidateFinder(MentionTable(str(tmp_path)))

    finder = CandidateFinder(mentions)
    [without] = finder.own_links([document_of(own)])
    assert without.alone
    texts = {row["mention"] for row in table.mentions} | set(table.titles)
    texts |= {change(text) for text in texts for change in (str.upper, "{}.".format)}
    texts -= {""}
    changed, steps = 0, Counter[str]()
    for text in texts:
        [found] = finder.of_document([text], without)
        [right] = expected.of_document([text])
        assert (found.step, found.links) == (right.step, right.links), text
        # Guesses are ranked by the vocabulary, which the other table has of its own.
        assert {each.title: each.guess for each in found.items} == {each.title: each.guess for each in right.items}
        assert {each.title: each.prior for each in found.items if not each.guess} == pytest.approx(
            {each.title: each.prior for each in right.items if not each.guess}
        ), text
        changed += found != finder.of_document([text])[0]
        steps[right.step] += 1
    assert changed > 20
    assert set(steps) > {EXACT, TITLE, LETTERS, NONE}


def document_of(paragraphs: list[Row]) -> Document:
    """Pages as a document, whose mentions are its links."""
    text, mentions = "", []
    for row in paragraphs:
        mentions += [
            Mention(len(text) + link["start"], len(text) + link["end"], link["target"]) for link in row["links"]
        ]
        text += row["text"] + "\n"
    return Document("here", "page", text, tuple(mentions), (0, len(text)))


def test_own_links_are_those_of_the_tables_dump(made: tuple[Table, MentionTable]) -> None:
    row = made[0].mentions[0]
    text = row["mention"] + " "
    mentions = tuple(
        Mention(len(text) * n, len(text) * (n + 1) - 1, row["title"]) for n in range(row["link_count"] + 1)
    )
    document = Document("file:3", "a", text * len(mentions), mentions, (0, 1))
    with pytest.raises(
        ValueError, match=rf"file:3: 'a' links '.+' to .* {len(mentions)} times, all of .* times.*leave out --own-links"
    ):
        CandidateFinder(made[1]).own_links([document])
    assert CandidateFinder(made[1]).own_links([]) == []


def test_names_with_the_same_letters_are_counted_whole(tmp_path: Path) -> None:
    """B is the second of each name, and the first of both together."""
    links = {"nn": ["A", "A", "A", "B", "B"], "NN": ["C", "C", "C", "B", "B"]}
    articles = [
        (" ".join([name] * len(ends)), [(3 * place, 2, end) for place, end in enumerate(ends)])
        for name, ends in links.items()
    ]
    write_mentions(tmp_path, small_pages([*articles, ("", [])]))
    finder = CandidateFinder(MentionTable(str(tmp_path)), most=1)
    assert [finder.of(name).items[0].title for name in ("nn", "NN", "N.N.")] == ["A", "C", "B"]


def test_what_follows_a_hash_is_no_part_of_a_page(made: tuple[Table, MentionTable]) -> None:
    """A link to "A#b" leads to A, but a text "A#b" does not name it; underscores are blanks."""
    table, mentions = made
    finder = CandidateFinder(mentions)
    title = next(row["title"] for row in table.targets if " " in row["title"])
    assert finder.of(title.replace(" ", "_")).step == TITLE
    assert finder.of(f"{title}#part").step != TITLE


def test_shorter_mentions_take_over_what_longer_ones_stand_for(made: tuple[Table, MentionTable]) -> None:
    """ "PS" is no name of the dump; "Port Sorrel" is."""
    finder = CandidateFinder(made[1])
    assert finder.of("PS").step == NONE
    named, *acronyms = finder.of_document(["Port Sorrel", "PS", "PS"])
    assert named == finder.of("Port Sorrel")
    assert {each.step for each in acronyms} == {DOCUMENT}
    assert acronyms[0].items[0].title == named.items[0].title
