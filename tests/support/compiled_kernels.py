"""Compile Triton's kernels for a GPU of a capability, 90 for example, and print the name of each; no GPU is needed."""

import sys
from collections.abc import Iterator
from typing import Any

import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

from model.kernels import triton_kernels as kernels

NARROW, WIDE, INTEGER, NUMBER = "*bf16", "*fp32", "i32", "fp32"


def forms() -> Iterator[tuple[Any, list[str], dict[str, Any]]]:
    """Yield each kernel with the types of its arguments and its constants, as `narrow` calls it for `large`."""
    for drops in (True, False):
        tensors = [*[NARROW] * 2, *[WIDE] * 3, *[NARROW] * 2, *[WIDE] * 2]
        yield kernels.add_norm_forward, [*tensors, INTEGER, NUMBER, NUMBER, INTEGER], {"BLOCK": 1024, "DROPS": drops}
    for drops in (True, False):
        tensors = [*[NARROW] * 2, *[WIDE] * 3, *[NARROW] * 2, WIDE]
        yield kernels.add_norm_backward, [*tensors, INTEGER, INTEGER, NUMBER, INTEGER], {"BLOCK": 1024, "DROPS": drops}
    yield kernels.merge, [*[NARROW] * 2, *[WIDE] * 2, NARROW, WIDE, *[INTEGER] * 3], {"BLOCK": 1024}
    for has_other in (True, False):
        yield kernels.gather, [*[NARROW] * 7, INTEGER, INTEGER], {"BLOCK": 1024, "HAS_OTHER": has_other}
    for learns in (True, False):
        types = [NARROW, WIDE, "*i64", WIDE, "*i32", INTEGER, INTEGER]
        yield kernels.cross_entropy, types, {"BLOCK": 4096, "LEARNS": learns}


def main() -> None:
    target = GPUTarget("cuda", int(sys.argv[1]), 32)
    for kernel, types, constants in forms():
        names = [name for name in kernel.arg_names if name not in constants]
        signature = dict(zip(names, types, strict=True)) | dict.fromkeys(constants, "constexpr")
        source = ASTSource(fn=kernel, signature=signature, constexprs=constants)
        assert triton.compile(source, target=target).asm["cubin"]
        print(kernel.__name__)


if __name__ == "__main__":
    main()
