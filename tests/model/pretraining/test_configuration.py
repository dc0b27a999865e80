"""Recipes over presets: what each value changes, in the model and in training, and every refusal."""

import json
import tomllib
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from model import pretrain
from model.data.shards import Corpus
from model.luke.config import PRESETS
from model.luke.heads import LukeForPretraining, PaperEntityHead
from model.pretraining.phases import PhaseTraining
from model.pretraining.recipes import AROUND_A_BASE, HELP, RECIPES, SCRATCH, SIZES, Phase, changed_phases, choose
from model.pretraining.start import begin_with_words, build_model
from tests.support import ROOT
from tests.support.models import TINY, words_of_transformers
from tests.support.pretraining import SHORT, contents, run
from tests.support.shards import random_rows, write_sequences


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the preset "tiny" a model that is trained for 13 steps, without a checkpoint in between."""
    monkeypatch.setitem(PRESETS, "tiny", TINY)
    monkeypatch.setitem(RECIPES, "tiny", replace(SHORT, checkpoint_every=100))


@pytest.fixture(scope="module")
def sequences(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_sequences(tmp_path_factory.mktemp("sequences"), random_rows(11), held_out=random_rows(5))


def phases(**flags: Any) -> list[tuple[int, float, int, str]]:
    recipe = choose("base", flags, base_model="roberta-base").recipe
    return [(phase.steps, phase.learning_rate, phase.warmup_steps, phase.trainable) for phase in recipe.phases]


@pytest.mark.parametrize("name", sorted(RECIPES))
@pytest.mark.parametrize("entities", [True, False])
def test_a_preset_alone_is_what_its_tables_say(name: str, entities: bool) -> None:
    base_model = "roberta-base" if name in AROUND_A_BASE else SCRATCH
    configuration = choose(name, entities=entities, base_model=base_model)
    assert configuration.recipe == (RECIPES[name] if entities else RECIPES[name].without_entities())
    sizes = {size: getattr(PRESETS[name], size) for size in SIZES}
    assert configuration.sizes.items() <= sizes.items()
    assert base_model != SCRATCH or configuration.sizes == sizes
    assert configuration.changes() == {}


def test_the_baseline_without_entities_needs_a_phase_of_all() -> None:
    flags = {"phases": ["all", "new"]}
    recipe = choose("base", flags, base_model="roberta-base", entities=False).recipe
    assert [(phase.trainable, phase.learning_rate, phase.steps) for phase in recipe.phases] == [("all", 1e-5, 200_000)]
    with pytest.raises(ValueError, match="phases has no 'all': the baseline without entities has nothing new"):
        choose("base", {"phases": ["new"]}, base_model="roberta-base", entities=False)


def test_the_table_of_a_plan_is_a_recipe_of_it() -> None:
    """The values that a run says of itself can be asked for again, from any preset."""
    table = choose("base", {"num_hidden_layers": 3, "phases": ["all"], "steps": 10, "warmup_steps": 1}).table()
    assert choose("tiny", table).table() == table
    assert json.loads(json.dumps(table)) == table


def test_values_of_phases() -> None:
    paper = [(100_000, 5e-4, 2500, "new"), (100_000, 1e-5, 2500, "all")]
    assert phases() == paper
    assert phases(steps=30_000) == [(15_000, *paper[0][1:]), (15_000, *paper[1][1:])]
    assert phases(steps=[9000, 5000]) == [(9000, *paper[0][1:]), (5000, *paper[1][1:])]
    assert [each[1] for each in phases(learning_rate=1e-4)] == [1e-4, 1e-4]
    assert [each[1] for each in phases(learning_rate=[1e-3, 1e-4])] == [1e-3, 1e-4]
    assert [each[2] for each in phases(warmup_steps=[0, 100])] == [0, 100]
    assert phases(phases="all") == paper[1:]
    assert phases(phases=["all", "new"], learning_rate=[1, 2.0]) == [
        (100_000, 1.0, 2500, "all"),
        (100_000, 2.0, 2500, "new"),
    ]


@pytest.mark.parametrize("total", [2, 3, 9000, 9001, 12_345])
def test_steps_are_shared_as_the_preset_s(total: int) -> None:
    flags = {"phases": ["all", "all"], "steps": [7500, 1500], "warmup_steps": 0}
    whole = choose("tiny", flags).recipe.phases
    assert [phase.steps for phase in whole] == [7500, 1500]
    shared = changed_phases(whole, {"steps": total})
    assert sum(phase.steps for phase in shared) == total
    assert shared[0].steps == pytest.approx(total * 7500 / 9000, abs=1)


@pytest.mark.parametrize("name", AROUND_A_BASE)
def test_short_presets_want_a_base_model(name: str) -> None:
    for flags in ({}, {"masked_word_share": 0.0}):
        with pytest.raises(ValueError, match=f"^preset {name} is too short to learn words from nothing; give a"):
            choose(name, flags)
    assert choose(name, entities=False).recipe.masked_word_share == 0.15, "the baseline learns words"
    words = choose(name, {"masked_word_share": 0.1})
    assert words.changes() == {"masked_word_share": 0.1}
    assert words.recipe.start_of_entities(base_model=SCRATCH, profile="fixed") == "random"


def test_the_small_preset_is_of_a_base_model_s_sizes() -> None:
    around = choose("small", base_model="roberta-base")
    assert around.sizes == {
        "entity_emb_size": 384,
        "entity_head": "released",
        "hidden_dropout_prob": 0.0,
        "attention_probs_dropout_prob": 0.0,
    }
    baseline = choose("small", base_model="roberta-base", entities=False).recipe
    assert (baseline.masked_word_share, baseline.min_entities) == (0.15, 2), "there is nothing else to learn"
    starts = [around.recipe.start_of_entities(base_model="x", profile=profile) for profile in ("fixed", "paper")]
    assert starts == ["titles", "random"]
    ignored = choose("tiny", {"entity_start": "titles"}, entities=False)
    assert ignored.changes() == {}, "it has no entities that could begin with anything"


def test_width_takes_heads_and_the_inner_layer_along() -> None:
    sizes = choose("base", {"hidden_size": 256}).sizes
    assert (sizes["num_attention_heads"], sizes["intermediate_size"]) == (4, 1024)
    sizes = choose("base", {"hidden_size": 100, "num_attention_heads": 5}).sizes
    assert (sizes["num_attention_heads"], sizes["intermediate_size"]) == (5, 400)
    sizes = choose("tiny", {"hidden_size": 192, "intermediate_size": 64}).sizes
    assert (sizes["num_attention_heads"], sizes["intermediate_size"]) == (3, 64)


# Values that cannot be, and what the error begins with.
REFUSED = [
    ({"num_layers": 3}, "num_layers is no value of a recipe, did you mean num_hidden_layers"),
    ({"num_hidden_layers": 0}, "num_hidden_layers is 0"),
    ({"num_hidden_layers": 1.5}, "num_hidden_layers is 1.5, .* type int"),
    ({"hidden_size": 100}, "hidden_size is 100, .* a multiple of 64"),
    ({"hidden_dropout_prob": 1.0}, "hidden_dropout_prob is 1.0"),
    ({"entity_head": "big"}, "entity_head is 'big', .* released, paper"),
    ({"steps": 1}, "steps is 1, .* a step for each phase"),
    ({"steps": [1, 2, 3]}, "steps has 3 values"),
    ({"steps": 8}, "warmup_steps is 5"),
    ({"learning_rate": 0}, "learning_rate is 0.0"),
    ({"phases": []}, r"phases is \[\]"),
    ({"phases": ["old"]}, r"phases is \['old'\]"),
    ({"phases": ["new"]}, "phases has 'new' alone"),
    ({"batch_size": 0}, "batch_size is 0"),
    ({"weight_decay": -0.1}, "weight_decay is -0.1"),
    ({"tokens_per_batch": -1}, "tokens_per_batch is -1"),
    ({"betas": [0.9]}, r"betas is \(0.9,\)"),
    ({"masked_word_share": 0, "masked_entity_share": 0}, "masked_word_share and masked_entity_share are 0"),
    ({"entity_start": "titles"}, "entity_start is 'titles', .* base model"),
    ({"precision": "fp8"}, "precision is 'fp8', .* auto, float32, bf16"),
]


@pytest.mark.parametrize(("values", "message"), REFUSED)
def test_what_cannot_be_is_refused_by_its_name(values: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=f"^{message}"):
        choose("tiny", values)


@pytest.mark.parametrize("name", ["num_hidden_layers", "hidden_size", "max_position_embeddings"])
def test_a_base_model_has_sizes_of_its_own(name: str) -> None:
    message = f"{name} is 64, but the base model roberta-base has its own; leave it"
    with pytest.raises(ValueError, match=f"^{message}"):
        choose("base", {name: 64}, base_model="roberta-base")


def test_around_a_base_model_the_sizes_are_its_own(tmp_path: Path, sequences: Path) -> None:
    """And what its words leave open is the preset's, or what is asked for."""
    words_of_transformers("RobertaForMaskedLM").save_pretrained(tmp_path / "base")
    base, facts = str(tmp_path / "base"), Corpus(sequences).facts
    plain, _ = build_model(facts, choose("base", base_model=base), seed=1)
    assert (plain.config.hidden_size, plain.config.num_hidden_layers) == (TINY.hidden_size, TINY.num_hidden_layers)
    assert (plain.config.entity_emb_size, plain.config.hidden_dropout_prob) == (256, 0.1), "the preset's"
    flags = {"entity_emb_size": 4, "entity_head": "paper", "attention_probs_dropout_prob": 0.3}
    changed, new = build_model(facts, choose("base", flags, base_model=base), seed=1)
    assert isinstance(changed.entity_head, PaperEntityHead)
    assert (changed.config.entity_emb_size, changed.config.attention_probs_dropout_prob) == (4, 0.3)
    assert all("entity" in name for name in new)


def test_the_baseline_does_not_look_at_entities() -> None:
    flags = {"masked_entity_share": 0.5, "entity_emb_size": 3, "entity_head": "paper", "steps": 20}
    assert choose("tiny", flags, entities=False) == choose("tiny", {"steps": 20}, entities=False)
    assert choose("tiny", {"steps": 20}, entities=False).recipe.phases == (Phase(20, 1e-3, 5, "all"),)


# Each flag, as typed, with what it has to change: a value of the model, of its optimiser, or of what is read.
REACHES = {
    "steps": ("6", "lines", [6]),
    "warmup_steps": ("4", "learning_rates", [0.0, 0.5e-2, 1e-2, 1.5e-2]),
    "learning_rate": ("3e-3,1e-3", "learning_rates", [0.0, 1.5e-3, 3e-3]),
    "phases": ('"all"', "trainable", {"all"}),
    "batch_size": ("3", "sequences", {3}),
    "weight_decay": ("0.25", "decay", {0.25, 0.0}),
    "hidden_dropout_prob": ("0.5", "dropout", {0.5, 0.1}),
    "masked_word_share": ("1.0", "masked_words", {1.0}),
    "masked_entity_share": ("1.0", "masked_entities", {1.0}),
    "num_hidden_layers": ("3", "layers", {3}),
    "hidden_size": ("24", "width", {24}),
    "entity_emb_size": ("5", "entity_width", {5}),
    "entity_head": ('"paper"', "head", {"PaperEntityHead"}),
}


PLAIN: dict[str, Any] = {}  # what the preset alone uses; one run for all flags


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The values that a run really uses, as its model, optimisers and batches are, not as its settings say."""
    found: dict[str, Any] = {}
    make, loss, finish = PhaseTraining.make_optimizer, PhaseTraining.loss, PhaseTraining.finish_step

    def add(name: str, value: Any) -> None:
        found.setdefault(name, set()).add(value)

    def make_optimizer(self: PhaseTraining, phase: Phase) -> torch.optim.Optimizer:
        optimizer = make(self, phase)
        module, config = self.module, self.module.config
        assert isinstance(module, LukeForPretraining)
        add("trainable", phase.trainable)
        for group in optimizer.param_groups:
            add("decay", group["weight_decay"])
        dropouts = [part.p for part in module.modules() if isinstance(part, torch.nn.Dropout)]
        found["dropout"] = {*dropouts, config.attention_probs_dropout_prob}
        add("layers", len(module.luke.layers))
        add("width", module.luke.word_embeddings.token.weight.shape[1])
        add("entity_width", module.luke.entity_embeddings.token.weight.shape[1])
        add("head", type(module.entity_head).__name__)
        return optimizer

    def losses(self: PhaseTraining, part: Any) -> Any:
        shape = part.batch.shape
        add("masked_words", shape.masked_words / (shape.words - 2 * len(shape.lengths)))
        if shape.entities:
            add("masked_entities", shape.masked_entities / shape.entities)
        found["size"] = found.get("size", 0) + len(shape.lengths)
        return loss(self, part)

    def finish_step(self: PhaseTraining, phase: int, done: int, end: int, rate: float, optimizer: Any) -> None:
        add("sequences", found.pop("size"))
        found.setdefault("learning_rates", []).append(rate)
        found["lines"] = [done]
        finish(self, phase, done, end, rate, optimizer)

    monkeypatch.setattr(PhaseTraining, "make_optimizer", make_optimizer)
    monkeypatch.setattr(PhaseTraining, "loss", losses)
    monkeypatch.setattr(PhaseTraining, "finish_step", finish_step)
    return found


@pytest.mark.usefixtures("short")
@pytest.mark.parametrize("name", REACHES)
def test_every_value_reaches_the_model_the_optimiser_or_the_batches(
    sequences: Path, tmp_path: Path, seen: dict[str, Any], name: str
) -> None:
    text, what, wanted = REACHES[name]
    options = ["--preset", "tiny", "--seed", "1", "--device", "cpu", "--evaluate-every", "0"]
    if not PLAIN:
        run(sequences, tmp_path / "plain", evaluate_every=0)
        PLAIN.update(seen)
        seen.clear()
    before = PLAIN
    assert pretrain.main([str(sequences), str(tmp_path / "out"), *options, "--set", f"{name}={text}"]) == 0
    if isinstance(wanted, list):
        assert seen[what][: len(wanted)] == pytest.approx(wanted)
        assert before[what][: len(wanted)] != pytest.approx(wanted)
    else:
        assert seen[what] == wanted
        assert before[what] != wanted
    record = json.loads((tmp_path / "out" / "pretraining.json").read_text())
    assert record["recipe"][name] == record["changes"][name]


@pytest.mark.usefixtures("short")
@pytest.mark.parametrize(
    ("start", "profile", "wanted"),
    [
        ("titles", "fixed", "titles"),
        ("random", "fixed", "random"),
        ("auto", "fixed", "titles"),
        ("auto", "paper", "random"),
    ],
)
def test_how_entities_start_reaches_the_model(
    sequences: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, start: str, profile: str, wanted: str
) -> None:
    words_of_transformers("RobertaForMaskedLM").save_pretrained(tmp_path / "base")
    make, found = PhaseTraining.make_optimizer, []

    def make_optimizer(self: PhaseTraining, phase: Phase) -> torch.optim.Optimizer:
        found.append({name: tensor.clone() for name, tensor in self.module.state_dict().items()})
        return make(self, phase)

    monkeypatch.setattr(PhaseTraining, "make_optimizer", make_optimizer)
    options: dict[str, Any] = {"base_model": str(tmp_path / "base")}
    options |= {} if start == "auto" else {"entity_start": start}
    run(sequences, tmp_path / "out", profile=profile, seed=1, **options)
    corpus = Corpus(sequences)
    module, _ = build_model(corpus.facts, choose("tiny", base_model=options["base_model"]), seed=1)
    if wanted != "random":
        begin_with_words(module, corpus)
    assert all(torch.equal(tensor, found[0][name]) for name, tensor in module.state_dict().items())
    record = json.loads((tmp_path / "out" / "pretraining.json").read_text())
    assert record["recipe"]["entity_start"] == wanted, "as it was resolved"


DISAMBIGUATION = "entity_disambiguation.toml"


def test_the_recipe_of_entity_disambiguation_has_the_authors_numbers() -> None:
    """An epoch and six; `--steps` puts those of another corpus in their place."""
    table = tomllib.loads((ROOT / "examples/runs" / DISAMBIGUATION).read_text(encoding="utf-8"))["pretraining"]
    recipe = {field: value for field, value in table.items() if field in HELP}
    found = choose("base", recipe, base_model="bert-base-uncased")
    wanted = [Phase(4866, 5e-4, 1000, "new"), Phase(6 * 4866, 5e-5, 1000, "all")]
    assert list(found.recipe.phases) == wanted
    assert found.changes().keys() == {
        *("steps", "learning_rate", "warmup_steps", "masked_word_share", "masked_entity_share")
    }
    other = choose("base", recipe | {"steps": [2500, 15_000]}, base_model="bert-base-uncased").recipe
    assert [phase.steps for phase in other.phases] == [2500, 15_000]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--set", "steps=x"], "steps is 'x', but must be of type int"),
        (["--run", "none.toml"], "none.toml: cannot be read"),
    ],
)
def test_the_command_line_refuses_in_a_line(
    options: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert pretrain.main(["sequences", "output", *options]) == 1
    assert capsys.readouterr().err.startswith(message)


@pytest.mark.usefixtures("short")
def test_a_run_file_gives_the_bytes_of_the_same_values(sequences: Path, tmp_path: Path) -> None:
    path = tmp_path / "run.toml"
    table = "steps = [4, 3]\nlearning_rate = 1e-2\nbatch_size = 3\nnum_hidden_layers = 1\nseed = 3\n"
    path.write_text(f'preset = "tiny"\n[pretraining]\n{table}[machine]\nprocesses = 1\n')
    assert pretrain.main([str(sequences), str(tmp_path / "a"), "--device", "cpu", "--run", str(path)]) == 0
    values = ["steps=4,3", "learning_rate=1e-2", "batch_size=3", "num_hidden_layers=1"]
    options = ["--preset", "tiny", "--seed", "3", "--device", "cpu"]
    for value in values:
        options += ["--set", value]
    assert pretrain.main([str(sequences), str(tmp_path / "b"), *options]) == 0
    assert contents(tmp_path / "a") == contents(tmp_path / "b")


def test_what_a_recipe_leaves_open_suits_the_device() -> None:
    large, recipe = PRESETS["large"], RECIPES["large"]
    on_cpu = recipe.on_device(large, gpu_bytes=0, has_bf16=False, profile="fixed")
    assert (on_cpu.precision, on_cpu.tokens_per_batch) == ("float32", 0)
    newer = recipe.on_device(large, gpu_bytes=0, has_bf16=True, profile="fixed")
    assert (newer.precision, newer.tokens_per_batch) == ("bf16", 0)
    sizes = [80, 24, 0.1]
    found = [recipe.on_device(large, gpu_bytes=int(size * 1e9), has_bf16=True, profile="fixed") for size in sizes]
    assert {each.precision for each in found} == {"bf16"}
    assert [each.tokens_per_batch for each in found] == [32768, 11264, 1024]
    less = replace(recipe, gradient_checkpointing=True).on_device(
        large, gpu_bytes=int(24e9), has_bf16=True, profile="fixed"
    )
    assert less.tokens_per_batch == 32768
    paper = recipe.on_device(large, gpu_bytes=int(80e9), has_bf16=True, profile="paper")
    assert (paper.precision, paper.tokens_per_batch) == ("bf16", 0)
    said = replace(recipe, precision="float32", tokens_per_batch=4096)
    old = recipe.on_device(large, gpu_bytes=int(16e9), has_bf16=False, profile="fixed")
    assert (old.precision, old.tokens_per_batch) == ("float32", 2048)
    assert said.on_device(large, gpu_bytes=int(80e9), has_bf16=True, profile="fixed") == said
