"""What results of ours were made with, and why they may not be held against the paper's."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from model.config import PRESETS
from tasks.paper import DATASETS

Cell = Mapping[str, Any]
DONE = "done"
STATES = (DONE, "failed", "no data", "no weights")
PAPER_PRESETS = ("base", "large", "tuned")
"""Presets of fine-tuning that are the paper's values, or were found by its search."""

# Appendix of the paper, which counts CoNLL-2003's -DOCSTART- lines, too: 14,041 + 946, 3,250 + 216, 3,453 + 231.
# What the leaderboards hid is left out: the test splits of ReCoRD and SQuAD are the users' own.
SIZES: Mapping[str, tuple[str, Mapping[str, int]]] = {
    "entity_typing": ("examples", {"train": 1_998, "dev": 1_998, "test": 1_998}),
    "relation_classification": ("examples", {"train": 68_124, "dev": 22_631, "test": 15_509}),
    "ner": ("sentences", {"train": 14_041, "dev": 3_250, "test": 3_453}),
    "cloze_qa": ("questions", {"train": 100_730, "dev": 10_000}),
    "extractive_qa": ("questions", {"train": 87_599, "dev": 10_570}),
}


@dataclass(frozen=True)
class Caveat:
    """`mark` stands at each row that it is true of, `detail` beneath the table."""

    mark: str
    detail: str


@dataclass(frozen=True)
class Origin:
    """What the results of a variant on a task were made with; `dataset` is the paper's name of the task's data.

    `problems` are the seeds without a result, each with the reason. `is_papers_data` is whether a figure may be
    subtracted from the paper's: not with the project's examples, nor where a split has another size than the paper's.
    """

    dataset: str
    data: str
    weights: str
    preset: str
    done: tuple[int, ...]
    problems: tuple[str, ...]
    caveats: tuple[Caveat, ...]
    is_papers_data: bool

    @property
    def text(self) -> str:
        """One line: the data, the weights, the seeds, and what is to be known of them."""
        if not self.data and not self.weights:
            return f"{self.dataset}: {'; '.join(self.problems)}"
        made = f"data {self.data or '-'}, weights {self.weights or '-'}, fine-tuned with preset {self.preset}"
        caveats = [f"{caveat.mark}: {caveat.detail}" for caveat in self.caveats]
        done = [f"{_seeds(self.done)} done"] if self.done else []
        return "; ".join([f"{self.dataset}: {made}", *done, *self.problems, *caveats])


def origin_of(task: str, cells: Sequence[Cell]) -> Origin:
    """The origin of the cells of one task and one variant, which differ in their seeds alone.

    Raises: ValueError where they differ in more, since a mean over unlike things means nothing.
    """
    if not cells:
        return Origin(DATASETS[task], "", "", "", (), ("not among these experiments",), (), False)
    first = cells[0]
    _check_alike(cells)
    done = [cell for cell in cells if cell["state"] == DONE]
    wrong_sizes = _wrong_sizes(task, done[0]["metrics"].get("data", {})) if done else []
    return Origin(
        dataset=DATASETS[task],
        data=first["data"]["name"],
        weights=weights_text(first["weights"]),
        preset=first["preset"],
        done=tuple(cell["seed"] for cell in done),
        problems=tuple(_problems(cells)),
        caveats=tuple(_caveats(task, first, done[0]["configuration"], wrong_sizes)) if done else (),
        is_papers_data=not first["data"]["is_example"] and not wrong_sizes,
    )


def weights_text(weights: Mapping[str, Any]) -> str:
    """The weights' name, and of the pipeline's own what they started from; empty where there are none."""
    name = str(weights.get("name", ""))
    if not weights.get("is_own"):
        return name
    return f"the pipeline's own ({name}{', from ' * bool(weights.get('base_model'))}{weights.get('base_model', '')})"


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


def _check_alike(cells: Sequence[Cell]) -> None:
    """Raises: ValueError where cells differ in more than the seed, or two have the same."""
    first = cells[0]
    name = f"experiments.json: {first['task']}, {first['variant']}"
    for what, field in (("data", "data"), ("weights", "weights"), ("preset", "preset")):
        found = [cell[field] for cell in cells]
        if any(value != found[0] for value in found):
            raise ValueError(
                f"{name}: the seeds have different {what}; wanted the same for all, run them again"
            )
    configurations = [cell["configuration"] for cell in cells if cell["state"] == DONE]
    for field in ("hyperparameters", "model"):
        if any(each.get(field) != configurations[0].get(field) for each in configurations):
            raise ValueError(
                f"{name}: the seeds have different {field}; wanted the same for all, run them again"
            )
    seeds = [cell["seed"] for cell in cells]
    if len(set(seeds)) < len(seeds):
        raise ValueError(f"{name}: found seeds {', '.join(map(str, seeds))}; wanted each once")


def _wrong_sizes(task: str, data: Mapping[str, Any]) -> list[str]:
    """The splits that have not as many examples as the paper says; those that were not counted are not known."""
    what, sizes = SIZES[task]
    counts = {split: data.get(split, {}).get(what) for split in sizes}
    return [
        f"{split} has {count:,} {what}, not {sizes[split]:,}"
        for split, count in counts.items()
        if count is not None and count != sizes[split]
    ]


def _caveats(
    task: str, cell: Cell, configuration: Mapping[str, Any], wrong_sizes: Sequence[str]
) -> list[Caveat]:
    found = []
    if cell["data"]["is_example"]:
        found.append(Caveat("example data", f"the project's tiny examples, not {DATASETS[task]}"))
    elif wrong_sizes:
        found.append(Caveat("other data", f"not {DATASETS[task]} as in the paper: {', '.join(wrong_sizes)}"))
    is_demo = cell["weights"]["is_own"] and cell["weights"]["preset"] == "demo"
    large, model = PRESETS["large"], configuration.get("model", {})
    size = model.get("num_hidden_layers"), model.get("hidden_size")
    wanted = large.num_hidden_layers, large.hidden_size
    if is_demo or size != wanted:
        layers, units = ("?" if each is None else f"{each:,}" for each in size)
        found.append(
            Caveat(
                "demo-size model" if is_demo else "other model size",
                f"{layers} layers of {units} units, not {wanted[0]} of {wanted[1]:,}",
            )
        )
    if cell["preset"] not in PAPER_PRESETS:
        found.append(Caveat("other hyper-parameters", f"preset {cell['preset']}, not the paper's values"))
    return found
