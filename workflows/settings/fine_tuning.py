"""Fine-tuning, the search for its hyperparameters, and the grid."""

import luigi

from tasks.finetuning.variants import VARIANTS
from workflows.base import parameters
from workflows.base.experiment_file import TASKS
from workflows.base.parameters import AUTO
from workflows.settings.pretraining import SEED, LukeSettings


class CellSettings(LukeSettings):
    """All that fine-tunings use but the task, the variant and what a preset says."""

    experiments = luigi.Parameter(
        default="",
        description="TOML file that names the folders of data and weights for all tasks and variants; empty: the "
        "project's examples and the pipeline's weights",
    )
    task_preset = parameters.OneOf(
        AUTO,
        "tiny",
        "demo",
        "small-encoder",
        "base",
        "large",
        default=AUTO,
        description="hyperparameters of fine-tuning; auto: those for the width of given weights (from 768 on base, "
        "from 1024 on large, below small-encoder), or else those of --preset",
    )
    allow_no_predictions = luigi.BoolParameter(
        significant=False,
        description="let a model pass that predicts nothing on dev and test, as --preset tiny does",
    )


class TaskSettings(CellSettings):
    """One task and one variant, for FineTune, TunedFineTune and Tune."""

    seed = parameters.WholeNumber(default=SEED, description="seed of fine-tuning")
    task = parameters.OneOf(*TASKS, default="ner", description="the fine-tuning task")
    variant = parameters.OneOf(*VARIANTS, default="luke", description="a row of tasks/finetuning/variants.py")
    data = luigi.Parameter(
        default="",
        description="folder of the task's train, dev and test files; empty: what --experiments says",
    )
    negative_label = luigi.Parameter(
        default="",
        description="the relation that means none and is not scored; empty: no_relation or Other, if there",
    )
    tag_column = luigi.Parameter(
        default="",
        description="where files of ner have the tags: a column's number (from 1, or -1 for the last) or its name in "
        "the first line, a field of JSON or a table, a key in MISC of CoNLL-U; empty: what --experiments says, or the "
        "last column, ner_tags or NER",
    )
    weights = luigi.Parameter(
        default="",
        description="folder or name of weights (ours, pretrained or fine-tuned, or transformers' LUKE, RoBERTa or "
        "BERT); empty: what --experiments says, or the pipeline's",
    )
    mentions = luigi.Parameter(
        default="",
        description="folder of the mention table that finds the entities of extractive_qa; empty: what --experiments "
        "says, or BuildMentionTable's",
    )


class WeightSettings:
    """The files of a fine-tuning that are kept."""

    drop_weights = luigi.BoolParameter(description="keep scores and predictions, not the fine-tuned weights")


class SearchSettings:
    """The search for hyperparameters, also where its result is used."""

    learning_rates = parameters.ListOf(
        parameters.PositiveNumber(), default="1e-5,2e-5,3e-5", description="peak learning rates to try"
    )
    batch_sizes = parameters.ListOf(
        parameters.WholeNumber(least=1), default="4,8,16,32,64", description="batch sizes to try"
    )
    epoch_counts = parameters.ListOf(
        parameters.WholeNumber(least=1), default="2,3,5", description="numbers of epochs to try"
    )
    tuning_patience = parameters.WholeNumber(
        default=2,
        description="epochs in a row without a better score on dev that end a fine-tuning of the search; 0: none do",
    )


class GridSettings(SearchSettings, WeightSettings, CellSettings):
    """The grid of tasks, variants and seeds, and all stages upstream of its cells."""

    tuned = luigi.BoolParameter(
        description="take the learning rate, batch size and epochs that the stage Tune finds (a grid for each task but "
        "extractive_qa, which the paper did not tune, and each variant)"
    )
    tasks = parameters.ListOf(
        parameters.OneOf(*TASKS), default=",".join(TASKS), description="fine-tuning tasks"
    )
    variants = parameters.ListOf(
        parameters.OneOf(*VARIANTS),
        default="luke,roberta_extra_training",
        description="rows of tasks/finetuning/variants.py",
    )
    seeds = parameters.ListOf(parameters.WholeNumber(), default="42", description="seeds of fine-tuning")

    def check_tuning(self) -> None:
        """Raises: ValueError where the search is described and its result is not asked for."""
        for name in ("learning_rates", "batch_sizes", "epoch_counts", "tuning_patience"):
            given, default = getattr(self, name), getattr(type(self), name)
            if not self.tuned and given != default.normalize(default._default):
                flag = f"--{name.replace('_', '-')} {default.serialize(given)}"
                raise ValueError(f"{flag}: says what the search tries; pass --tuned, too, or leave it out")
