"""Luigi stages from a Wikipedia dump to a LUKE model and a report: `luigi --module workflows RunAll`.

run       the run: run.toml, its tables and presets
stages    each stage: its inputs, the parameters that change its bytes, and its work
base      the parts of every stage
engines   Beam, Spark, devices, processes
report    the report's pages
planning  the time and the space of a run, and how far it is
luke      the console script
"""

from workflows.base import commandline
from workflows.planning.plan import Plan
from workflows.run.file import Run
from workflows.stages.experiments import FineTuneGrid
from workflows.stages.fine_tuning import FineTune, Tune, TunedFineTune
from workflows.stages.languages import EvaluateLanguages
from workflows.stages.linking.documents import BuildDocuments, LinkDocuments
from workflows.stages.linking.evaluation import BuildLinker, EvaluateLinking
from workflows.stages.pages import ExtractPages, FetchDump, FetchQids, ReadTemplates
from workflows.stages.pretraining import ExportHuggingFace, Pretrain, PretrainRoberta, UpdateEntities
from workflows.stages.report import Report, RunAll, RunExperiments
from workflows.stages.sequences import BuildSequences, MergeSequences, TrainTokenizer
from workflows.stages.tables import (
    BuildContexts,
    BuildEntityVocab,
    BuildMentionTable,
    DiffDumps,
    MergeEntities,
    ResolveLinks,
    ResolveRedirects,
)

if commandline.is_luigi_command():
    commandline.prepare(commandline.luigis_arguments())
