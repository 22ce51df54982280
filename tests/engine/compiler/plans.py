"""Small models as the compiler's graphs."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from engine.compiler.emit.target import host_target
from engine.compiler.graph import Constant, LoweredGraph, Node, Placeholder
from engine.compiler.lowering.builder import make_graph
from engine.compiler.program.assembler import compile_plan
from engine.compiler.program.program import Program
from engine.compiler.selection import RULES
from engine.dtypes import PNNX_COMPUTE, Array
from engine.model.operator import OUTPUT
from engine.run.plan import Plan
from engine.spec import TensorSpec
from tests.engine import models

CONV = (
    "nn.Conv2d {name} 1 1 {x} {y} bias=False dilation=(1,1) groups=1 in_channels=3 kernel_size=(3,3) "
    "out_channels=4 padding=(1,1) padding_mode=zeros stride=(1,1) @weight=(4,3,3,3)f32"
)
LINEAR = "nn.Linear {name} 1 1 {x} {y} bias=False in_features=4 out_features=4 @weight=(4,4)f32"
IMAGE = "pnnx.Input in 0 1 x #x=(2,3,5,6)f32"
ROWS = "pnnx.Input in 0 1 x #x=(2,3,4)f32"
BATCH_NORM = (
    "nn.BatchNorm2d {name} 1 1 {x} {y} affine=False eps=1e-5 num_features=4 "
    "@running_mean=(4)f32 @running_var=(4)f32"
)


def conv(name: str, x: str, y: str) -> str:
    return CONV.format(name=name, x=x, y=y)


def linear(name: str, x: str, y: str) -> str:
    return LINEAR.format(name=name, x=x, y=y)


def batch_norm(name: str, x: str, y: str) -> str:
    return BATCH_NORM.format(name=name, x=x, y=y)


def weights_of(lines: str) -> dict[str, Array]:
    """Return arrays for all attributes that lines declare; they are positive, as variances are."""
    arrays = {}
    for line in lines.splitlines():
        words = line.split()
        for word in words[4:]:
            if word.startswith("@"):
                name, kind = word[1:].split("=")
                shape = tuple(int(extent) for extent in kind[1 : kind.index(")")].split(","))
                arrays[f"{words[1]}.{name}"] = np.linspace(
                    0.5, 1.5, int(np.prod(shape)), dtype=np.float32
                ).reshape(shape)
    return arrays


def plan_of(
    folder: Path, *lines: str, shapes: Mapping[str, tuple[int, ...]] | None = None
) -> tuple[Plan, list[int]]:
    """Return the plan of a model on inputs of the shapes that it declares, and the slots that leave it."""
    text = "\n".join(lines)
    graph = models.make_graph(folder, text, weights_of(text), backend="numpy")
    specs = []
    for port in graph.inputs:
        given = (shapes or {}).get(port.operand) or tuple(
            1 if extent is None else extent for extent in port.shape or ()
        )
        specs.append(TensorSpec(given, PNNX_COMPUTE[port.dtype or "f32"]))
    plan = graph.plan(specs)
    ends = [operator for operator in graph.operators if operator.type == OUTPUT]
    return plan, [plan.slots[operand.name] for operator in ends for operand in operator.inputs]


def lowered(folder: Path, *lines: str) -> LoweredGraph:
    """Return the compiler's graph of a model."""
    plan, leaving = plan_of(folder, *lines)
    return make_graph(plan, leaving, RULES)


def compiled(folder: Path, *lines: str, threads: int = 1) -> Program:
    """Return the program of a model."""
    plan, leaving = plan_of(folder, *lines)
    return compile_plan(plan, leaving, host_target(), threads)


def work_of(graph: LoweredGraph) -> list[Node]:
    """Return the nodes that compute something."""
    return [node for node in graph.nodes if not isinstance(node, Placeholder | Constant)]


def kinds_of(graph: LoweredGraph) -> list[str]:
    """Return the kinds of the nodes that compute something."""
    return [type(node).__name__ for node in work_of(graph)]
