"""A short form of the storm; `python -m tests.support.storm` is the long one."""

import subprocess
import sys

import pytest

from tests.support import DATA, ROOT
from tests.support.storm import KINDS

pytestmark = pytest.mark.slow


def test_a_storm_ends_with_the_bytes_of_a_calm_run() -> None:
    """Each kind of disturbance once; the storm itself looks at bytes, messages and processes."""
    namespaces = ["unshare", "--user", "--map-root-user", "--mount", "true"]
    if subprocess.run(namespaces, capture_output=True, check=False).returncode:
        pytest.skip("mount namespaces are not permitted here")
    options = {
        "disturbances": len(KINDS), "pause": 3, "dump": DATA / "wiki-40.xml", "block-size": 4096,
        "seed": 1286, "minutes": 10,
    }  # fmt: skip
    words = [f"--{name}={value}" for name, value in options.items()]
    command = [sys.executable, "-m", "tests.support.storm", *words, "--stages", "BuildSequences"]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=1200)
    assert result.returncode == 0, result.stdout + result.stderr
    assert f"\n{len(KINDS)} disturbances in " in result.stdout
    assert all(f"1  {kind}: " in result.stdout for kind in KINDS)
