"""The evaluation of the pretrained model on entity linking, and the linker in one folder."""

from pathlib import Path
from typing import Any

from pipeline import storage
from tasks.linking.corpora import evaluation, folder, pages
from tasks.linking.open import CALIBRATION, LinkerSettings, open_linker
from workflows.base import terminal
from workflows.base.stage import Result, Stage
from workflows.stages.linking.documents import BuildDocuments, documents_identity
from workflows.stages.pages import CorpusStage
from workflows.stages.pretraining import ExportHuggingFace, Pretrain, TorchStage, own_model
from workflows.stages.tables import BuildContexts, BuildMentionTable, DiffDumps

SCORES = "scores.json"


class EvaluateLinking(TorchStage):
    """The evaluation of the pretrained model on mentions of held-out pages, and of annotated documents of one's own.

    `scores.json` has the figures of four methods: the commonest page (`prior`), that and the words of the document
    (`contexts`), both and the model with each mention for itself (`local`), and with one mention answered after the
    other (`global`), whose answers are kept. Other held-out pages choose a calibration for each.
    The model is the exported one, so that they are for it; one that cannot be exported is taken as it was pretrained.
    """

    FOLDER = "linking"
    VERSION = 17
    wiki = CorpusStage.wiki
    KEEPS = "unfinished"  # answers and calibrations
    TABLES = (*TorchStage.TABLES, "linking")

    def requires(self) -> dict[str, Stage]:
        stages = self.cloned(BuildDocuments, BuildMentionTable, BuildContexts)
        stages |= self.cloned(DiffDumps) if self.settings.corpus.update_from else {}
        model = self.model_stage()
        return stages | {type(model).__name__: model} | self.tokenizer_requires()

    def model_stage(self) -> Pretrain | ExportHuggingFace:
        """The stage that makes the model."""
        pretrain = own_model(self)
        return self.clone(ExportHuggingFace, lite=False) if pretrain.has_released_head() else pretrain

    def bytes_parameters(self) -> dict[str, Any]:
        gold = {}
        if self.settings.linking.gold:
            gold = {"gold": documents_identity(self.settings.linking.gold, "linking.gold")}
            gold |= self.values("linking", "leave_out_pages")
        return {"documents": self.settings.linking.evaluated, "tokenizer": self.tokenizer_identity(), **gold}

    def work(self) -> Result:
        parts = LinkerSettings(
            mentions=self.clone(BuildMentionTable).folder,
            contexts=self.clone(BuildContexts).folder,
            model=self.model_stage().folder,
            tokenizer=self.tokenizer_folder(),
            device=self.device(),
        )
        linker = open_linker(parts)
        settings = evaluation.EvaluationSettings(
            held_out=Path(self.clone(BuildDocuments).folder) / pages.FILE,
            gold=Path(self.settings.linking.gold) if self.settings.linking.gold else None,
            most=self.settings.linking.evaluated,
            leaves_out_pages=self.settings.linking.leave_out_pages,
            first_new=self.clone(DiffDumps).manifest().facts["first_new"] if self.settings.corpus.update_from else None,
        )
        with terminal.progress_bar(self.title, unit="document") as show:
            return evaluation.build(self.folder, linker, settings, progress=show)

    def headline(self, manifest: storage.Manifest) -> str:
        return "; ".join(map(_headline, self.read_json(SCORES)["sets"])) or "no held-out document"


class BuildLinker(TorchStage):
    """The linker in one folder: the look-ups, contexts, the model with its tokenizer, and calibrations.

    Its files are those of the other stages, by another name where the file system allows it, or copies. `linker.json`
    has the dump, sizes, and scores on held-out pages.
    """

    FOLDER = "linker"
    wiki = CorpusStage.wiki
    TABLES = EvaluateLinking.TABLES
    UPSTREAM = (BuildMentionTable, BuildContexts, EvaluateLinking)

    def requires(self) -> dict[str, Stage]:
        model = self.clone(EvaluateLinking).model_stage()
        return {**super().requires(), type(model).__name__: model} | self.tokenizer_requires()

    def bytes_parameters(self) -> dict[str, Any]:
        return {"tokenizer": self.tokenizer_identity()}

    def work(self) -> Result:
        from pipeline.sequences.tokenizer import copy_tokenizer

        evaluation = self.clone(EvaluateLinking)
        model = evaluation.model_stage()
        stages = {
            "mentions": self.clone(BuildMentionTable), "contexts": self.clone(BuildContexts), "model": model
        }  # fmt: skip
        parts = {
            name: (each.folder, [storage.MANIFEST, *(file.path for file in each.manifest().files)])
            for name, each in stages.items()
        }
        if isinstance(model, ExportHuggingFace):
            inner = storage.join(model.folder, "model")
            parts["model"] = inner, storage.list_files(inner)
        else:
            copy_tokenizer(self.tokenizer_folder(), storage.join(self.folder, "tokenizer"))
        calibrations = storage.join(evaluation.folder, CALIBRATION)
        parts[CALIBRATION] = calibrations, storage.list_files(calibrations)
        recipe = own_model(evaluation).configuration.recipe
        facts = {"model_read_entities": recipe.masked_entity_share < 1}
        folder.build(self.folder, parts, evaluation.read_json(SCORES), facts)
        return Result(self.described())


def _headline(of: dict[str, Any]) -> str:
    """A line about a set of documents."""
    right = {method: each["disambiguation"]["overall"]["accuracy"] for method, each in of["methods"].items()}
    shares = (f"{method} {share:.1%}" for method, share in right.items())
    mentions = of["methods"]["global"]["mentions"]["in_knowledge_base"]
    return f"{of['documents']:,} of {of['name']}, {mentions:,} mentions: {', '.join(shares)}"
