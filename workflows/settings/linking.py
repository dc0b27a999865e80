"""Entity linking: documents of one's own, documents and sentences of a dump, and the evaluation of a linker."""

import luigi

from workflows.base import parameters
from workflows.base.parameters import AUTO
from workflows.settings.corpus import HeldOutSettings, VocabularySettings


class LinkingSettings(VocabularySettings):
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
        description="folder of a BuildContexts of the same dump, by which the words and other mentions of a document "
        "count; empty: none",
    )
    calibration = luigi.Parameter(
        default="",
        description="what `python -m tasks.linking calibrate` wrote for these mentions, contexts and model; "
        "empty: none",
    )
    min_probability = parameters.Share(
        default=0.0,
        description="links are left out where link probability of the name (with --ner: of the mention, by that model) "
        "x probability of the page is lower",
    )
    min_link_probability = parameters.Share(
        default=0.01, description="names that are links less often in Wikipedia are not found"
    )
    ner = luigi.Parameter(
        default="",
        description="folder of a fine-tuned model of ner, which finds names in place of the mention table, on "
        "processors; empty: none",
    )
    language = luigi.Parameter(
        default="",
        description="the wiki's code of the documents' language, by whose rules --ner parts sentences; none: a line "
        "is one; empty: that of the mention table",
    )


class EvaluationSettings(VocabularySettings, HeldOutSettings):
    """EvaluateLinking, beside Pretrain."""

    linking_documents = parameters.WholeNumber(
        least=1,
        or_auto=True,
        default=AUTO,
        description="documents, by hash, whose mentions are linked, at most, of held-out pages and of "
        "--linking-gold each; as many other held-out pages choose the calibration; auto: 20 for the presets tiny and "
        "demo, or else 200",
    )
    linking_gold = luigi.Parameter(
        default="",
        description="file of annotated documents of your own, in any of the formats that tasks.linking reads, whose "
        "mentions are linked, too",
    )
    leave_out_pages = luigi.BoolParameter(
        description="leave out those of --linking-gold whose id is the title of a page of the dump, from which the "
        "model may know them"
    )
