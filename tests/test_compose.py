"""docker-compose.yml and the Dockerfile against the project: no container engine is needed."""

import shutil
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from conftest import ROOT

import workflows
from workflows.commandline import _known_flags

COMPOSE = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
SERVICES: dict[str, Any] = COMPOSE["services"]


def test_services() -> None:
    assert set(SERVICES) == {"luigid", "spark-master", "spark-worker", "app"}
    for service in SERVICES.values():
        assert service["image"] == "luke-from-wikipedia"
        assert service["volumes"] == ["data:/data"]
    assert set(COMPOSE["volumes"]) == {"data"}


@pytest.mark.parametrize("name", SERVICES)
def test_commands_exist_where_the_project_is_installed(name: str) -> None:
    program = SERVICES[name]["command"][0]
    assert shutil.which(program, path=str(Path(sys.executable).parent)), program


def test_the_application_uses_real_stages_and_parameters() -> None:
    command = SERVICES["app"]["command"]
    assert command[:4] == ["luigi", "--module", "workflows", "RunAll"]
    assert hasattr(workflows, command[3])
    assert {word for word in command[4:] if word.startswith("--")} <= set(_known_flags("RunAll"))
    assert command[command.index("--spark-master") + 1] == "spark://spark-master:7077"
    assert command[command.index("--scheduler-host") + 1] == "luigid"
    assert command[command.index("--workdir") + 1] == "/data"


def test_addresses_agree() -> None:
    master = SERVICES["spark-master"]["command"]
    assert (master[master.index("--host") + 1], master[master.index("--port") + 1]) == (
        "spark-master",
        "7077",
    )
    assert SERVICES["spark-worker"]["command"][-1] == "spark://spark-master:7077"
    for service, flag in (("luigid", "--port"), ("spark-master", "--webui-port")):
        command = SERVICES[service]["command"]
        port = command[command.index(flag) + 1]
        assert SERVICES[service]["ports"] == [f"127.0.0.1:{port}:{port}"]


def test_the_image_holds_what_the_project_needs() -> None:
    text = (ROOT / "Dockerfile").read_text()
    for name in ("pipeline", "model", "tasks", "workflows", "examples"):
        assert f"COPY {name} {name}" in text
    copied = next(line for line in text.splitlines() if line.startswith("COPY setup.py")).split()[1:-1]
    assert all((ROOT / name).is_file() for name in copied)
    assert "luigi.cfg" not in copied, "it would keep the application from luigid"
