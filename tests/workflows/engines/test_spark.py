"""Spark as the user has it: settings, scratch, the driver's address, and why it did not start or has ended."""

import os
import re
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from py4j.protocol import Py4JError

from tests.support import ROOT
from tests.support.stages import run_of
from workflows import ResolveRedirects
from workflows.engines import spark


def test_where_scratch_is(users_conf: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stage = ResolveRedirects(settings=run_of(tmp_path / "work"))
    here = ResolveRedirects(settings=run_of(tmp_path / "work", machine={"scratch": "here"}))
    assert spark.scratch_root(stage) == str(tmp_path / "work" / ".scratch")
    assert spark.scratch_root(here) == os.path.abspath("here")
    monkeypatch.setenv("SPARK_LOCAL_DIRS", "/disk1,/disk2")
    assert spark.scratch_root(stage) == ""
    assert spark.scratch_root(here) == os.path.abspath("here")


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("spark.sql.ansi.enabled=false", r"=false: the tables depend on it; leave it out$"),
        ("spark.master=yarn", r"=yarn: --spark-master sets it$"),
        ("spark.local.dir=/tmp", r"=/tmp: machine.scratch sets it$"),
    ],
)
def test_settings_that_are_not_the_users(setting: str, message: str) -> None:
    name, value = setting.split("=")
    conf = {"spark.executor.cores": "2", name: value}
    stage = ResolveRedirects(settings=run_of(machine={"spark_conf": conf}))
    with pytest.raises(ValueError, match=rf"^machine\.spark_conf {name}{message}"):
        stage.check_needs()


def test_a_folder_that_spark_would_take_for_two(tmp_path: Path) -> None:
    stage = ResolveRedirects(settings=run_of(tmp_path / "a,b"))
    with pytest.raises(ValueError, match=r"^machine\.scratch .*a,b/\.scratch: .* at the comma"):
        stage.check_needs()


@pytest.mark.parametrize("name", ["a:[b]", "x/a?:b/y", "12:00*", "{a}:1", "a\\:b", "über: [1]"])
def test_a_name_that_spark_takes_for_an_address_and_a_pattern(tmp_path: Path, name: str) -> None:
    wanted = r"^--workdir /.*: Spark reads no name with a colon and one of \[\]\{\}\*\?\\; give another"
    with pytest.raises(ValueError, match=wanted):
        ResolveRedirects(settings=run_of(tmp_path / name)).check_needs()
    for near in (name.replace(":", ""), "12:00", "a:b/[c]"):
        ResolveRedirects(settings=run_of(tmp_path / near)).check_needs()


def test_a_name_that_is_no_utf8(tmp_path: Path) -> None:
    stage = ResolveRedirects(settings=run_of(f"{tmp_path}/caf\udce9"))
    with pytest.raises(ValueError, match=r"^--workdir '/.*caf\\udce9': no UTF-8, which Spark wants"):
        stage.check_needs()


# Why Spark did not start

STACK = "An error occurred while calling X.\n: org.apache.spark.SparkException: Outer\n\tat org.a.B\n"


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (f"{STACK}Caused by: java.net.BindException: Inner\n\tat c.D\n", "java.net.BindException: Inner"),
        (STACK, "org.apache.spark.SparkException: Outer"),
        ("Java ended\nWARNING: x\n\nError\nNo space\nat a.B\n", "Java ended; Error; No space"),
        ("No such file", "No such file"),
    ],
)
def test_the_cause_of_an_error(error: str, reason: str) -> None:
    assert spark._reason(error) == reason


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "value", "reason"),
    [
        ("spark.driver.memory", "900000g", "initialization of VM; Could not reserve enough space"),
        ("spark.driver.bindAddress", "203.0.113.7", "java.net.BindException: .*Cannot assign"),
        ("spark.executor.cores", "zero", "Executor cores must be a positive number"),
    ],
)
def test_why_spark_did_not_start(tmp_path: Path, name: str, value: str, reason: str) -> None:
    code = (
        "from tests.support.stages import run_of\n"
        "from workflows import ResolveRedirects\n"
        "from workflows.engines import spark\n"
        f"machine = {{'spark_conf': {{{name!r}: {value!r}}}}}\n"
        f"stage = ResolveRedirects(settings=run_of({str(tmp_path)!r}, machine=machine))\n"
        "print('before')\n"
        "try:\n    spark.session_of(stage, 1 << 20)\n"
        "except ValueError as error:\n    print(error)\n"
    )
    own = {name: value for name, value in os.environ.items() if name != "SPARK_CONF_DIR"}  # tests may have theirs
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True, env=own)
    before, told = done.stdout.splitlines()
    assert before == "before"
    assert re.search(rf"Spark did not start \(.*{reason}", told), done


# Executors


def test_the_driver_is_found_by_its_address_on_the_way_to_the_master(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SPARK_LOCAL_HOSTNAME", raising=False)
    with socket.create_server(("127.0.0.1", 0)) as master:
        url = f"spark://127.0.0.1:1,127.0.0.1:{master.getsockname()[1]}"  # the first is down
        assert spark.driver_address(url) == {"spark.driver.host": "127.0.0.1"}
        monkeypatch.setenv("SPARK_LOCAL_HOSTNAME", "my-name")
        assert spark.driver_address(url) == {}
    assert spark.driver_address("yarn") == {}


# Failures


@pytest.mark.parametrize(
    ("error", "why"), [(ConnectionRefusedError(111, "Connection refused"), ".*refused"), (EOFError(), "nobody answers")]
)
def test_java_that_has_ended_is_told_in_a_line(error: Exception, why: str) -> None:
    line = rf"^BuildEntityVocab: Spark's Java has ended, .* \({why}\); the same command"
    of_spark = compile("raise error", "serializers.py", "exec")
    with pytest.raises(ValueError, match=line), spark.spark_work("BuildEntityVocab"):
        exec(of_spark, {"__name__": "pyspark.serializers", "error": error})
    with pytest.raises(type(error)), spark.spark_work("BuildEntityVocab"):
        raise type(error)  # of somebody else: no word about Java


def test_java_that_ended_before_its_rows_were_fetched_is_told_in_a_line() -> None:
    """Spark's own code then fails in turn; the same failure of somebody else is no word about Java."""
    lines = "try:\n    raise error\nfinally:\n    raise UnboundLocalError('sockfile')"
    code = compile(lines, "util.py", "exec")
    ended = Py4JError("An error occurred while calling None.None")
    line = r"^ResolveRedirects: Spark's Java has ended, .* \(nobody answers\); the same command"
    with pytest.raises(ValueError, match=line), spark.spark_work("ResolveRedirects"):
        exec(code, {"__name__": "pyspark.util", "error": ended})
    for module, error in (("elsewhere", ended), ("pyspark.util", KeyError("x"))):
        with pytest.raises(UnboundLocalError), spark.spark_work("ResolveRedirects"):
            exec(code, {"__name__": module, "error": error})


KILLED = """
from pipeline.jobs import spark_session
from pyspark import SparkContext
from workflows.engines import spark

session = spark_session.session("local[1]", 1 << 30)
try:
    with spark.spark_work("BuildEntityVocab"):
        rows = session.range(1 << 20).toLocalIterator()
        next(rows)
        SparkContext._gateway.proc.kill()
        SparkContext._gateway.proc.wait()
        for _ in rows:
            pass
except ValueError as error:
    print(error)
"""


@pytest.mark.slow
def test_java_that_is_killed_is_told_in_a_line() -> None:
    command = [sys.executable, "-c", KILLED]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    assert "Spark's Java has ended" in result.stdout
