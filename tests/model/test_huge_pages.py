"""Torch takes memory in large pages once `model` is imported, unless the user says otherwise."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support import ROOT

SYSTEM = Path("/sys/kernel/mm/transparent_hugepage/enabled")
PROGRAM = """
import re
import model, torch
tensor = torch.zeros(1 << 24)
place = tensor.data_ptr()
for part in re.split(r"(?m)^(?=[0-9a-f]+-[0-9a-f]+ )", open("/proc/self/smaps").read())[1:]:
    start, end = (int(each, 16) for each in part.split()[0].split("-"))
    if start <= place < end:
        print("hg" in part.split("VmFlags:")[1].split())
"""


@pytest.mark.skipif(not SYSTEM.is_file(), reason="the system has no transparent huge pages")
@pytest.mark.parametrize(("given", "wanted"), [(None, "True"), pytest.param("0", "False", marks=pytest.mark.slow)])
def test_a_large_tensor_asks_for_them(given: str | None, wanted: str) -> None:
    environment = {name: value for name, value in os.environ.items() if name != "THP_MEM_ALLOC_ENABLE"}
    if given is not None:
        environment["THP_MEM_ALLOC_ENABLE"] = given
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], env=environment, cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == wanted
