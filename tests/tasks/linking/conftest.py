"""Fixtures of the tests of linking: a small mention table, and the command `tasks.linking` in this process."""

from pathlib import Path

import pytest

from tests.support.asked import Linking


@pytest.fixture(scope="session")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The mention table of ARTICLES, whose A has a QID, with its vocabulary (`vocabulary`): only to read."""
    pytest.importorskip("marisa_trie", reason="mention tables are read with marisa-trie")
    from tests.support.mentions import ARTICLES, small_pages, write_mentions

    folder = tmp_path_factory.mktemp("mentions")
    made = write_mentions(folder, small_pages(ARTICLES), size=4, qids={0: "Q5"})
    made.vocab.write(str(folder / "vocabulary"))
    return folder


@pytest.fixture(scope="session")
def models(tmp_path_factory: pytest.TempPathFactory, table: Path) -> Path:
    """A random model as Pretrain leaves it (`weights`), its tokenizer, and its export (`export/model`)."""
    from model.hf.export import export
    from tests.support.linking import SENTENCES, write_model

    folder = tmp_path_factory.mktemp("models")
    write_model(folder, SENTENCES, 4)
    words, titles = folder / "tokenizer", table / "vocabulary/entity_vocab.json"
    export(folder / "weights", folder / "export/model", tokenizer=words, entity_vocab=titles)
    return folder


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Linking:
    return Linking(monkeypatch, capsys)
