"""The origins of our results, and their differences from the paper's.

Three degrees, by the caveats of a result:

- `EXAMPLE_DATA`, `TINY_SIZE`: the project's examples or a tiny model show that everything works, and nothing of the
  paper's model. No difference to the paper is made, and scores of a few examples are not shown beside its figures.
- `OTHER_DATA`: a split has another size than the paper's. It may be a result worth having, but figures of different
  test sets are not subtracted.
- `OTHER_SIZE`, `OTHER_SETTINGS`, `NO_ENTITIES`: the paper's data, but another model size, other hyper-parameters, or
  LUKE on questions without a mention table. The difference is the question then, so it is made; the mark says that it
  is not like for like.
"""

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from model.luke.config import PRESETS
from tasks.finetuning.paper import DATASETS, fine_tuning

Cell = Mapping[str, Any]
DONE = "done"
TUNED = "tuned"
SEARCHED = ("Learning rate", "Batch size", "Training epochs", "Patience")
"""The settings that a search on dev chooses: with the preset TUNED they need not be those that the paper's found."""
EXAMPLE_DATA, TINY_SIZE = "example data", "tiny model"
OTHER_DATA, OTHER_SIZE, OTHER_SETTINGS = "other data", "other model size", "other hyper-parameters"
NO_ENTITIES = "no entities of Wikipedia"
NO_DIFFERENCE = (EXAMPLE_DATA, TINY_SIZE, OTHER_DATA)
CLASSIFIER_RATE = "Learning rate of the classifier"
NAMED_PARTS = 2  # files of a corpus; a dump of the English Wikipedia has dozens

_TEXTS = tomllib.loads(Path(__file__).with_name("texts.toml").read_text(encoding="utf-8"))
NOTES: Mapping[str, str] = _TEXTS["notes"]
SIZES: Mapping[str, tuple[str, Mapping[str, int]]] = {
    task: (sizes.pop("unit"), sizes) for task, sizes in _TEXTS["sizes"].items()
}


class Caveat(NamedTuple):
    """`mark` is shown at each row that it is true of, `detail` under the table."""

    mark: str
    detail: str


@dataclass(frozen=True)
class Origin:
    """The origin of the results of a variant on a task."""

    dataset: str  # the paper's name of the task's data
    data: str
    weights: str
    preset: str
    done: tuple[int, ...]
    problems: tuple[str, ...]  # the seeds without a result, each with the reason
    caveats: tuple[Caveat, ...]

    @property
    def marks(self) -> tuple[str, ...]:
        return tuple(caveat.mark for caveat in self.caveats)

    @property
    def has_difference(self) -> bool:
        """Return whether the paper's figure may be subtracted."""
        return not set(NO_DIFFERENCE) & {*self.marks}

    @property
    def text(self) -> str:
        """One line: the data, the weights, the seeds, and what is to be known of them."""
        if not self.data and not self.weights:
            return f"{self.dataset}: {'; '.join(self.problems)}"
        made = f"data {self.data or '-'}, weights {self.weights or '-'}, fine-tuned with preset {self.preset}"
        done = [f"{_seeds(self.done)} done"] if self.done else []
        return "; ".join([f"{self.dataset}: {made}", *done, *self.problems, *map(": ".join, self.caveats)])


def origin_of(task: str, cells: Sequence[Cell]) -> Origin:
    """The origin of the cells of one task and one variant, which differ in their seeds alone."""
    if not cells:
        return Origin(DATASETS[task], "", "", "", (), ("not among these experiments",), ())
    first, done = cells[0], [cell for cell in cells if cell["state"] == DONE]
    return Origin(
        dataset=DATASETS[task],
        data=first["data"]["name"],
        weights=weights_text(first["weights"]),
        preset=first["preset"],
        done=tuple(cell["seed"] for cell in done),
        problems=tuple(_problems(cells)),
        caveats=tuple(caveat for find in _CAVEATS for caveat in find(done[0])) if done else (),
    )


def marks_of(origins: Sequence[Origin]) -> tuple[str, ...]:
    """The marks of a row, with the data sets that they are true of unless that is all of those done."""
    done = [origin for origin in origins if origin.done]
    datasets: dict[str, list[str]] = {}
    for origin in done:
        for mark in origin.marks:
            datasets.setdefault(mark, []).append(origin.dataset)
    return tuple(mark if len(of) == len(done) else f"{mark} ({', '.join(of)})" for mark, of in datasets.items())


def meaning(marks: Sequence[str]) -> str:
    """The meaning of marks, to be read before the figures: some figures say nothing, and others are unlike."""
    unlike = [mark for mark in marks if mark not in (EXAMPLE_DATA, TINY_SIZE)]
    either = " or ".join(f'"{mark}"' for mark in unlike)
    is_meant = {
        "examples": EXAMPLE_DATA in marks,
        "tiny": TINY_SIZE in marks,
        "unlike": bool(unlike),
        "other_data": OTHER_DATA in unlike,
        "other_model": bool({OTHER_SIZE, OTHER_SETTINGS} & {*unlike}),
    }
    return " ".join(_TEXTS["marks"][name].format(unlike=either) for name, is_so in is_meant.items() if is_so)


def weights_text(weights: Mapping[str, Any]) -> str:
    """The weights' name; of the pipeline's own what they started from and read, too. Empty where there are none."""
    name = str(weights.get("name", ""))
    if not weights.get("is_own"):
        return name
    base, corpus = weights["base_model"], weights["corpus"]
    first, *others = corpus.split(", ")
    if len(others) >= NAMED_PARTS:
        corpus = f"{first} and {len(others)} more"
    parts = [name, f"from {base}" * bool(base), f"corpus {corpus}" * bool(corpus)]
    return f"the pipeline's own ({', '.join(filter(None, parts))})"


def _seeds(numbers: Sequence[int]) -> str:
    return f"seed{'s' * (len(numbers) > 1)} {', '.join(map(str, numbers))}"


def _problems(cells: Sequence[Cell]) -> list[str]:
    """The seeds without a result, those with the same state and reason together."""
    seeds: dict[str, list[int]] = {}
    for cell in cells:
        if cell["state"] != DONE:
            problem = cell["state"] + f" ({cell['reason']})" * bool(cell["reason"])
            seeds.setdefault(problem, []).append(cell["seed"])
    return [f"{_seeds(numbers)}: {problem}" for problem, numbers in seeds.items()]


def _of_entities(cell: Cell) -> Iterator[Caveat]:
    used = cell["configuration"]
    if cell["task"] == "extractive_qa" and used["entities"] and "entities_sha256" not in used:
        yield Caveat(NO_ENTITIES, "no mention table was given to find Wikipedia's entities in the texts")


def _of_data(cell: Cell) -> Iterator[Caveat]:
    dataset = DATASETS[cell["task"]]
    if cell["data"]["is_example"]:
        yield Caveat(EXAMPLE_DATA, f"the project's tiny examples, not {dataset}")
        return
    (what, sizes), data = SIZES[cell["task"]], cell["metrics"].get("data", {})
    counts = {split: data.get(split, {}).get(what) for split in sizes}  # none where nobody counted
    wrong = [
        f"{split} has {count:,} {what}, not {sizes[split]:,}"
        for split, count in counts.items()
        if count not in (None, sizes[split])
    ]
    if wrong:
        yield Caveat(OTHER_DATA, f"not {dataset} as in the paper: {', '.join(wrong)}")


def _of_size(cell: Cell) -> Iterator[Caveat]:
    """Tiny is what that preset made, and whatever is no larger, by any name."""
    model, tiny, large = cell["configuration"]["model"], PRESETS["tiny"], PRESETS["large"]
    layers, units = model["num_hidden_layers"], model["hidden_size"]
    is_of_tiny = cell["weights"]["is_own"] and cell["weights"]["preset"] == "tiny"
    is_tiny = is_of_tiny or (layers <= tiny.num_hidden_layers and units <= tiny.hidden_size)
    if is_tiny or (layers, units) != (large.num_hidden_layers, large.hidden_size):
        wanted = f"{large.num_hidden_layers} of {large.hidden_size:,}"
        yield Caveat(TINY_SIZE if is_tiny else OTHER_SIZE, f"{layers} layers of {units:,} units, not {wanted}")


def _of_settings(cell: Cell) -> Iterator[Caveat]:
    """From the values that were used: the name of a preset tells neither what was changed nor what a search kept.

    The paper has one learning rate, so the classifier's is held against that of the rest.
    """
    used = _used_values(cell)
    paper = {CLASSIFIER_RATE: used["Learning rate"], "Patience": 0} | fine_tuning(cell["task"])
    exempt = SEARCHED if cell["preset"] == TUNED else ()
    differences = [
        f"{name} {value:g}, not {paper[name]:g}"
        for name, value in used.items()
        if value != paper[name] and name not in exempt
    ]
    if shift := cell["metrics"].get("bias_shift"):
        differences.append(f"the bias of {', '.join(shift)} moved by dev's F1")
    if differences:
        yield Caveat(OTHER_SETTINGS, f"preset {cell['preset']}: {', '.join(differences)}")


def _used_values(cell: Cell) -> dict[str, Any]:
    """Each hyper-parameter that can be set, by the names of the paper; `tokens_per_batch` only bounds memory."""
    used, model = cell["configuration"]["hyperparameters"], cell["configuration"]["model"]
    beta_1, beta_2 = used["betas"]
    used = {**used, "dropout": model["hidden_dropout_prob"], "beta_1": beta_1, "beta_2": beta_2}
    return {name: used[field] for name, field in _TEXTS["hyperparameters"].items()}


# At most one caveat each.
_CAVEATS = (_of_data, _of_entities, _of_size, _of_settings)
