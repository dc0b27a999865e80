"""The settings of a Spark session: a user's stand, but for those that tables are computed with."""

import os
import sys
from pathlib import Path
from typing import Any

import pytest

from pipeline.jobs import spark_session
from tests.support import ROOT

DEFAULTS = """
# a comment
spark.executor.memory   3g
spark.ui.enabled=true
spark.driver.extraJavaOptions: -Da=b \\
    -Dc=d
spark.sql.adaptive.enabled true
spark.master yarn
"""


def started(monkeypatch: pytest.MonkeyPatch, master: str, **options: Any) -> dict[str, str]:
    """The settings with which a session would be started."""
    found: dict[str, str] = {}

    class Builder:
        def appName(self, name: str) -> "Builder":
            return self

        def config(self, name: str, value: str) -> "Builder":
            found[name] = value
            return self

        def getOrCreate(self) -> None:
            pass

    monkeypatch.setattr(spark_session, "SparkSession", type("Session", (), {"builder": Builder()}))
    monkeypatch.setattr(spark_session, "start_java", lambda settings: None)
    spark_session.session(master, 1 << 30, **options)
    return found


def test_a_users_settings_stand(users_conf: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (users_conf / "spark-defaults.conf").write_text(DEFAULTS)
    ours = started(monkeypatch, "local[2]", is_short=True, defaults={"spark.executor.memory": "7g"})
    assert ours["spark.executor.memory"] == "3g"
    assert ours["spark.ui.enabled"] == "true"
    assert ours["spark.driver.extraJavaOptions"] == "-Da=b -Dc=d"
    assert ours["spark.driver.memory"] == "1024m"
    # What tables are computed with, and the master, have to be ours.
    assert ours["spark.sql.adaptive.enabled"] == "false"
    assert ours["spark.master"] == "local[2]"
    monkeypatch.setenv("SPARK_EXECUTOR_MEMORY", "4g")
    assert started(monkeypatch, "local")["spark.executor.memory"] == "4g"
    wanted = {"spark.executor.memory": "5g", "spark.sql.adaptive.enabled": "true"}
    assert started(monkeypatch, "local", wanted=wanted)["spark.executor.memory"] == "5g"
    assert started(monkeypatch, "local", wanted=wanted)["spark.sql.adaptive.enabled"] == "false"


def test_a_users_python_and_configuration_stand(users_conf: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    started(monkeypatch, "local")
    assert os.environ["PYSPARK_PYTHON"] == sys.executable
    assert os.environ["SPARK_CONF_DIR"] == str(users_conf)
    monkeypatch.setenv("PYSPARK_PYTHON", "/opt/python")
    started(monkeypatch, "local")
    assert os.environ["PYSPARK_PYTHON"] == "/opt/python"
    monkeypatch.delenv("SPARK_CONF_DIR")
    started(monkeypatch, "local")
    assert os.environ["SPARK_CONF_DIR"] == str(ROOT / "pipeline/jobs/spark_conf")
    monkeypatch.delenv("SPARK_CONF_DIR")
    (users_conf.parent / "spark" / "conf").mkdir(parents=True)
    monkeypatch.setenv("SPARK_HOME", str(users_conf.parent / "spark"))
    started(monkeypatch, "local")
    assert os.environ["SPARK_CONF_DIR"] == str(users_conf.parent / "spark" / "conf")


@pytest.mark.skipif(sys.platform != "linux", reason="other systems name their locales otherwise")
@pytest.mark.parametrize(
    ("variables", "java_reads"),
    [
        ({"LC_ALL": "C"}, "C.UTF-8"),
        ({"LANG": "de_DE.ISO-8859-1"}, "C.UTF-8"),
        ({}, "C.UTF-8"),
        ({"LANG": "fr_FR.UTF-8"}, None),
        ({"LC_ALL": "en_US.UTF-8", "LANG": "C"}, "en_US.UTF-8"),
    ],
)
def test_java_reads_names_of_files_in_utf8(
    users_conf: Path, monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], java_reads: str | None
) -> None:
    for name in ("LC_ALL", "LC_CTYPE", "LANG"):
        monkeypatch.setenv(name, "")  # so that it is as before behind the test
        monkeypatch.delenv(name)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    started(monkeypatch, "local")
    assert os.environ.get("LC_ALL") == java_reads


def test_a_process_has_one_java(spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """However often its session is asked for."""
    monkeypatch.setattr(spark_session, "launch_gateway", lambda *_: pytest.fail("another Java"))
    assert spark_session.session("local[2]", 1 << 30) is spark
