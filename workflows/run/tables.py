"""The tables of a run file: each option with its type, its check, its help and its flag, declared once."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from model.luke.config import check_type
from model.pretraining.recipes import HELP, SCRATCH, STEPS_AND_RATES, TYPES, as_list, as_typed
from tasks.finetuning.variants import VARIANTS, WEIGHTS
from tasks.presets import DROPOUT
from workflows.run.kinds import (
    AUTO,
    DROPOUT_RATE,
    POSITIVE_NUMBER,
    SEED_NUMBER,
    SHARE,
    SIZE,
    SWITCH,
    TEXT,
    Kind,
    Option,
    literal,
    many,
    matching,
    one_of,
    option,
    path,
    table,
    unhashed_option,
    whole_number,
)

TASKS = ("entity_typing", "relation_classification", "ner", "cloze_qa", "extractive_qa")
SEED = 42
_WIKI_NAMES = r"demo|\w+wik\w+(/\d{8})?"
_RECIPE_FLAGS = {name: f"--{name.replace('_', '-')}" for name in ("steps", "batch_size", "learning_rate")}


_WORDS_OF_TYPES = {int: "a whole number", float: "a number", bool: "true or false", str: "a word"}


@dataclass(frozen=True)
class Corpus:
    """The dump, its pages, and the tables that are counted from them."""

    dump: str = option(
        "demo",
        path(r"[^,]+(,[^,]+)*", "a file, a URL or a wiki's name", no_path=_WIKI_NAMES, is_several=True),
        "a dump file, a glob of its parts, a URL, a wiki's name such as simplewiki or enwiki/20181220, or demo: the "
        "206 pages that the package gensim ships; wikis of several languages with commas between them",
        flag="--dump",
    )
    profile: str = option(
        "fixed",
        one_of("fixed", "paper"),
        "fixed does what is right, paper what the paper's code did, in the corpus, pretraining and fine-tuning",
        flag="--profile",
    )
    allow_truncated: bool = option(
        False, SWITCH, "take the whole pages of a dump that ends in the middle, and count the rest"
    )
    block_size: Any = option(AUTO, SIZE, "bytes of the dump or of documents in a unit of work; auto: by size")
    dump_templates: bool = option(
        False, SWITCH, "show the simple ones of the dump's own templates, too; the dump is read twice"
    )
    wiki_rules: str = option(
        "",
        path(no_path="none", is_several=True),
        "your own rules for the wiki: templates, tags, namespaces, scripts, prefixes (docs/tutorials/your-wiki.md); of "
        "several wikis a file or none for each",
        flag="--wiki-rules",
    )
    max_rejected: float = unhashed_option(
        0.001, SHARE, "share of pages that may be rejected; ten may, if at most a quarter"
    )
    page_props: str = option(
        AUTO,
        path(r"[^,]+(,[^,]+)*", "a file, none or auto", no_path="none|auto", is_several=True),
        "page_props.sql or .sql.gz of the same dump, which has the pages' items at Wikidata; none; auto: fetched with "
        "a dump that is named by its wiki, else none; of several wikis one for each, or one word for all",
    )
    vocab_size: int = option(
        AUTO, whole_number(4), "entities in the vocabulary, the three special ones included; auto: the preset's"
    )
    missing_pages: str = option(
        AUTO,
        one_of("in", "out"),
        "whether linked titles without a page in the dump can be entities, which makes sense for a part of a "
        "Wikipedia; auto: in the demo's alone",
    )
    entity_vocab: str = option(
        "",
        path(),
        "a vocabulary to use instead of building one: .tsv or .jsonl of LUKE's releases, .json of transformers, "
        ".parquet or folder of BuildEntityVocab",
    )
    update_from: str = option(
        "",
        path(),
        "an earlier model of the same wiki that gets this dump's new entities instead of a pretraining: its work "
        "directory, or the folder of its ExportHuggingFace or BuildLinker",
        flag="--update-from",
    )
    held_out: float = option(0.01, SHARE, "share of pages, by hash, that pretraining never sees")
    min_languages: int = option(
        1, whole_number(1), "of several wikis, how many have to have a page for an entity; mLUKE has 3"
    )

    interlanguage_links: bool = option(
        False,
        SWITCH,
        "of several old wikis, tell pages of one entity by the links to other languages in their text, as before "
        "Wikidata; in place of page_props",
    )

    @cached_property
    def wikis(self) -> tuple["Corpus", ...]:
        """The corpus of each wiki. Raises: ValueError: a field of files has not as many values."""
        fields = ("dump", "page_props", "wiki_rules")
        given = {name: [each.strip() for each in getattr(self, name).split(",")] for name in fields}
        if (count := len(given["dump"])) == 1:
            return (self,)
        for name, values in given.items():
            if len(values) not in (1, count):
                raise ValueError(
                    f"corpus.{name} {getattr(self, name)}: names {len(values)} files for {count} dumps; give one for "
                    "each, or none"
                )
        wikis = ({name: values[wiki % len(values)] for name, values in given.items()} for wiki in range(count))
        return tuple(replace(self, **values) for values in wikis)


@dataclass(frozen=True)
class Sequences:
    """The tokenizer, and sequences of word and entity ids."""

    tokenizer: str = option(
        "",
        path(),
        "folder of a tokenizer: RoBERTa's (vocab.json, merges.txt), BERT's (tokenizer.json, vocab.txt) or XLM-R's "
        "(tokenizer.json, sentencepiece.bpe.model); empty: the base model's, or a new one",
    )
    tokenizer_size: int = option(AUTO, whole_number(300), "tokens of a new tokenizer; auto: the preset's")
    tokenizer_characters: int = option(
        100_000_000,
        whole_number(100_000),
        "characters that a new tokenizer learns from, at most, in paragraphs by hash; Chinese, Japanese, Thai and "
        "other letters without blanks between words count 25 times",
    )
    sentence_splitter: str = option(
        "sentencex",
        matching(".+", "sentencex or module:function"),
        "sentencex, or module:function of your own: (text, language) to spans in code points",
    )
    max_words: int = option(
        AUTO, whole_number(1), "word tokens of a sequence, [CLS] and [SEP] included; auto: the preset's"
    )
    # Lists and captions are full of sentences below the paper's five word tokens: 4 to 10 % in English dumps.
    max_dropped_sentences: float = unhashed_option(0.2, SHARE, "share of sentences dropped for their length")
    language_exponent: float = option(
        0.7, SHARE, "of several wikis, the power of a wiki's number of sequences by which pretraining draws from it"
    )
    annotated: str = option("", path(), "folder of a LinkDocuments, whose texts become sequences, too")
    annotated_place: str = option(
        "beside",
        one_of("beside", "instead"),
        "whether the texts of annotated come beside the dump's, or instead of them",
    )


@dataclass(frozen=True)
class Pretraining:
    """Pretraining: where it starts, and the values of its recipe over the preset's."""

    base_model: str = option(
        SCRATCH,
        path(".+", "scratch, a folder or a name", no_path=SCRATCH),
        "scratch, or the RoBERTa or BERT that pretraining starts from: a folder, or a name at Hugging Face with or "
        "without @REVISION",
        flag="--base-model",
    )
    seed: int = option(SEED, SEED_NUMBER, "seed of pretraining", flag="--seed")
    recipe: Mapping[str, Any] = field(default_factory=dict)
    """The values that RECIPE declares; in the file they stand in the table itself."""


def _of_recipe(name: str) -> Option:
    """A value of a recipe, or one for each phase."""

    def of_text(words: str) -> Any:
        return [literal(word.strip()) for word in words.split(",")] if "," in words else literal(words)

    of_one = str if name == "phases" else float if name == "betas" else TYPES[name]
    takes_list = name in (*STEPS_AND_RATES, "betas")

    def read(value: Any) -> Any:
        found = as_typed(name, value)
        for each in as_list(found) if takes_list else [found]:
            check_type(name, each, of_one)
        return found

    one = _WORDS_OF_TYPES[of_one]
    wanted = "a list of two numbers" if name == "betas" else f"{one}, or a list of such" if takes_list else one
    several = "; one for all phases, or one for each" if name in ("learning_rate", "warmup_steps") else ""
    return Option(Kind(wanted, read, of_text), f"{HELP[name]}{several}", _RECIPE_FLAGS.get(name, ""))


RECIPE: Mapping[str, Option] = {name: _of_recipe(name) for name in HELP}


@dataclass(frozen=True)
class FineTuning:
    """Fine-tuning, the search for its hyperparameters, and the grid of experiments."""

    data: Mapping[str, str] = option(
        {},
        table(path(no_path="none"), TASKS),
        "for each task the folder of its train, dev and test files, or none; a task that is not named takes the "
        "project's examples",
        flag="--data",
    )
    weights: Mapping[str, str] = option(
        {},
        table(path(), WEIGHTS),
        "for each kind of weights a folder or a name at Hugging Face (ours, pretrained or fine-tuned, or transformers' "
        "LUKE, RoBERTa or BERT); those that are not named are the run's own",
    )
    preset: str = option(
        AUTO,
        one_of("tiny", "demo", "small-encoder", "base", "large"),
        "hyperparameters; auto: those for the width of given weights (from 768 on base, from 1024 on large, below "
        "small-encoder), or else those of the run's preset",
    )
    learning_rate: Any = option(
        AUTO,
        POSITIVE_NUMBER,
        "peak learning rate; the classifier's changes in proportion, unless it is given",
        flag="--learning-rate",
    )
    head_learning_rate: Any = option(AUTO, POSITIVE_NUMBER, "peak learning rate of the classifier")
    batch_size: Any = option(AUTO, whole_number(1), "examples of a step", flag="--batch-size")
    epochs: Any = option(AUTO, whole_number(1), "passes over the training data", flag="--epochs")
    dropout: float = option(DROPOUT, DROPOUT_RATE, "of the whole model, whatever it was pretrained with")
    patience: int = option(
        0, whole_number(), "epochs in a row without a better score on dev that end training; 0: none do"
    )
    tokens_per_batch: int = option(
        0, whole_number(), "words and entities that training computes at once; 0: a number of examples"
    )
    precision: str = option(AUTO, one_of("float32", "bf16"), "of the matrix products; auto: float32")
    gradient_checkpointing: bool = option(False, SWITCH, "less memory for more work")
    negative_label: str = option(
        "", TEXT, "the relation that means none and is not scored; empty: no_relation, Other, NA or None, if there"
    )
    tag_column: str = option(
        "",
        TEXT,
        "where files of ner have the tags: a column's number (from 1, or -1 for the last) or its name in the first "
        "line, a field of JSON or a table, a key in MISC of CoNLL-U; empty: the last column, ner_tags or NER",
    )
    mentions: str = option(
        "",
        path(),
        "folder of the mention table that finds the entities of extractive_qa; empty: the run's own, and none beside "
        "given weights",
    )
    allow_no_predictions: bool = unhashed_option(
        False, SWITCH, "let a model pass that predicts nothing on dev and test, as preset tiny does"
    )
    drop_weights: bool = option(False, SWITCH, "keep scores and predictions, not the fine-tuned weights")
    tasks: tuple[str, ...] = option(TASKS, many(one_of(*TASKS)), "tasks of the grid")
    variants: tuple[str, ...] = option(
        ("luke", "roberta_extra_training"),
        many(one_of(*VARIANTS)),
        "variants of the grid: rows of tasks/finetuning/variants.py",
    )
    seeds: tuple[int, ...] = option((SEED,), many(SEED_NUMBER), "seeds of the grid")
    tuned: bool = option(
        False,
        SWITCH,
        "take the learning rate, batch size and epochs that the stage Tune finds (a grid for each task but "
        "extractive_qa, which the paper did not tune, and each variant)",
    )
    learning_rates: tuple[float, ...] = option((1e-5, 2e-5, 3e-5), many(POSITIVE_NUMBER), "peak learning rates of Tune")
    batch_sizes: tuple[int, ...] = option((4, 8, 16, 32, 64), many(whole_number(1)), "batch sizes of Tune")
    epoch_counts: tuple[int, ...] = option((2, 3, 5), many(whole_number(1)), "epochs of Tune")
    tuning_patience: int = option(
        2, whole_number(), "epochs in a row without a better score on dev that end a fine-tuning of Tune; 0: none do"
    )


@dataclass(frozen=True)
class Linking:
    """Entity linking: documents of one's own, and the evaluation of a linker."""

    documents: str = option(
        "", path(), "folder of documents to link: JSON objects a line (.jsonl) or tables (.parquet)"
    )
    linker: str = option(
        "", path(), "folder of a BuildLinker, all of whose parts link, on processors; empty: counts of links choose"
    )
    mentions: str = option("", path(), "BuildMentionTable folder by which counts choose; empty: this dump's")
    min_probability: float = option(
        0.0,
        SHARE,
        "links are left out where link probability of the name (with ner: of the mention, by that model) x "
        "probability of the page is lower",
    )
    min_link_probability: float = option(0.01, SHARE, "names that are links less often are not found")
    ner: str = option(
        "",
        path(),
        "folder of a fine-tuned model of ner, which finds names in place of the mention table, on processors; empty: "
        "none",
    )
    language: str = option(
        "",
        TEXT,
        "the wiki's code of the documents' language, by whose rules ner parts sentences; none: a line is one; empty: "
        "that of the mention table",
    )
    evaluated: int = option(
        AUTO,
        whole_number(1),
        "documents, by hash, whose mentions EvaluateLinking links, at most, of held-out pages and of gold each; as "
        "many other held-out pages choose the calibration; auto: the preset's",
    )
    gold: str = option(
        "",
        path(),
        "file of annotated documents of your own, in any of the formats that tasks.linking reads, whose mentions are "
        "linked, too",
    )
    leave_out_pages: bool = option(
        False,
        SWITCH,
        "leave out those of gold whose id is the title of a page of the dump, from which the model may know them",
    )


@dataclass(frozen=True)
class Machine:
    """The place and the means of the computation; what stages write does not depend on it."""

    processes: Any = unhashed_option(
        AUTO, whole_number(1), "worker processes; auto: the processors that a container may use", flag="--processes"
    )
    device: str = unhashed_option(
        AUTO,
        matching(r"cpu|cuda(:\d+)?", "cpu, cuda or cuda:N"),
        "auto, cpu, cuda or cuda:N, for training",
        flag="--device",
    )
    spark_master: str = unhashed_option(
        "",
        matching(
            r"|local(\[(\d+|\*)(, *\d+)?\])?|spark://[^:/]+:\d+.*|yarn|k8s://.+",
            "local, local[N], spark://HOST:PORT, yarn or k8s://...",
        ),
        "URL of a Spark master; empty: local[processes]",
        flag="--spark-master",
    )
    spark_conf: Mapping[str, str] = unhashed_option(
        {},
        table(matching(".*", "a text"), pattern=r"spark\.[\w.-]+", wanted='of "spark.NAME" = "VALUE"'),
        "settings of Spark, as spark.executor.memory",
    )
    beam_options: str = unhashed_option("", TEXT, "of another Beam runner, as '--runner=... --key=value'")
    scratch: str = unhashed_option(
        "", path(), "folder for what Spark sets aside while it works; empty: .scratch in the work directory"
    )
    checkpoint_minutes: int = unhashed_option(30, whole_number(), "minutes between checkpoints, at most")
    tracker: str = unhashed_option(
        "", TEXT, "module:function of your own, which gets (figures, step) of training as TensorBoard does"
    )


TABLES: Mapping[str, type[Any]] = {
    "corpus": Corpus,
    "sequences": Sequences,
    "pretraining": Pretraining,
    "fine_tuning": FineTuning,
    "linking": Linking,
    "machine": Machine,
}
