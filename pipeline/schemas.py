"""Every table that a stage writes: its columns, and what each of them means.

A meaning is for people and for the documentation; none is written into a file.
"""

from collections.abc import Mapping
from typing import NamedTuple

import pyarrow as pa


class Table(NamedTuple):
    """A table's schema, and for each column a few words on what it holds."""

    schema: pa.Schema
    meanings: Mapping[str, str]


def _table(*columns: tuple[str, pa.DataType, str]) -> Table:
    schema = pa.schema([(name, kind) for name, kind, _ in columns])
    return Table(schema, {name: meaning for name, _, meaning in columns})


# ReadTemplates

DUMP_TEMPLATES = _table(
    (
        "template",
        pa.string(),
        "name without the namespace, its first letter small if its case does not matter",
    ),
    ("text", pa.string(), "what stands where it is used: text, parameters, links, tags inside a line"),
    ("redirect", pa.string(), "name of the template that it redirects to; empty where it is none"),
)

# ExtractPages

ANNOTATIONS = pa.list_(pa.struct([("start", pa.int32()), ("end", pa.int32()), ("target", pa.string())]))

PAGES = _table(
    ("page_id", pa.int64(), "the page's number in its wiki"),
    ("title", pa.string(), "normalised title"),
    ("is_disambiguation", pa.bool_(), "whether its templates say that it is a disambiguation page"),
    ("paragraph_count", pa.int32(), "its paragraphs"),
)
PARAGRAPHS = _table(
    ("page_id", pa.int64(), "the page's number in its wiki"),
    ("title", pa.string(), "the page's title"),
    ("paragraph", pa.int32(), "the paragraph's number within its page, from 0"),
    ("section", pa.string(), "the heading above it; empty before the first heading"),
    ("text", pa.string(), "running text without markup"),
    (
        "links",
        ANNOTATIONS,
        "its links: start and end in code points of the text, half open; the title that it leads to",
    ),
)
REDIRECTS = _table(
    ("source", pa.string(), "title of the redirect"),
    ("target", pa.string(), "title that it leads to"),
    ("fragment", pa.string(), "section of the target; empty for the page itself"),
)
_FAILURE = (
    ("reason", pa.string(), "why it was rejected; an unexpected error by its kind"),
    ("message", pa.string(), "what an unexpected error said; empty for other reasons"),
    (
        "traceback",
        pa.string(),
        "the calls that led to the error, the innermost last; once for each kind of error in a block",
    ),
)
REJECTED = _table(
    ("page_id", pa.int64(), "the page's number in its wiki; 0 where it cannot be read"),
    ("title", pa.string(), "its title as far as it can be read"),
    *_FAILURE,
)
TEMPLATES = _table(
    (
        "template",
        pa.string(),
        "name of a template whose text in running text was lost, without the namespace; or `<name>` of a tag that is "
        "not known, which stays in the text; one row a block of pages",
    ),
    ("uses", pa.int64(), "how often it stood there"),
    ("words", pa.int64(), "words in its source, which need not all be shown"),
    ("links", pa.int64(), "links in its source"),
    ("example", pa.string(), "its first use, at most 120 characters"),
)

# FetchQids

QIDS = _table(
    ("page_id", pa.int64(), "the page's number in its wiki"), ("qid", pa.string(), "its item at Wikidata")
)
DISAMBIGUATIONS = _table(
    ("page_id", pa.int64(), "the number of a disambiguation page, by page_props; more certain than pages")
)

# ResolveRedirects

TITLES = _table(
    (
        "title",
        pa.string(),
        "title of a page or of a redirect, or a linked one that a page has in another script",
    ),
    ("canonical", pa.string(), "title at which its redirects end; none for a loop"),
    ("hops", pa.int32(), "redirects on the way; 0 for a page, none for a loop"),
    ("status", pa.string(), "page, redirect, variant, loop, or missing: it ends at a title that has no page"),
)

# ResolveLinks

LINKS = _table(
    ("page_id", pa.int64(), "number of the page that has the link"),
    ("mention", pa.string(), "anchor text"),
    ("title", pa.string(), "title of the target, after redirects; as written for a loop"),
    ("status", pa.string(), "of the target, as in titles; missing where the dump does not have it"),
)

# BuildEntityVocab

ENTITIES = _table(
    ("entity_id", pa.int32(), "the entity's id; 0 to 2 are [PAD], [UNK] and [MASK]"),
    ("title", pa.string(), "title of its page"),
    ("link_count", pa.int64(), "links that end at it, after redirects"),
    ("page_id", pa.int64(), "the page's number in its wiki; -1 where there is no page"),
    ("qid", pa.string(), "the page's item at Wikidata; none where none is known"),
)

# BuildMentionTable

MENTIONS = _table(
    ("mention", pa.string(), "anchor text of links; lower-cased and without accents in profile paper"),
    ("entity_id", pa.int32(), "the target's id in the entity vocabulary; none where it is not in it"),
    ("title", pa.string(), "title of the target"),
    ("link_count", pa.int64(), "links with this anchor to this target"),
    ("total_links", pa.int64(), "links with this anchor"),
    ("occurrences", pa.int64(), "places where the mention occurs; in profile paper, pages"),
    ("link_probability", pa.float64(), "total_links / occurrences, at most 1"),
    ("commonness", pa.float64(), "link_count / total_links: the prior of this target"),
)
_CANDIDATE = pa.struct([("entity_id", pa.int32()), ("title", pa.string()), ("link_count", pa.int64())])
CANDIDATES = _table(
    ("mention", pa.string(), "as in mentions"),
    ("total_links", pa.int64(), "as in mentions"),
    ("occurrences", pa.int64(), "as in mentions"),
    ("link_probability", pa.float64(), "as in mentions"),
    ("candidates", pa.list_(_CANDIDATE), "its targets, the most linked first, ties by title"),
)
_NAME = pa.struct([("mention", pa.string()), ("title", pa.string())])
PAGE_NAMES = _table(
    ("page", pa.string(), "title of a page"),
    ("names", pa.list_(_NAME), "each mention that links to one title from this page, with that title"),
    ("ambiguous", pa.int32(), "mentions left out: from this page they link to several titles"),
)

# Beside the entity vocabulary, since a linker answers with pages that are not in it, too.
TARGETS = _table(
    ("title", pa.string(), "title of a page, or of another target of links, after redirects"),
    ("page_id", pa.int64(), "the page's number in its wiki; -1 where the dump has no page"),
    ("entity_id", pa.int32(), "the id in the entity vocabulary; none where it is not in it"),
    ("qid", pa.string(), "the page's item at Wikidata; none where none is known"),
)

# BuildContexts

CONTEXTS = _table(
    ("title", pa.string(), "title of a page, or of another target of links, after redirects"),
    (
        "words",
        pa.list_(pa.string()),
        "the words on its page and around links to it, the fifty heaviest, by falling weight",
    ),
    ("weights", pa.list_(pa.float32()), "the weight of each word; as a vector they have the length 1"),
)
CONTEXT_ROWS = _table(
    ("words", pa.list_(pa.int32()), "as in contexts, by their rows in words.arrow"),
    ("weights", pa.list_(pa.float32()), "as in contexts"),
)
WORDS = _table(
    ("word", pa.string(), "a word without its case; the row is its number"),
    ("paragraphs", pa.int64(), "paragraphs that have it"),
)

VECTOR_SIZE = 64
PAGE_TITLES = _table(
    ("page_id", pa.int64(), "the page's number in its wiki"),
    (
        "titles",
        pa.list_(pa.int32()),
        "its own title and those that it links to, after redirects, by their rows in contexts.arrow; they rise",
    ),
)
TITLE_VECTORS = _table(
    (
        "vector",
        pa.list_(pa.float16(), VECTOR_SIZE),
        "near those of titles that stand on pages of the same kind; as long as the title is rare; "
        "the row is the title's in contexts.arrow",
    )
)

# LinkDocuments: the columns of ExtractPages

_NUMBER = "the document's number, below 0, by its id"
DOCUMENTS = Table(
    PAGES.schema,
    {**PAGES.meanings, "page_id": _NUMBER, "title": "the document's id", "is_disambiguation": "always false"},
)
DOCUMENT_PARAGRAPHS = Table(
    PARAGRAPHS.schema,
    {
        **PARAGRAPHS.meanings,
        "page_id": _NUMBER,
        "title": "the document's id",
        "paragraph": "the paragraph's number within its document, from 0: a line that is not blank",
        "section": "always empty",
        "text": "the line, without blanks around it",
    },
)
REJECTED_DOCUMENTS = Table(
    REJECTED.schema,
    {
        **REJECTED.meanings,
        "page_id": "the document's number; 0 where it cannot be read",
        "title": "its id; empty where it cannot be read",
        "message": "file, line and what is wrong there, or what an unexpected error said",
    },
)

# BuildSequences

LOST_PAGES = _table(("page_id", pa.int64(), "the page's number in its wiki"), *_FAILURE)


def word_id(word_vocab_size: int) -> pa.DataType:
    """The type of word ids: 16 bits wide where the vocabulary allows it."""
    return pa.uint16() if word_vocab_size <= 1 << 16 else pa.int32()


def sequences(word_vocab_size: int) -> Table:
    """The table of sequences."""
    return _table(
        ("word_ids", pa.list_(word_id(word_vocab_size)), "ids of word tokens, without [CLS] and [SEP]"),
        ("entity_ids", pa.list_(pa.int32()), "the entity of each annotation, in their order"),
        ("entity_starts", pa.list_(pa.int16()), "where each mention begins: its first position in word_ids"),
        ("entity_ends", pa.list_(pa.int16()), "where each mention ends: the position behind its last"),
        ("page_id", pa.int64(), "the page that the sequence is from"),
    )


def title_words(word_vocab_size: int) -> Table:
    """The table of the words of entities' titles."""
    words = pa.list_(word_id(word_vocab_size))
    return _table(
        ("title", pa.string(), "the entity's title; the row is its id"),
        ("title_word_ids", words, "ids of the title's word tokens; none for [PAD], [UNK] and [MASK]"),
        (
            "name_word_ids",
            words,
            "the same without what tells it apart: in brackets at the end, behind a comma",
        ),
    )


WORD_STARTS = _table(
    ("word_start", pa.bool_(), "whether a word begins with this token; the row is the token's id")
)

# Pretrain

_LABELS = pa.list_(pa.int32())
COMMONEST = _table(
    ("commonest", _LABELS, "the commonest entity of each annotation's text; -1 where the text links to none"),
    ("commonest_known", _LABELS, "the commonest one that is in the vocabulary"),
)

# By stage, and by the folder or file that holds the table.
TABLES: Mapping[str, Mapping[str, Table]] = {
    "ReadTemplates": {"templates": DUMP_TEMPLATES},
    "ExtractPages": {
        "pages": PAGES,
        "paragraphs": PARAGRAPHS,
        "redirects": REDIRECTS,
        "rejected": REJECTED,
        "templates": TEMPLATES,
    },
    "FetchQids": {"qids": QIDS, "disambiguations": DISAMBIGUATIONS},
    "ResolveRedirects": {"titles": TITLES},
    "ResolveLinks": {"links": LINKS},
    "BuildEntityVocab": {"entity_vocab.parquet": ENTITIES},
    "BuildMentionTable": {
        "mentions": MENTIONS,
        "page_names": PAGE_NAMES,
        "targets": TARGETS,
        "candidates.arrow": CANDIDATES,
    },
    "BuildContexts": {
        "contexts": CONTEXTS,
        "contexts.arrow": CONTEXT_ROWS,
        "words.arrow": WORDS,
        "page_titles": PAGE_TITLES,
        "vectors.arrow": TITLE_VECTORS,
    },
    "LinkDocuments": {"pages": DOCUMENTS, "paragraphs": DOCUMENT_PARAGRAPHS, "rejected": REJECTED_DOCUMENTS},
    "BuildSequences": {
        "sequences": sequences(1 << 16),
        "held_out": sequences(1 << 16),
        "rejected": LOST_PAGES,
        "word_starts.arrow": WORD_STARTS,
        "title_words.arrow": title_words(1 << 16),
    },
    "Pretrain": {"commonest.arrow": COMMONEST},
}
