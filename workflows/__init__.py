"""Luigi stages from a Wikipedia dump to a LUKE model and a report: `luigi --module workflows RunAll`."""

import sys

from workflows import commandline
from workflows.extraction import ExtractPages, FetchDump
from workflows.report import Report, RunAll
from workflows.sequences import BuildSequences, TrainTokenizer
from workflows.tables import BuildEntityVocab, BuildMentionTable, ResolveRedirects
from workflows.training import ExportHuggingFace, FineTune, Pretrain, PretrainRoberta

__all__ = [
    "BuildEntityVocab",
    "BuildMentionTable",
    "BuildSequences",
    "ExportHuggingFace",
    "ExtractPages",
    "FetchDump",
    "FineTune",
    "Pretrain",
    "PretrainRoberta",
    "Report",
    "ResolveRedirects",
    "RunAll",
    "TrainTokenizer",
]

if commandline.is_luigi_command():
    commandline.prepare(sys.argv[1:])
