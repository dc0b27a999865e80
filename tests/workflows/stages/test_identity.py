"""The name of a stage's folder changes with every value of the run that its bytes depend on, and with no other."""

import re
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import luigi
import pytest

import workflows
from model.presets import PRESET_TABLES, over
from model.pretraining.recipes import OF_ENTITIES
from pipeline import storage
from pipeline.dump.pages import read_site_info
from pipeline.lookup.entities import SPECIAL_ROWS, EntityVocab
from tests.support import ROOT
from tests.support.grid import experiments
from tests.support.manifests import write_manifest
from tests.support.page_props import sql
from tests.support.stages import DUMP, changed, run_in_process, run_of
from workflows import DiffDumps, ExportHuggingFace, FineTune, LinkDocuments, Report, Tune
from workflows.base.stage import Stage
from workflows.run.file import Run
from workflows.run.options import PRESET, all_options
from workflows.run.tables import RECIPE, TABLES
from workflows.stages.pretraining import PretrainingStage, TorchStage
from workflows.stages.task_stage import Missing, TaskStage

STAGES = [each for each in vars(workflows).values() if isinstance(each, type) and issubclass(each, Stage)]
TASKS = ("ner", "relation_classification", "extractive_qa")
# Every stage, of those about a task one for each; a pretraining first, which refuses values at once.
MADE: dict[str, Callable[[Run], Stage]] = {
    " ".join([stage.__name__, *own.values()]): lambda run, stage=stage, own=own: stage(settings=run, **own)  # type: ignore[misc]
    for stage in sorted(STAGES, key=lambda stage: not issubclass(stage, PretrainingStage))
    for own in ([{"task": task} for task in TASKS] if issubclass(stage, TaskStage) else [{}])
}
OPTIONS = {"preset": PRESET} | {f"{table}.{name}": option for table, name, option in all_options()}
OF_PRESET = {f"{table}.{name}" for tables in PRESET_TABLES.values() for table in tables for name in tables[table]}
# What may be another value of a field, where it is of its kind.
VALUES: list[Any] = [True, False, 0.25, 4, 32, 640, 123_457, [0.5, 0.75], [4], ["ner"], ["roberta"]]
VALUES += ["all", "random", "paper", "bf16", "relu", "json:dumps", {"spark.x": "y"}]
# Read in `work`, and in no name: the value decides whether the stage fails, not what it writes.
DECIDES_FAILURE = {"FetchDump": {"corpus.allow_truncated"}}

Names = dict[str, set[str]]  # of fields, by the stage that they matter to
Tables = Mapping[str, Mapping[str, Any]]


@contextmanager
def noted(run: Run) -> Iterator[set[str]]:
    """The fields of a run that the stages read meanwhile; its own code reads them, too, to be compared."""
    found: set[str] = set()
    tables = {id(run): "", **{id(getattr(run, name)): f"{name}." for name in TABLES}}

    def note(holder: Any, name: str) -> Any:
        file = sys._getframe(1).f_code.co_filename
        if id(holder) in tables and str(ROOT / "workflows") in file and "/run/" not in file:
            full = f"{tables[id(holder)]}{name}"
            names = {f"pretraining.{each}" for each in RECIPE} if full == "pretraining.recipe" else {full}
            found.update(names & OPTIONS.keys())
        return object.__getattribute__(holder, name)

    with pytest.MonkeyPatch.context() as patch:
        for kind in (Run, *TABLES.values()):
            patch.setattr(kind, "__getattribute__", note, raising=False)
        yield found


class Identities:
    """For each stage the fields that it reads for its name, and those that change it.

    Attributes:
        read: noted while the name was computed, and those of the stages upstream.
        changing: those of which another valid value gives another name.
    """

    def __init__(self, bases: Sequence[Tables], paths: Sequence[str]) -> None:
        self.read: Names = {name: set() for name in MADE}
        self.changing: Names = {name: set() for name in (*MADE, "trial")}
        self.paths = paths
        for base in bases:
            for name, fields in self.read.items():
                luigi.Task.clear_instance_cache()
                with noted(run := run_of(preset="tiny", **base)) as found:
                    _ = MADE[name](run).hash8
                fields |= found | ({"preset"} if found & OF_PRESET else set())
            before = names_of(run_of(preset="tiny", **base))
            for full in OPTIONS:
                is_known = all(full in self.changing[name] for name in MADE if full in self.read[name])
                if base is bases[0] or not is_known:
                    self.change(base, full, before)

    def change(self, base: Tables, full: str, before: Mapping[str, str]) -> None:
        """Give a field the first of its other values that changes any name; or all that are valid."""
        table, _, field = full.rpartition(".")
        kind = OPTIONS[full].kind
        words = re.findall(r"[\w-]+", kind.wanted)
        values = [dict.fromkeys(kind.keys, path) if kind.keys else path for path in self.paths]
        for value in values if kind.is_path else [*VALUES, *words]:
            tables = over(base, {table: {field: value}}) if table else {**base, "preset": value}
            try:
                after = names_of(run_of(**{"preset": "tiny", **tables}))
            except (ValueError, OSError):
                continue
            differing = [name for name, said in after.items() if said != before[name]]
            for name in differing:
                self.changing[name].add(full)
            if differing:
                return


def names_of(run: Run) -> dict[str, str]:
    trial = Tune(settings=run).trials()[0]
    return {name: make(run).hash8 for name, make in MADE.items()} | {"trial": trial.hash8}


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Identities:
    folder = tmp_path_factory.mktemp("identities")
    return Identities(*given(folder))


def given(folder: Path) -> tuple[list[Tables], list[str]]:
    """Runs without and with what a user may give, and paths that a field may name."""
    model = Path(experiments(folder)["fine_tuning"]["weights"]["luke"])
    write_manifest(model, "LinkDocuments")
    EntityVocab.of_rows([*SPECIAL_ROWS, ("A", 1, 1, None)]).write(str(model))
    (model / "pretraining.json").write_text('{"preset": "tiny", "changes": {}, "base_model": "scratch"}')
    (folder / "texts").mkdir()
    texts = shutil.copy(ROOT / "examples/linking/documents.jsonl", folder / "texts")
    dump = shutil.copy(DUMP, folder / "another.xml.bz2")
    (rules := folder / "rules.toml").write_text("variants = ['a']")
    plain = {"corpus": {"dump": str(DUMP)}, "fine_tuning": {"tasks": list(TASKS)}}
    users = {
        "corpus": {"dump_templates": True},
        "sequences": {"annotated": str(model)},
        "linking": {"gold": str(texts), "ner": str(model), "documents": str(folder / "texts")},
    }
    updated = over(plain, {"corpus": {"update_from": str(model)}})
    return [plain, over(plain, users), updated], [
        *(str(model), str(texts), str(folder / "texts"), str(dump), str(rules))
    ]


@pytest.mark.parametrize("name", MADE)
def test_a_name_changes_with_what_is_read_for_it(found: Identities, name: str) -> None:
    assert found.changing[name] <= found.read[name]
    # The baseline reads them with its recipe, and has no entities.
    excused = {f"pretraining.{each}" for each in OF_ENTITIES} if name == "PretrainRoberta" else set()
    assert found.read[name] - found.changing[name] == excused


def test_every_field_that_changes_bytes_changes_a_name_and_no_other_does(found: Identities) -> None:
    wanted = {name for name, option in OPTIONS.items() if option.changes_bytes}
    assert set().union(*found.changing.values()) == wanted


def test_a_search_is_another_where_its_trials_are(found: Identities) -> None:
    assert found.changing["trial"] <= found.changing["Tune ner"]


@pytest.mark.slow
def test_work_reads_what_is_in_the_name(found: Identities, tmp_path: Path, quick_training: None) -> None:
    """With a file of items, templates, and documents of one's own as further texts.

    The work of a stage of the corpus reads all that is in the name, too, unless the work of one upstream does. Others
    have read it when they were named.
    """
    items = [[(page, "wikibase_item", b"Q%d" % page) for page in range(1, 1000)]]
    (tmp_path / "page_props.sql").write_bytes(sql(items, read_site_info(str(DUMP)).dbname))
    (tmp_path / "texts").mkdir()
    shutil.copy(ROOT / "examples/linking/documents.jsonl", tmp_path / "texts")
    corpus = {"dump": str(DUMP), "dump_templates": True, "held_out": 0.3}
    corpus["page_props"] = str(tmp_path / "page_props.sql")
    tables = {
        "corpus": corpus,
        "linking": {"documents": str(tmp_path / "texts")},
        "fine_tuning": {
            "tasks": ["ner"], "variants": ["luke"],
            "learning_rates": [1e-3], "batch_sizes": [32], "epoch_counts": [1],
        },
        "machine": {"processes": 1},
    }  # fmt: skip
    run = run_of(tmp_path / "work", **tables)
    read: Names = {stage.__name__: set() for stage in STAGES}

    def watched(stage: Stage, work: Callable[[Stage], storage.Result]) -> storage.Result:
        with noted(stage.settings) as found:
            result = work(stage)
        read[type(stage).__name__] |= found
        return result

    with pytest.MonkeyPatch.context() as patch:
        for kind in STAGES:
            patch.setattr(kind, "work", lambda stage, work=kind.work: watched(stage, work))
        run_in_process(linked := LinkDocuments(settings=run))
        run = changed(run, sequences={"annotated": linked.folder})
        updates = ("DiffDumps", "UpdateEntities")
        of_several = ("MergeEntities", "MergeSequences")  # dumps, which test_languages has
        others = (*TASKS[1:], *updates, *of_several)
        for name in [*(each for each in MADE if not each.endswith(others)), *updates]:
            if name == updates[0]:
                run = changed(run, corpus={"update_from": ExportHuggingFace(settings=run).folder})
            run_in_process(stage := MADE[name](run))
            own, *_ = name.split()
            # The one stands for the values that it gives, the other for what is upstream.
            changing = found.changing[name] - {"preset", "corpus.update_from"}
            of_bytes = {each for each in read[own] if OPTIONS[each].changes_bytes}
            assert of_bytes - found.changing[name] <= DECIDES_FAILURE.get(own, set()), name
            if not isinstance(stage, TorchStage | Report):
                below = {own, *(type(each).__name__ for each in stage.upstream())}
                assert changing <= set().union(*(read[each] for each in below)), name


def test_an_earlier_model_is_an_exported_one_with_its_vocabulary(tmp_path: Path) -> None:
    """In a folder of its own or in one of a stage; not in the work directory itself."""
    (tmp_path / "file").touch()
    for source in ("nowhere", "file", "."):
        run = run_of(tmp_path / "work", corpus={"dump": str(DUMP), "update_from": str(tmp_path / source)})
        with pytest.raises(
            ValueError, match=rf"--update-from {re.escape(str(tmp_path / source))}: no exported model with"
        ):
            _ = DiffDumps(settings=run).hash8
    (model := tmp_path / "linker" / "model").mkdir(parents=True)
    EntityVocab.of_rows([*SPECIAL_ROWS, ("A", 1, 1, None)]).write(str(model))
    for name in ("model.safetensors", "pretraining.json"):
        (model / name).touch()
    for source in (model, model.parent):
        run = run_of(tmp_path / "work", corpus={"dump": str(DUMP), "update_from": str(source)})
        assert DiffDumps(settings=run).earlier_model == str(model)
    run = run_of(model.parent, corpus={"dump": str(DUMP), "update_from": str(model.parent)})
    with pytest.raises(ValueError, match="is the work directory itself"):
        _ = DiffDumps(settings=run).hash8
    cell = FineTune(settings=changed(run, corpus={"update_from": str(model)}), variant="roberta_extra_training")
    with pytest.raises(Missing, match="--update-from makes none"):
        cell.given_weights()
