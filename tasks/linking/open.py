"""Opens a linker: the one place that puts its parts together."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from pipeline.lookup.annotator import MIN_LINK_PROBABILITY, Annotator
from pipeline.lookup.contexts import ContextTable
from pipeline.lookup.mentions import MentionTable
from pipeline.storage import read_manifest
from tasks.io.records import Record
from tasks.linking.candidates import MOST, CandidateFinder
from tasks.linking.certainty import read_certainty
from tasks.linking.linker import GLOBAL, LOCAL, Answer, Linker, basis_of
from tasks.linking.own import read_own

# Without a model nothing needs torch, which takes seconds and memory in each worker of a corpus.
if TYPE_CHECKING:
    from tasks.linking.model.entity_model import EntityModel

TOKENS_PER_BATCH = 2048
CALIBRATION = "calibration"  # the folder of a file for each method
_PARTS = ("mentions", "contexts", "model", "tokenizer", CALIBRATION)


@dataclass(frozen=True)
class LinkerSettings:
    """The parts of a linker, and how it answers; an empty path is a part that it does not have."""

    mentions: str  # folder of BuildMentionTable
    contexts: str = ""  # folder of BuildContexts
    # Folder of Pretrain or ExportHuggingFace, or of transformers' LukeForMaskedLM with its entity_vocab.json.
    model: str = ""
    tokenizer: str = ""  # folder of the model's tokenizer; empty: the model's own folder has it
    calibration: str = ""  # file of `calibrate`
    own: str = ""  # file of entities of the user's own
    ner: str = ""  # folder of a fine-tuned model of ner, which finds mentions in place of the table's names
    language: str = ""  # of the texts, by whose rules that model's sentences are cut; empty: the table's
    most_candidates: int = MOST  # pages that a mention can stand for, the commonest ones
    min_link_probability: float = MIN_LINK_PROBABILITY  # names that are links less often are not found
    min_probability: float | None = None  # mentions whose page is less probable get none; None: the calibration says it
    is_global: bool = False  # whether the model answers one mention after the other
    finds_all: bool = False  # whether mentions are found also where a document brings its own
    shows_candidates: bool = False  # whether an answer has all candidates
    device: str = "auto"  # auto, cpu, cuda or cuda:N
    tokens_per_batch: int = TOKENS_PER_BATCH  # words and entities that a model computes at once


class LanguageLinkers:
    """Linkers by their languages: a document is answered by that of its `language`, or else of what its text is in."""

    def __init__(self, linkers: Mapping[str, Linker]) -> None:
        """Raises: ValueError: the package that tells languages is missing, or does not know one of these."""
        try:
            from py3langid.langid import MODEL_FILE, LanguageIdentifier
        except ImportError:
            raise ValueError("--language auto: needs a package that tells languages; pip install py3langid") from None
        self.linkers = linkers
        self._identifier = LanguageIdentifier.from_model_file(MODEL_FILE)
        try:
            self._identifier.set_languages(linkers)
        except ValueError as error:
            raise ValueError(f"--language auto: {error}; give one language after the other") from None

    def answer(self, records: Sequence[Record]) -> list[Answer]:
        """Answers of the linker of each record's language, which they name. Raises: ValueError naming the record."""
        languages = list(map(self._language_of, records))
        found = {}
        for code in {*languages}:
            own = [record for record, language in zip(records, languages, strict=True) if language == code]
            found[code] = iter(self.linkers[code].answer(own))
        return [{"language": code, **next(found[code])} for code in languages]

    def _language_of(self, record: Record) -> str:
        if record.values.get("language") is None:
            return str(self._identifier.classify(record.text("text"))[0])
        if (given := record.text("language")) not in self.linkers:
            raise record.error(f"language is {given[:40]!r}; wanted one of {', '.join(self.linkers)}")
        return given


def parts_of(folder: Path) -> dict[str, Path]:
    """Return the parts of a folder of BuildLinker by the names of `LinkerSettings`; `calibration` has all methods'.

    Raises: ValueError for another folder, and where a file is missing or cut, as in a copy that was interrupted.
    """
    try:
        read_manifest(str(folder), "BuildLinker")
    except ValueError as error:
        raise ValueError(f"{error}, or copy the whole folder again") from None
    return {name: folder / name for name in _PARTS if (folder / name).is_dir()}


def calibration_of(folder: Path, *, is_global: bool = False) -> Path | None:
    """Return the file of a folder of calibrations that is for the model in either way; None where there is none."""
    path = folder / f"{GLOBAL if is_global else LOCAL}.json"
    return path if path.is_file() else None


def open_linker(settings: LinkerSettings) -> Linker:
    """Return the linker of these settings. Raises: ValueError for a part that cannot be read or does not fit."""
    if settings.language and not settings.ner:
        raise ValueError("--language: only a model of ner (--ner DIR) asks for sentences; give both, or neither")
    annotator = Annotator.open(
        Path(settings.mentions), min_link_probability=settings.min_link_probability, min_commonness=0.0
    )
    table = annotator.table
    linker = Linker(
        CandidateFinder(table, settings.most_candidates, read_own(Path(settings.own), table) if settings.own else None),
        annotator,
        contexts=open_contexts(Path(settings.contexts), table) if settings.contexts else None,
        is_global=settings.is_global,
        finds_all=settings.finds_all,
        shows_candidates=settings.shows_candidates,
    )
    if settings.model:
        linker = replace(linker, model=open_model(settings, table))
    if settings.ner:
        from tasks.linking.recognition import open_recognizer

        language = settings.language or table.manifest.facts["language"]
        names = open_recognizer(Path(settings.ner), language, settings.device, settings.tokens_per_batch)
        linker = replace(linker, recognize=names)
    calibration = Path(settings.calibration) if settings.calibration else None
    return with_certainty(linker, calibration, settings.min_probability)


def open_model(settings: LinkerSettings, table: MentionTable) -> "EntityModel":
    """Return the model of the settings, with the rows of a table's pages."""
    from pipeline.sequences.tokenizer import WordTokenizer
    from tasks.linking.model.entity_model import load_model, model_folder, read_titles
    from tasks.serving.predict import their_words

    folder = model_folder(Path(settings.model))
    if settings.tokenizer:
        tokenizer = WordTokenizer.load(Path(settings.tokenizer))
    else:
        read_titles(folder)  # which says what is wrong with another folder
        try:
            tokenizer = their_words(folder)[0]
        except ValueError as error:
            raise ValueError(f"{error}; or give --tokenizer, that of its run") from None
    model = load_model(folder, table, tokenizer, device=settings.device)
    return replace(model, tokens_per_batch=settings.tokens_per_batch)


def open_contexts(folder: Path, table: MentionTable) -> ContextTable:
    """Return the contexts of a folder of BuildContexts. Raises: ValueError for those of another dump than the table."""
    found = ContextTable(str(folder))
    for name in ("language", "dump"):
        theirs, ours = (each.manifest.facts.get(name) for each in (found, table))
        if theirs != ours:
            raise ValueError(
                f"{folder}: {name} {theirs}, but {table.folder} has {ours}; give the contexts of the table's own dump"
            )
    return found


def with_certainty(linker: Linker, calibration: Path | None, min_probability: float | None) -> Linker:
    """Return the linker with a calibration that was made for it, and with this threshold of all mentions.

    None: the calibration's thresholds of given mentions and of the table's names; names that a model finds have none.

    Raises: ValueError for a calibration of something else.
    """
    certainty = read_certainty(calibration, basis_of(linker)) if calibration else linker.certainty
    if min_probability is not None:
        certainty = replace(certainty, min_probability=min_probability, min_detected=min_probability)
    min_detected = 0.0 if linker.recognize and min_probability is None else certainty.min_detected
    return replace(linker, certainty=certainty, min_detected=min_detected)
