"""A linker is put together in one place, which names each part that does not fit the others."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch

pytest.importorskip("marisa_trie", reason="mention tables are read with marisa-trie")

from model.files import save_model
from model.luke.heads import LukeForPretraining
from pipeline import storage
from tasks.linking.__main__ import parser
from tasks.linking.certainty import Certainty, write_certainty
from tasks.linking.linker import basis_of
from tasks.linking.open import LinkerSettings, open_linker, with_certainty
from tasks.linking.options import settings_of
from tests.support.contexts import write_context_table
from tests.support.fine_tuned import CONFIG, fine_tuned
from tests.support.manifests import write_manifest
from tests.support.mentions import ARTICLES, small_pages, write_mentions


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A mention table, contexts of its dump and of another, a model without tokenizer, one of types, calibrations."""
    folder = fine_tuned(tmp_path_factory.mktemp("parts"), ("entity_typing",))
    write_mentions(folder / "mentions", small_pages(ARTICLES), size=4)
    for name in ("contexts", "others"):
        write_context_table(folder / name, {"A": {"ab": 1.0}})
    manifest = folder / "others/manifest.json"
    manifest.write_text(manifest.read_text().replace('"en"', '"de"'))
    torch.manual_seed(0)
    save_model(folder / "pretrain", LukeForPretraining(CONFIG))
    linker = open_linker(LinkerSettings(str(folder / "mentions"), contexts=str(folder / "contexts")))
    write_certainty(folder / "calibration.json", Certainty(min_probability=0.5, min_detected=0.2), basis_of(linker), {})
    (folder / "text").write_text("{")
    return folder


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ({"language": "en"}, "--language: only a model of ner .* asks for sentences; give both"),
        ({"mentions": "nowhere"}, "nowhere: no such folder"),
        ({"contexts": "others"}, "others: language de, but .*mentions has en; give the contexts of"),
        ({"contexts": "mentions"}, "made by BuildMentionTable; wanted the folder of BuildContexts"),
        ({"model": "nowhere"}, "nowhere: neither a folder of Pretrain nor a LUKE with"),
        ({"model": "mentions"}, "mentions: neither a folder of Pretrain nor a LUKE with"),
        ({"model": "pretrain"}, "pretrain.*found no vocab.json.*; or give --tokenizer, that of its run"),
        ({"model": "pretrain", "tokenizer": "tokenizer"}, "the model has 6 entities, the vocabulary of .* 4"),
        ({"ner": "entity_typing-luke"}, "--ner .*entity_typing-luke: no model of ner"),
        ({"ner": "nowhere"}, "nowhere/config.json: no such file"),
        ({"calibration": "nowhere"}, "nowhere: no such file; expected a file that python -m tasks"),
        ({"calibration": "text"}, "text:1: not JSON"),
        ({"calibration": "calibration.json"}, "calibration.json: made for contexts .*, used with none"),
    ],
)
def test_a_part_that_does_not_fit_is_named(folder: Path, parts: dict[str, str], message: str) -> None:
    paths = {name: part if name == "language" else str(folder / part) for name, part in parts.items()}
    with pytest.raises(ValueError, match=message) as raised:
        open_linker(LinkerSettings(**{"mentions": str(folder / "mentions"), **paths}, device="cpu"))
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(("asked", "given", "found"), [(None, 0.5, 0.2), (0.0, 0.0, 0.0), (0.3, 0.3, 0.3)])
def test_a_calibration_has_a_threshold_of_its_own_for_names(
    folder: Path, asked: float | None, given: float, found: float
) -> None:
    """It is that of the table's names: names that a model finds have none. A threshold that is given is that of all."""
    parts = {"contexts": str(folder / "contexts"), "calibration": str(folder / "calibration.json")}
    linker = open_linker(LinkerSettings(str(folder / "mentions"), **parts, min_probability=asked))
    assert (linker.certainty.min_probability, linker.min_detected) == (given, found)
    recognizing = replace(linker, recognize=lambda texts: [[] for _ in texts])
    assert with_certainty(recognizing, Path(parts["calibration"]), asked).min_detected == (asked or 0.0)


def test_a_linkers_folder_is_whole_or_refused(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Parts that an option names come from there, and then the calibration of all parts is not for them."""
    linker = folder / "linker"
    for name in ("mentions", "contexts", "model", "calibration"):
        (linker / name).mkdir(parents=True)
    for name in ("local", "global"):
        (linker / f"calibration/{name}.json").touch()

    def settings(*options: str) -> LinkerSettings:
        return settings_of(parser().parse_args(["link", *options]))

    with pytest.raises(ValueError, match=r"linker.manifest\.json: not there; .*, or copy the whole folder again"):
        settings("--linker", str(linker))
    names = ("calibration/local.json", "calibration/global.json")
    files = tuple(storage.describe(str(linker), name) for name in names)
    write_manifest(linker, "BuildLinker", files)
    whole = settings("--linker", str(linker))
    paths = whole.mentions, whole.contexts, whole.model, whole.calibration
    assert paths == tuple(str(linker / name) for name in ("mentions", "contexts", "model", "calibration/local.json"))
    assert settings("--linker", str(linker), "--global").calibration.endswith("global.json")
    served = settings_of(parser().parse_args(["serve", str(linker)]))
    assert served == replace(whole, shows_candidates=served.shows_candidates)
    for options in (["--most-candidates", "9"], ["--contexts", "other"], ["--model", "other"]):
        assert not settings("--linker", str(linker), *options).calibration
    with pytest.raises(SystemExit):
        settings("--linker", str(linker), "--workdir", str(folder))
    assert "not allowed with argument --linker" in capsys.readouterr().err
    (linker / names[1]).unlink()  # as in a copy that was interrupted
    with pytest.raises(ValueError, match=r"global\.json: missing, but the manifest says"):
        settings("--linker", str(linker))
