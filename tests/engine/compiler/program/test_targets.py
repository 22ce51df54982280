"""Kernels of a network in every precision, assembled for each kind of processor, that of other machines included.

LLVM compiles for a processor that is not there, so that no machine is left without a check of any target: kernels are
written, chosen and compiled, and use the instructions that the target is named after. Nothing is run.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import llvmlite.binding as llvm
import numpy as np
import pytest

from engine import Activation, TensorScale
from engine.compiler.emit import jit, object_file
from engine.compiler.emit.target import Target, target_named
from engine.compiler.memory.weights import PackedStore
from engine.compiler.program.assembler import assembling
from engine.compiler.selection import Selector
from engine.precision import Precision
from engine.spec import TensorSpec
from tests.differential.rounding import always_rounding
from tests.engine.compiler.program.test_int8 import Writer

SHAPE = (1, 64, 12, 12)
INSTRUCTIONS = {
    ("amx", Precision.BF16): "tdpbf16ps",
    ("amx", Precision.INT8): "tdpbusd",
    ("bf16", Precision.BF16): "vdpbf16ps",
    ("vnni", Precision.INT8): "vpdpbusd",
    ("avxvnni", Precision.INT8): "vpdpbusd",
    ("bf16", Precision.INT8): "vpmaddwd",
    ("avx512", Precision.INT8): "vpmaddwd",
    ("avx2", Precision.INT8): "vpmaddwd",
    ("sse", Precision.INT8): "pmaddwd",
}
"""Target, precision -> the instruction by which products are computed; in other cases it is that of float32."""
FLOAT32 = {"neon": "fmla", "sse": "mulps"}
"""Target -> the instruction for products of float32, where that is not `vfmadd`."""
NAMES = ("amx", "bf16", "vnni", "avxvnni", "avx512", "avx2", "sse", "neon")


def network(precision: Precision) -> Writer:
    """Return convolutions, one of them depthwise, between pooling and a linear layer."""
    writer = Writer()
    writer.input("x", SHAPE)
    writer.convolution("x", "a", (64, 64, 3, 3), padding=1)
    writer.add("nn.ReLU", "a", "b")
    writer.convolution("b", "c", (64, 1, 3, 3), padding=1, groups=64)
    writer.add("nn.AdaptiveAvgPool2d", "c", "d", output_size=(1, 1))
    writer.add("torch.flatten", "d", "e", start_dim=1, end_dim=-1)
    writer.linear("e", "f", 64, 256, Activation.STATIC)
    writer.add("F.softmax", "f", "g", dim=1)
    writer.add("pnnx.Output", "g", "")
    if precision is not Precision.INT8:
        writer.layers.clear()
    else:
        writer.tensors.update({name: TensorScale(0.05, 99) for name in ("x", "b", "e")})
    return writer


def machine_of(architecture: str, target: Target, effort: int = 2) -> Any:
    """Return LLVM's description of a target of any architecture."""
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    triple = llvm.Target.from_triple(f"{architecture}-unknown-linux-gnu")
    return triple.create_target_machine(cpu=target.cpu, features=target.features, opt=effort, jit=True)


@contextmanager
def compiling_for_other_machines(target: Target) -> Iterator[None]:
    machine = partial(machine_of, "aarch64" if target.name == "neon" else "x86_64")
    with (
        patch.object(jit, "machine", machine),
        patch.object(object_file, "machine", machine),
        patch("engine.compiler.selection.machine.bf16_speedup", lambda _: 2.0),  # else it is measured
    ):
        yield


def assembly_of(folder: Path, target: Target, precision: Precision) -> str:
    """Return the machine code of all kernels of the network, as text."""
    _, plain = network(precision).graphs(folder)
    plan = plain.plan([TensorSpec(SHAPE, np.dtype(np.float32))])
    leaving = [plan.slots[port.operand] for port in plain.outputs]
    with (
        compiling_for_other_machines(target),
        always_rounding(precision is Precision.BF16),
        assembling(plan, leaving, Selector(target, 2, PackedStore(), precision)) as assembler,
    ):
        kernels = {call.kernel for call, _ in assembler.calls}
        return "\n".join(jit.assembly(kernel, target) for kernel in kernels)


@pytest.mark.parametrize("name", NAMES)
def test_kernels_are_assembled(name: str, tmp_path: Path) -> None:
    for precision in (Precision.F32, Precision.BF16, Precision.INT8):
        folder = tmp_path / precision.value
        folder.mkdir()
        text = assembly_of(folder, target_named(name), precision)
        wanted = INSTRUCTIONS.get((name, precision), FLOAT32.get(name, "vfmadd"))
        assert wanted in text, f"{precision}: no {wanted}"
