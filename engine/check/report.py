"""What a model consists of and what it takes to run it."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from engine.backend import Footprint
from engine.dtypes import PNNX_COMPUTE
from engine.errors import InputError, UnsupportedOperator, UnsupportedOperatorError
from engine.graph import RuntimeGraph
from engine.operator import RuntimeOperator
from engine.plan import Plan
from engine.ports import Port
from engine.spec import TensorSpec


@dataclass(frozen=True, slots=True)
class Report:
    """A model at a glance.

    Attributes:
        types: PNNX type -> how many operators have it.
        unsupported: operators of types without a layer.
        inputs: the graph's inputs.
        outputs: the graph's outputs.
        parameters: elements of all attributes.
        attribute_bytes: bytes of all attributes as they are stored.
        multiply_adds: multiply-adds of one run on the shapes asked for; None where unknown.
        peak_bytes: most bytes of intermediate tensors alive at once in such a run, layer by layer; None where unknown.
        footprint: what such a run takes compiled; None where it is not compiled.
    """

    types: Counter[str]
    unsupported: tuple[UnsupportedOperator, ...]
    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]
    parameters: int
    attribute_bytes: int
    multiply_adds: int | None
    peak_bytes: int | None
    footprint: Footprint | None = None

    def lines(self) -> Iterator[str]:
        """Yield the report as text, line by line."""
        yield f"{self.types.total()} operators"
        for name, count in sorted(self.types.items(), key=lambda item: (-item[1], item[0])):
            yield f"  {count:5}  {name}"
        yield from (f"input   {port.operator}  {port}" for port in self.inputs)
        yield from (f"output  {port.operator}  {port}" for port in self.outputs)
        yield f"parameters      {self.parameters:,} in {self.attribute_bytes:,} bytes"
        yield f"multiply-adds   {_count(self.multiply_adds)}"
        yield f"intermediates   {_count(self.peak_bytes)} bytes at the most"
        if self.footprint is not None:
            yield from _compiled(self.footprint)
        yield from (f"unsupported     {operator}" for operator in self.unsupported)


def inspect(graph: RuntimeGraph, shapes: Sequence[Sequence[int]] = ()) -> Report:
    """Build a graph as far as it goes and report on it.

    Args:
        graph: a graph in any state.
        shapes: input shapes to count for, in the order of the inputs; by default those that the file declares, `?`
            taken as 1.

    Raises:
        PnnxError, GraphError, ParameterError: as `RuntimeGraph.build`; unsupported types are no error here.
        InputError, LayerError: the graph cannot run on `shapes`.
    """
    unsupported: tuple[UnsupportedOperator, ...] = ()
    try:
        graph.build()
    except UnsupportedOperatorError as error:
        unsupported = error.operators
    plan = _plan(graph, shapes) if not unsupported else None
    return Report(
        types=Counter(operator.type for operator in graph.operators),
        unsupported=unsupported,
        inputs=graph.inputs,
        outputs=graph.outputs,
        parameters=sum(_elements(operator) for operator in graph.operators),
        attribute_bytes=sum(a.data.nbytes for operator in graph.operators for a in operator.attrs.values()),
        multiply_adds=plan.multiply_adds if plan is not None else None,
        peak_bytes=plan.peak_bytes if plan is not None else None,
        footprint=_footprint(graph, plan) if plan is not None else None,
    )


def _footprint(graph: RuntimeGraph, plan: Plan) -> Footprint | None:
    specs = [plan.specs[port.operand] for port in graph.inputs]
    tensors = [spec for spec in specs if isinstance(spec, TensorSpec)]
    return graph.prepare(tensors) if len(tensors) == len(specs) else None


def _compiled(footprint: Footprint) -> Iterator[str]:
    yield f"compiled        {footprint.native} operators, {footprint.numpy} left to numpy"
    arena, least = footprint.arena_bytes, footprint.least_bytes
    yield f"arena           {arena:,} bytes, at least {least:,} are needed; scratch {footprint.scratch_bytes:,}"
    yield f"packed weights  {footprint.constant_bytes:,} bytes"


def _plan(graph: RuntimeGraph, shapes: Sequence[Sequence[int]]) -> Plan | None:
    if not shapes:
        return graph.declared_plan()
    if len(shapes) != len(graph.inputs):
        raise InputError(f"{len(shapes)} shapes; expected one for each of {len(graph.inputs)} inputs")
    dtypes = [PNNX_COMPUTE[port.dtype or "f32"] for port in graph.inputs]
    return graph.plan([TensorSpec(tuple(shape), dtype) for shape, dtype in zip(shapes, dtypes, strict=True)])


def _elements(operator: RuntimeOperator) -> int:
    total = 0
    for attribute in operator.attrs.values():
        total += int(attribute.array().size) if attribute.dtype != "null" else 0
    return total


def _count(value: int | None) -> str:
    return "unknown" if value is None else f"{value:,}"
