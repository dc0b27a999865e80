"""Where jobs run."""

from typing import Any

import luigi

from workflows.base import machine, parameters


class WorkerSettings:
    """Worker processes."""

    processes = parameters.WholeNumber(
        least=1,
        default=machine.processors(),
        significant=False,
        description="worker processes (Luigi's own --workers stays 1); default: the machine's processors that a "
        "container may use",
    )


class BeamSettings(WorkerSettings):
    """Where Beam jobs run."""

    beam_options = luigi.Parameter(
        default="",
        significant=False,
        description="options of another Beam runner, as '--runner=... --key=value'",
    )


class SparkSettings(WorkerSettings):
    """Where Spark jobs run, and how."""

    workdir: Any  # of every stage

    spark_master = parameters.Matching(
        r"|local(\[(\d+|\*)(, *\d+)?\])?|spark://[^:/]+:\d+.*|yarn|k8s://.+",
        "local, local[N], spark://HOST:PORT, yarn or k8s://...",
        default="",
        significant=False,
        description="URL of a Spark master; empty: local[processes]",
    )
    spark_conf = parameters.Pairs(
        r"spark\.[\w.-]+",
        "spark.NAME=VALUE, each name once",
        significant=False,
        description="a setting of Spark, as spark.executor.memory=8g; may be repeated",
    )
    scratch = luigi.Parameter(
        default="",
        significant=False,
        description="folder for what Spark sets aside while it works; empty: .scratch in the work directory",
    )
