"""Devices: those that are not there, their precision, and rates that are measured or published."""

import os

import pytest
import torch

from model.training.devices import Peaks, deterministic, has_bf16, matrix_rate, published_rate, resolve_device

CPU = torch.device("cpu")


def test_devices() -> None:
    assert resolve_device("cpu") == torch.device("cpu")
    assert resolve_device("auto").type in ("cpu", "cuda")
    with pytest.raises(ValueError, match="device 'gpu' is unknown; use auto, cpu, cuda or cuda:N"):
        resolve_device("gpu")
    with pytest.raises(ValueError, match=r"device 'cuda:99' is not there"):
        resolve_device("cuda:99")


def test_matrix_rate_is_measured_and_draws_nothing() -> None:
    state = torch.get_rng_state()
    single = matrix_rate(CPU, torch.float32, seconds=0.05)
    assert matrix_rate(CPU, torch.float32, seconds=0.05) == single, "once a process"
    assert torch.equal(torch.get_rng_state(), state)


def test_peaks_of_a_cpu_have_no_published_rate() -> None:
    assert Peaks.of(CPU, narrow=False) == Peaks(matrix_rate(CPU, torch.float32))


@pytest.mark.parametrize(
    ("name", "tera"),
    [
        ("NVIDIA A100-SXM4-80GB", 312),
        ("NVIDIA H100 80GB HBM3", 989),
        ("NVIDIA H100 PCIe", 756),
        ("NVIDIA H200", 989),
        ("NVIDIA L40S", 362),
        ("NVIDIA GeForce RTX 4090", 165),
    ],
)
def test_published_rate_of_a_device_by_its_name(name: str, tera: float) -> None:
    assert published_rate(name) == tera * 1e12


@pytest.mark.parametrize(
    "name", ["NVIDIA A10G", "NVIDIA H200 MIG 1g.18gb", "NVIDIA GeForce RTX 4090 Laptop GPU", "x86_64, 2 threads"]
)
def test_published_rate_of_what_only_looks_like_a_device_is_unknown(name: str) -> None:
    assert published_rate(name) is None


def test_a_processor_says_whether_it_has_bf16(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where torch has no word for it."""
    for features in ({"avx512_bf16": True}, {"avx512_bf16": False, "amx_bf16": True}):
        monkeypatch.setattr(torch.cpu, "get_capabilities", lambda found=features: found, raising=False)
        assert has_bf16(CPU)
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: {"avx512_bf16": False, "avx2": True})
    assert not has_bf16(CPU)
    monkeypatch.delattr(torch.cpu, "get_capabilities")
    assert not has_bf16(CPU)


def test_deterministic_algorithms_are_used_where_asked_for_and_only_there(monkeypatch: pytest.MonkeyPatch) -> None:
    """The setting of the caller comes back."""
    monkeypatch.delenv("CUBLAS_WORKSPACE_CONFIG", raising=False)
    with deterministic(False):
        assert not torch.are_deterministic_algorithms_enabled()
    with deterministic(True):
        assert torch.are_deterministic_algorithms_enabled()
        assert os.environ["CUBLAS_WORKSPACE_CONFIG"] == ":4096:8"
    assert not torch.are_deterministic_algorithms_enabled()
