"""Luigi parameters by concern: a stage inherits those that it and its upstream stages use.

`Stage.clone(Upstream)` hands common parameters on. A parameter that a stage lacks would take its default upstream of it
whatever the user says, so each class here inherits those of what comes before it; a test holds this for every stage.
"""

from typing import Any

import luigi

from model.luke.config import PRESETS
from model.pretraining.configuration import FLAGS
from model.pretraining.recipes import PRECISIONS, SCRATCH
from pipeline.dump.download import is_wiki_name
from workflows.base import machine, parameters
from workflows.base.parameters import AUTO


class RunSettings:
    """What every stage has."""

    workdir = parameters.Matching(
        r"(?!.*://).+",
        "a folder, and no URL; for a cluster one that all its machines see under the same path",
        default="work",
        description="folder of all stages, on a POSIX file system; for a cluster one that all its machines see under "
        "the same path",
    )


class DumpSettings:
    """The dump, for FetchDump and all downstream of it."""

    dump = parameters.Text(
        default="demo",
        description="a dump file, a glob of its parts, a URL, a wiki's name such as simplewiki or enwiki/20181220, "
        "or demo: the 206 pages that the package gensim ships",
    )
    allow_truncated = luigi.BoolParameter(
        description="take the whole pages of a dump that ends in the middle, and count the rest"
    )


class WorkerSettings:
    """Worker processes."""

    processes = parameters.WholeNumber(
        least=1,
        default=machine.processors(),
        significant=False,
        description="worker processes (Luigi's own --workers stays 1); default: the machine's processors that a "
        "container may use",
    )


class BeamSettings(WorkerSettings):
    """Where Beam jobs run."""

    beam_options = luigi.Parameter(
        default="",
        significant=False,
        description="options of another Beam runner, as '--runner=... --key=value'",
    )


class SparkSettings(WorkerSettings):
    """Where Spark jobs run, and how."""

    workdir: Any  # of RunSettings

    spark_master = parameters.Matching(
        r"|local(\[(\d+|\*)(, *\d+)?\])?|spark://[^:/]+:\d+.*|yarn|k8s://.+",
        "local, local[N], spark://HOST:PORT, yarn or k8s://...",
        default="",
        significant=False,
        description="URL of a Spark master; empty: local[processes]",
    )
    spark_conf = parameters.Pairs(
        r"spark\.[\w.-]+",
        "spark.NAME=VALUE, each name once",
        significant=False,
        description="a setting of Spark, as spark.executor.memory=8g; may be repeated",
    )
    scratch = luigi.Parameter(
        default="",
        significant=False,
        description="folder for what Spark sets aside while it works; empty: .scratch in the work directory",
    )


class BlockSettings(DumpSettings, BeamSettings):
    """ReadTemplates and its upstream stage: what cuts its work by the dump's size."""

    block_size = parameters.Size(
        or_auto=True,
        default=AUTO,
        description="bytes of the dump in a unit of work, as 4MiB; auto: by the dump's size",
    )


class PagesSettings(BlockSettings):
    """ExtractPages and its upstream stages."""

    profile = parameters.OneOf(
        "fixed",
        "paper",
        default="fixed",
        description="fixed: what is right; paper: what the paper's code did",
    )
    dump_templates = luigi.BoolParameter(
        description="show the simple ones of the dump's own templates, too; the dump is read twice"
    )
    max_rejected = parameters.Share(
        default=0.001, description="share of pages that may be rejected; ten may, if at most a quarter"
    )


class QidSettings(PagesSettings):
    """FetchQids and its upstream stages."""

    page_props = parameters.Text(
        default=AUTO,
        description="page_props.sql or .sql.gz of the same dump, which has the pages' items at Wikidata; none; auto: "
        "fetched with a dump that is named by its wiki, else none",
    )

    @property
    def has_qids(self) -> bool:
        """Whether there are items to fetch."""
        return is_wiki_name(self.dump) if self.page_props == AUTO else self.page_props != "none"


class PresetSettings:
    """Sizes."""

    preset = parameters.OneOf(
        AUTO,
        *PRESETS,
        default=AUTO,
        description="sizes of model, vocabularies and training; auto: tiny, or base around a --base-model",
    )
    base_model = parameters.Text(
        default=SCRATCH,
        description="scratch, or the RoBERTa or BERT that pretraining starts from: a folder, or a name at Hugging Face "
        "with or without @REVISION",
    )

    @property
    def named_preset(self) -> str:
        """The preset that is meant."""
        by_default = "tiny" if self.base_model == SCRATCH else "base"
        return by_default if self.preset == AUTO else str(self.preset)


class VocabularySettings(SparkSettings, QidSettings, PresetSettings):
    """BuildEntityVocab and its upstream stages."""

    vocab_size = parameters.WholeNumber(
        least=4,
        note=" ([PAD], [UNK], [MASK] and an entity)",
        or_auto=True,
        default=AUTO,
        description="entities in the vocabulary, the three special ones included; auto: the preset's",
    )
    min_count = parameters.WholeNumber(
        default=1, description="links that a page needs to be an entity of the vocabulary"
    )
    disambiguation = parameters.OneOf(
        "in", "out", default="in", description="whether disambiguation pages can be entities"
    )
    missing_pages = parameters.OneOf(
        "auto",
        "in",
        "out",
        default="auto",
        description="whether linked titles without a page in the dump can be entities, which makes sense for a part "
        "of a Wikipedia; auto: in the demo's alone",
    )
    white_list = luigi.Parameter(
        default="", description="file of titles, one a line, that are entities however rarely they are linked"
    )
    entity_vocab = luigi.Parameter(
        default="",
        description="a vocabulary to use instead of building one: .tsv or .jsonl of LUKE's releases, .json of "
        "transformers, .parquet or folder of BuildEntityVocab",
    )


class MentionSettings(VocabularySettings):
    """BuildMentionTable and its upstream stages."""

    min_links = parameters.WholeNumber(
        default=1, description="links that an anchor text needs to be in the mention table"
    )
    max_mention_characters = parameters.WholeNumber(
        least=1,
        default=100,
        description="longer anchor texts are not in the mention table (profile paper: 20 words)",
    )


class LinkingSettings(MentionSettings):
    """LinkDocuments and its upstream stages."""

    documents = luigi.Parameter(
        default="",
        description="folder of documents to link: JSON objects a line (.jsonl) or tables (.parquet)",
    )
    mentions = luigi.Parameter(
        default="",
        description="folder of a BuildMentionTable; empty: that of this dump, which is made if need be",
    )
    model = luigi.Parameter(
        default="",
        description="folder of a model with its tokenizer and entity_vocab.json (ExportHuggingFace's), which chooses "
        "what is meant, on processors; empty: counts choose",
    )
    contexts = luigi.Parameter(
        default="",
        description="folder of a BuildContexts of the same dump, by which the words of a document count; empty: none",
    )
    calibration = luigi.Parameter(
        default="",
        description="what `python -m tasks.entities calibrate` wrote for these mentions, contexts and model; "
        "empty: none",
    )
    min_probability = parameters.Share(
        default=0.0,
        description="links are left out where link probability of the name x probability of the page is lower",
    )
    min_link_probability = parameters.Share(
        default=0.01, description="names that are links less often in Wikipedia are not found"
    )


class TrainingSampleSettings(PagesSettings, PresetSettings):
    """TrainTokenizer and its upstream stages."""

    tokenizer_characters = parameters.WholeNumber(
        least=100_000,
        default=100_000_000,
        description="characters that a new tokenizer learns from, at most, in paragraphs by hash; Chinese, Japanese, "
        "Thai and other letters without blanks between words count 25 times",
    )


class TokenizerSettings(TrainingSampleSettings):
    """The tokenizer: a given one, the base model's, or one trained on the corpus."""

    tokenizer = luigi.Parameter(
        default="",
        description="folder of a tokenizer: RoBERTa's (vocab.json, merges.txt) or BERT's (tokenizer.json, vocab.txt); "
        "empty: the base model's, or a new one",
    )


class HeldOutSettings:
    """What tells the pages apart that pretraining never sees."""

    held_out = parameters.Share(
        default=0.01, description="share of pages, by hash, that pretraining never sees"
    )


class DocumentSettings(MentionSettings, HeldOutSettings):
    """BuildDocuments and its upstream stages."""

    train_documents = parameters.WholeNumber(
        default=10_000,
        description="pages, by hash, that become annotated documents to fine-tune a linker on, at most",
    )
    held_out_documents = parameters.WholeNumber(
        default=1_000, description="held-out pages, by hash, that become annotated documents, at most"
    )


class SequenceSettings(VocabularySettings, TokenizerSettings, HeldOutSettings):
    """BuildSequences and its upstream stages."""

    sentence_splitter = parameters.Text(
        default="sentencex",
        description="sentencex, or module:function of your own: (text, language) to spans in code points",
    )
    max_words = parameters.WholeNumber(
        least=1,
        or_auto=True,
        default=AUTO,
        description="word tokens of a sequence, [CLS] and [SEP] included; auto: 64 for the presets demo and "
        "small, or else 512",
    )
    max_entities = parameters.WholeNumber(least=1, default=128, description="entities of a sequence")
    max_mention_words = parameters.WholeNumber(
        least=1, default=30, description="word tokens of a mention; further ones are cut off"
    )
    min_sentence_words = parameters.WholeNumber(
        least=1, default=5, description="word tokens below which a sentence is dropped"
    )
    # Lists and captions are full of sentences below the paper's five tokens: 4 to 10 % in English dumps.
    max_dropped_sentences = parameters.Share(
        default=0.2, description="share of sentences that may be dropped for their length"
    )

    annotated = luigi.Parameter(
        default="", description="folder of a LinkDocuments, whose texts become sequences, too"
    )
    annotated_place = parameters.OneOf(
        "beside",
        "instead",
        default="beside",
        description="whether the texts of --annotated come beside the dump's",
    )

    @property
    def named_max_words(self) -> int:
        """The words of a sequence that are meant."""
        by_default = 64 if self.named_preset in ("demo", "small") else 512
        return by_default if self.max_words == AUTO else int(self.max_words)


def of_recipe(name: str, prefix: str = "") -> Any:
    """The parameter for a single value of pretraining's recipe; `auto` is what the file or the preset says."""
    flag = FLAGS[name]
    options: dict[str, Any] = {"or_auto": True, "default": AUTO, "description": f"{prefix}{flag.text}"}
    item: parameters.Worded
    for_one = {} if flag.each_phase else options
    if flag.kind is int:
        item = parameters.WholeNumber(least=int(flag.least), **for_one)
    elif isinstance(flag.kind, tuple):
        item = parameters.OneOf(*flag.kind, **for_one)
    else:
        item = (parameters.PositiveNumber if flag.each_phase else parameters.Share)(**for_one)
    return parameters.ListOf(item, repeats=True, **options) if flag.each_phase else item


class RecipeSettings:
    """What is pretrained, and how: values over those of the preset."""

    recipe = luigi.Parameter(
        default="", description="TOML file of values of pretraining over the preset's; single ones go over it"
    )
    steps = of_recipe("steps")
    warmup_steps = of_recipe("warmup_steps")
    phases = of_recipe("phases")
    weight_decay = of_recipe("weight_decay")
    dropout = of_recipe("dropout")
    masked_words = of_recipe("masked_words")
    layers = of_recipe("layers")
    hidden_size = of_recipe("hidden_size")


class PeakSettings:
    """What pretraining and fine-tuning both have, in stages of pretraining."""

    learning_rate = of_recipe("learning_rate")
    batch_size = of_recipe("batch_size")


class EntitySettings:
    """What a recipe says of entities."""

    masked_entities = of_recipe("masked_entities")
    entity_width = of_recipe("entity_width")
    entity_head = of_recipe("entity_head")
    entity_start = of_recipe("entity_start")


class PretrainingSettings(SequenceSettings, RecipeSettings):
    """PretrainRoberta and its upstream stages; Pretrain needs those of the mention table and of entities, too."""

    seed = parameters.WholeNumber(default=42, description="seed of training")
    tokens_per_batch = parameters.WholeNumber(
        default=0,
        description="words and entities that training computes at once; 0: a number of sequences, or, in pretraining "
        "on a GPU, what its memory takes",
    )
    precision = parameters.OneOf(
        AUTO,
        *PRECISIONS,
        default=AUTO,
        description="of the matrix products of pretraining and fine-tuning; auto: what --recipe says, or bf16 for "
        "pretraining on a GPU or a processor that has it, else float32",
    )
    gradient_checkpointing = luigi.BoolParameter(
        description="less memory for more work, in pretraining and fine-tuning"
    )
    tracker = luigi.Parameter(
        default="",
        significant=False,
        description="module:function of your own, which gets (figures, step) of training as TensorBoard does",
    )
    loader_workers = parameters.WholeNumber(
        or_auto=True,
        default=AUTO,
        significant=False,
        description="processes that prepare pretraining's batches; auto: two for a GPU, else none",
    )
    checkpoint_minutes = parameters.WholeNumber(
        default=30, significant=False, description="minutes between training's checkpoints, at most"
    )
    device = parameters.Matching(
        r"auto|cpu|cuda(:\d+)?",
        "auto, cpu, cuda or cuda:N",
        default=AUTO,
        significant=False,
        description="auto, cpu, cuda or cuda:N, for training",
    )


class LukeSettings(MentionSettings, EntitySettings, PretrainingSettings):
    """Pretrain and its upstream stages."""


class EvaluationSettings(DocumentSettings):
    """What EvaluateLinking has beside Pretrain."""

    linking_documents = parameters.WholeNumber(
        least=1,
        or_auto=True,
        default=AUTO,
        description="documents, by hash, whose mentions the pretrained model links, at most, of held-out pages and of "
        "--linking-gold each; as many other held-out pages choose the calibration; auto: 20 for the presets tiny and "
        "demo, or else 200",
    )
    linking_gold = luigi.Parameter(
        default="",
        description="file of annotated documents of your own, in any of the formats that tasks.entities reads, whose "
        "mentions are linked, too",
    )
    leave_out_pages = luigi.BoolParameter(
        description="leave out those of --linking-gold whose id is the title of a page of the dump, from which the "
        "model may know them"
    )
