"""The dump, its pages, and the tables that are counted from them."""

import luigi

from model.luke.config import PRESETS
from model.pretraining.recipes import SCRATCH
from pipeline.dump.download import is_wiki_name
from workflows.base import parameters
from workflows.base.parameters import AUTO
from workflows.settings.engines import BeamSettings, SparkSettings


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
        """Return whether there are items to fetch."""
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
        """The preset; auto by the base model."""
        by_default = "tiny" if self.base_model == SCRATCH else "base"
        return by_default if self.preset == AUTO else str(self.preset)


class VocabularySettings(SparkSettings, QidSettings, PresetSettings):
    """BuildEntityVocab and its upstream stages."""

    vocab_size = parameters.WholeNumber(
        least=4,
        or_auto=True,
        default=AUTO,
        description="entities in the vocabulary, the three special ones included; auto: the preset's",
    )
    missing_pages = parameters.OneOf(
        "auto",
        "in",
        "out",
        default="auto",
        description="whether linked titles without a page in the dump can be entities, which makes sense for a part "
        "of a Wikipedia; auto: in the demo's alone",
    )
    entity_vocab = luigi.Parameter(
        default="",
        description="a vocabulary to use instead of building one: .tsv or .jsonl of LUKE's releases, .json of "
        "transformers, .parquet or folder of BuildEntityVocab",
    )


class HeldOutSettings:
    """The pages that pretraining never sees."""

    held_out = parameters.Share(
        default=0.01, description="share of pages, by hash, that pretraining never sees"
    )
