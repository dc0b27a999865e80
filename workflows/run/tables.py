"""The tables of a run file: each option with its type, default, check and flag; `help.toml` says what each is."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from model.luke.config import check_type
from model.pretraining.recipes import HELP, SCRATCH, STEPS_AND_RATES, TYPES, as_list, as_typed
from tasks.finetuning.variants import VARIANTS, WEIGHTS
from tasks.presets import DROPOUT
from workflows.run import kinds
from workflows.run.kinds import AUTO, SHARE, SWITCH, TEXT, Kind, Option, option, path, unhashed_option, whole_number

TASKS = ("entity_typing", "relation_classification", "ner", "cloze_qa", "extractive_qa")
SEED = 42
_MASTERS = r"|local(\[(\d+|\*)(, *\d+)?\])?|spark://[^:/]+:\d+.*|yarn|k8s://.+"
_WIKI_NAMES = r"demo|\w+wik\w+(/\d{8})?"
_SEVERAL = r"[^,]+(,[^,]+)*"
_RECIPE_FLAGS = {name: f"--{name.replace('_', '-')}" for name in ("steps", "batch_size", "learning_rate")}


_WORDS_OF_TYPES = {int: "a whole number", float: "a number", bool: "true or false", str: "a word"}


@dataclass(frozen=True)
class Corpus:
    """The dump, its pages, and the tables that are counted from them."""

    dump: str = option(
        "demo", path(_SEVERAL, "a file, a URL or a wiki's name", no_path=_WIKI_NAMES, is_several=True), flag="--dump"
    )
    profile: str = option("fixed", kinds.one_of("fixed", "paper"), flag="--profile")
    allow_truncated: bool = option(False, SWITCH)
    block_size: Any = option(AUTO, kinds.SIZE)
    dump_templates: bool = option(False, SWITCH)
    wiki_rules: str = option("", path(no_path="none", is_several=True), flag="--wiki-rules")
    max_rejected: float = unhashed_option(0.001, SHARE)
    page_props: str = option(AUTO, path(_SEVERAL, "a file, none or auto", no_path="none|auto", is_several=True))
    vocab_size: int = option(AUTO, whole_number(4))
    missing_pages: str = option(AUTO, kinds.one_of("in", "out"))
    entity_vocab: str = option("", path())
    update_from: str = option("", path(), flag="--update-from")
    held_out: float = option(0.01, SHARE)
    min_languages: int = option(1, whole_number(1))
    interlanguage_links: bool = option(False, SWITCH)

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

    tokenizer: str = option("", path())
    tokenizer_size: int = option(AUTO, whole_number(300))
    tokenizer_characters: int = option(100_000_000, whole_number(100_000))
    sentence_splitter: str = option("sentencex", kinds.matching(".+", "sentencex or module:function"))
    max_words: int = option(AUTO, whole_number(1))
    # Lists and captions are full of sentences below the paper's five word tokens: 4 to 10 % in English dumps.
    max_dropped_sentences: float = unhashed_option(0.2, SHARE)
    language_exponent: float = option(0.7, SHARE)
    annotated: str = option("", path())
    annotated_place: str = option("beside", kinds.one_of("beside", "instead"))


@dataclass(frozen=True)
class Pretraining:
    """Pretraining: where it starts, and the values of its recipe over the preset's."""

    base_model: str = option(SCRATCH, path(".+", "scratch, a folder or a name", no_path=SCRATCH), flag="--base-model")
    seed: int = option(SEED, kinds.SEED_NUMBER, flag="--seed")
    recipe: Mapping[str, Any] = field(default_factory=dict)
    """The values that RECIPE declares; in the file they stand in the table itself."""


def _of_recipe(name: str) -> Option:
    """A value of a recipe, or one for each phase."""

    def of_text(words: str) -> Any:
        return [kinds.literal(word.strip()) for word in words.split(",")] if "," in words else kinds.literal(words)

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
    return Option(Kind(wanted, read, of_text), _RECIPE_FLAGS.get(name, ""), help=f"{HELP[name]}{several}")


RECIPE: Mapping[str, Option] = {name: _of_recipe(name) for name in HELP}


@dataclass(frozen=True)
class FineTuning:
    """Fine-tuning, the search for its hyperparameters, and the grid of experiments."""

    data: Mapping[str, str] = option({}, kinds.table(path(no_path="none"), TASKS), flag="--data")
    weights: Mapping[str, str] = option({}, kinds.table(path(), WEIGHTS))
    preset: str = option(AUTO, kinds.one_of("tiny", "demo", "small-encoder", "base", "large"))
    learning_rate: Any = option(AUTO, kinds.POSITIVE_NUMBER, flag="--learning-rate")
    head_learning_rate: Any = option(AUTO, kinds.POSITIVE_NUMBER)
    batch_size: Any = option(AUTO, whole_number(1), flag="--batch-size")
    epochs: Any = option(AUTO, whole_number(1), flag="--epochs")
    dropout: float = option(DROPOUT, kinds.DROPOUT_RATE)
    patience: int = option(0, whole_number())
    tokens_per_batch: int = option(0, whole_number())
    precision: str = option(AUTO, kinds.one_of("float32", "bf16"))
    gradient_checkpointing: bool = option(False, SWITCH)
    negative_label: str = option("", TEXT)
    tag_column: str = option("", TEXT)
    mentions: str = option("", path())
    allow_no_predictions: bool = unhashed_option(False, SWITCH)
    drop_weights: bool = option(False, SWITCH)
    tasks: tuple[str, ...] = option(TASKS, kinds.many(kinds.one_of(*TASKS)))
    variants: tuple[str, ...] = option(("luke", "roberta_extra_training"), kinds.many(kinds.one_of(*VARIANTS)))
    seeds: tuple[int, ...] = option((SEED,), kinds.many(kinds.SEED_NUMBER))
    tuned: bool = option(False, SWITCH)
    learning_rates: tuple[float, ...] = option((1e-5, 2e-5, 3e-5), kinds.many(kinds.POSITIVE_NUMBER))
    batch_sizes: tuple[int, ...] = option((4, 8, 16, 32, 64), kinds.many(whole_number(1)))
    epoch_counts: tuple[int, ...] = option((2, 3, 5), kinds.many(whole_number(1)))
    tuning_patience: int = option(2, whole_number())


@dataclass(frozen=True)
class Linking:
    """Entity linking: documents of one's own, and the evaluation of a linker."""

    documents: str = option("", path())
    linker: str = option("", path())
    mentions: str = option("", path())
    min_probability: float = option(0.0, SHARE)
    min_link_probability: float = option(0.01, SHARE)
    ner: str = option("", path())
    language: str = option("", TEXT)
    evaluated: int = option(AUTO, whole_number(1))
    gold: str = option("", path())
    leave_out_pages: bool = option(False, SWITCH)


@dataclass(frozen=True)
class Machine:
    """The place and the means of the computation; what stages write does not depend on it."""

    processes: Any = unhashed_option(AUTO, whole_number(1), flag="--processes")
    device: str = unhashed_option(AUTO, kinds.matching(r"cpu|cuda(:\d+)?", "cpu, cuda or cuda:N"), flag="--device")
    spark_master: str = unhashed_option(
        "", kinds.matching(_MASTERS, "local, local[N], spark://HOST:PORT, yarn or k8s://..."), flag="--spark-master"
    )
    spark_conf: Mapping[str, str] = unhashed_option(
        {}, kinds.table(kinds.matching(".*", "a text"), pattern=r"spark\.[\w.-]+", wanted='of "spark.NAME" = "VALUE"')
    )
    beam_options: str = unhashed_option("", TEXT)
    scratch: str = unhashed_option("", path())
    checkpoint_minutes: int = unhashed_option(30, whole_number())
    tracker: str = unhashed_option("", TEXT)


TABLES: Mapping[str, type[Any]] = {
    "corpus": Corpus,
    "sequences": Sequences,
    "pretraining": Pretraining,
    "fine_tuning": FineTuning,
    "linking": Linking,
    "machine": Machine,
}
