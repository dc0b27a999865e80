"""Luigi stages from a Wikipedia dump to a LUKE model and a report: `luigi --module workflows RunAll`."""

import sys

from workflows import commandline
from workflows.experiments import FineTuneGrid
from workflows.extraction import ExtractPages, FetchDump
from workflows.fine_tuning import FineTune
from workflows.report import Report, RunAll, RunExperiments
from workflows.sequences import BuildSequences, TrainTokenizer
from workflows.tables import BuildEntityVocab, BuildMentionTable, ResolveRedirects
from workflows.training import ExportHuggingFace, Pretrain, PretrainRoberta
from workflows.tuning import Tune

__all__ = [
    "BuildEntityVocab",
    "BuildMentionTable",
    "BuildSequences",
    "ExportHuggingFace",
    "ExtractPages",
    "FetchDump",
    "FineTune",
    "FineTuneGrid",
    "Pretrain",
    "PretrainRoberta",
    "Report",
    "ResolveRedirects",
    "RunAll",
    "RunExperiments",
    "TrainTokenizer",
    "Tune",
]

if commandline.is_luigi_command():
    commandline.prepare(sys.argv[1:])
