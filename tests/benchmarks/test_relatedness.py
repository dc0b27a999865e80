"""What decides the meaning of the figures of `benchmarks.evidence.relatedness`, beside SciPy and plain loops."""

import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from scipy.stats import spearmanr

from benchmarks.evidence import relatedness as probe
from benchmarks.evidence.relatedness import Pair
from model.files import save_model
from model.luke.heads import LukeForPretraining
from pipeline.lookup.entities import EntityVocab
from tests.support.models import TINY


def test_the_sets_are_read_whole(shared: Path) -> None:
    folder = shared / "data" / "entity-relatedness"
    similar, related = probe.read_wikisim(folder / "WikiSim-353.txt"), probe.read_kore(folder / "KORE.txt")
    assert len(similar) == 353
    assert similar[0] == Pair("", "Love", "Sexual intercourse", 0.677)
    assert len(related) == 420
    assert {len([each for each in related if each.group == name]) for name in probe.groups_of(related)} == {
        20
    }
    assert related[:2] == [
        Pair("Apple Inc.", "Apple Inc.", "Steve Jobs", -1),
        Pair("Apple Inc.", "Apple Inc.", "Steve Wozniak", -2),
    ]


def test_correlations_are_scipys() -> None:
    """Of each sample of pairs, with ties; and 0 where there is nothing to compare."""
    generator = np.random.default_rng(0)
    wanted, found = generator.integers(5, size=40).astype(float), generator.normal(size=40).round(1)
    rows = generator.integers(40, size=(50, 12))
    values = probe.correlations(wanted, found, rows)
    np.testing.assert_allclose(
        values, [spearmanr(wanted[row], found[row]).statistic for row in rows], atol=1e-12
    )
    assert probe.correlations(np.ones(3), np.arange(3.0), np.arange(3)[None]).tolist() == [0.0]


def test_a_figure_is_the_mean_over_groups_and_models() -> None:
    """A group with too few pairs is left out, and each group is resampled by itself."""
    generator = np.random.default_rng(1)
    pairs = [
        Pair(group, group, str(number), float(generator.normal()))
        for group, size in {"a": 9, "b": 5, "c": 4}.items()
        for number in range(size)
    ]
    asked = probe.large_groups(pairs)
    assert {each.group for each in asked} == {"a", "b"}
    models = [generator.normal(size=len(asked)) for _ in range(3)]
    found = probe.sampled(asked, models)
    parts = [slice(0, 9), slice(9, 14)]
    wanted = [each.relatedness for each in asked]
    each = [spearmanr(wanted[part], model[part]).statistic for part in parts for model in models]
    assert found[0] == pytest.approx(np.mean(each))
    assert len(found) == 1 + probe.SAMPLES
    perfect = probe.sampled(asked, [np.array(wanted)])
    assert set(perfect.round(9)) == {1.0, 0.5}, "a group says nothing where one pair alone is drawn"
    assert perfect.mean() > 0.99


def test_the_report_is_of_pairs_that_all_know(
    capsys: pytest.CaptureFixture[str], corpus: Path, tmp_path: Path
) -> None:
    """The rows of the tables are those of the entities; wikipedia2vec's vectors have the titles' own names."""
    titles = EntityVocab.load(str(next(corpus.glob("entity_vocab-*")))).titles
    known = [title for title in titles[3:] if title.isascii()][:8]
    assert len(known) == 8
    (tmp_path / "KORE.txt").write_text("\n\t".join([*known, "Nobody"]) + "\n")
    scores = np.random.default_rng(2).random(6).round(3).tolist()
    pairs = [(known[0], title, score) for title, score in zip(known[1:], scores, strict=False)]
    header = "termA\tidA\tmatchA\ttermB\tidB\tmatchB\trelatedness"
    lines = [
        f"a\t1\t{first}\tb\t2\t{second}\t{score}"
        for first, second, score in [*pairs, ("Nobody", known[0], 1)]
    ]
    (tmp_path / "WikiSim-353.txt").write_text("\n".join([header, *lines]) + "\n")
    folders, wanted = [], []
    for seed in (1, 2):
        torch.manual_seed(seed)
        module = LukeForPretraining(replace(TINY, entity_vocab_size=len(titles)))
        table = module.luke.entity_embeddings.token.weight.detach()
        folders.append(str(tmp_path / str(seed)))
        save_model(Path(folders[-1]), module)
        rows = [table[titles.index(title)] for title in known[:6]]
        found = [float(torch.cosine_similarity(rows[0], each, dim=0)) for each in rows[1:]]
        wanted.append(spearmanr(scores[:5], found).statistic)
    vectors = [f"ENTITY/{title.replace(' ', '_')} {number} 1 0" for number, title in enumerate(known[:6])]
    (tmp_path / "vectors.txt").write_text("\n".join(["7 3", "word 1 1 1", *vectors]) + "\n")
    output = tmp_path / "found.json"
    given = [
        "--mentions",
        str(next(corpus.glob("mentions-*"))),
        "--sets",
        str(tmp_path),
        "--output",
        str(output),
    ]
    given += ["--vectors", str(tmp_path / "vectors.txt"), "--found", str(tmp_path / "found.npz")]
    probe.main([*given, "--arm", "ours", *folders])
    report = json.loads(output.read_text())
    probe.main(given)  # by the vectors that were kept
    again = json.loads(output.read_text())
    tables = ("pairs", "spearman's rank correlation", "differences")
    assert [again[name] for name in tables] == [report[name] for name in tables]
    with pytest.raises(SystemExit):
        probe.main([*given, "--arm", "ours", *folders])
    assert "found.npz: is there; leave --arm out" in capsys.readouterr().err
    with pytest.raises(ValueError, match="its titles are not those of the mention table"):
        probe.kept_vectors(tmp_path / "found.npz", {"Nobody": 1})
    assert [row["asked"] for row in report["pairs"]] == [5, 5]
    assert [row["entities of the models"] for row in report["pairs"]] == [6, 7]
    ours, peer = report["spearman's rank correlation"]
    assert ours["WikiSim-353"] == pytest.approx(np.mean(wanted))
    assert peer["WikiSim-353"] == pytest.approx(
        spearmanr(scores[:5], [1 / math.sqrt(1 + number**2) for number in range(1, 6)]).statistic
    )
    assert [row["method"] for row in report["differences"]] == ["ours less wikipedia2vec"]


def test_what_cannot_be_compared_is_said(
    capsys: pytest.CaptureFixture[str], corpus: Path, tmp_path: Path
) -> None:
    """wikipedia2vec writes a tab behind a name unless it is told another format."""
    given = ["--mentions", str(next(corpus.glob("mentions-*")))]
    (tmp_path / "vectors.txt").write_text("ENTITY/Love\t0.1 0.2\n")
    for more, said in (
        ([], "there is nothing to compare; give --arm, --vectors or both"),
        (["--arm", "titles", "a"], "--arm titles: another name is wanted"),
        (
            ["--found", str(tmp_path / "none.npz")],
            "none.npz: is not there; give --arm, whose vectors it will have",
        ),
        (["--found", str(tmp_path / "vectors.txt")], "vectors.txt: no file that --found has written"),
        (["--vectors", str(tmp_path / "vectors.txt")], "save it with --out-format word2vec"),
    ):
        with pytest.raises(SystemExit):
            probe.main([*given, *more])
        assert said in capsys.readouterr().err


def test_an_arm_needs_a_name_of_its_own_and_folders(capsys: pytest.CaptureFixture[str]) -> None:
    for given in (["--arm", "ours"], ["--arm", "ours", "a", "--arm", "ours", "b"]):
        with pytest.raises(SystemExit):
            probe.main(["--mentions", "m", *given])
        assert (
            "argument --arm: ours: wanted a new name, and folders of pretraining" in capsys.readouterr().err
        )
