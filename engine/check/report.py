"""Contents of a model and requirements of its runs."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from engine.check.shapes import choose_shapes
from engine.errors import LayerError, UnsupportedOperator, UnsupportedOperatorError
from engine.graph import RuntimeGraph
from engine.model.operator import RuntimeOperator
from engine.model.ports import Port
from engine.run.executor import Footprint
from engine.run.plan import Plan
from engine.run.verification import Refusal
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
        multiply_adds: multiply-adds of one run on the requested shapes; None if unknown.
        peak_bytes: peak bytes of live intermediate tensors in such a run, layer by layer; None if unknown.
        footprint: memory of such a compiled run; None if it is not compiled.
        shapes: the input shapes of those figures, and their source; None if unknown.
        unchecked: information that is missing to decide whether the model runs; None if it is decided.
        problem: why the model cannot run on those shapes, with the operator at fault; None where it can.
        refused: compiled programs that are not used, as their results differ from the reference implementation.
        warnings: assumptions about what the file does not declare, and its contradictions.
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
    shapes: str | None = None
    unchecked: str | None = None
    problem: str | None = None
    refused: tuple[Refusal, ...] = ()
    warnings: tuple[str, ...] = ()

    @property
    def runs(self) -> bool | None:
        """Whether the model can run; None where that could not be checked."""
        if self.unsupported or self.problem is not None:
            return False
        return None if self.unchecked is not None else True

    def lines(self) -> Iterator[str]:
        """Yield the report as text, line by line."""
        yield f"{self.types.total()} operators"
        for name, count in sorted(self.types.items(), key=lambda item: (-item[1], item[0])):
            yield f"  {count:5}  {name}"
        yield from (f"input   {port.operator}  {port}" for port in self.inputs)
        yield from (f"output  {port.operator}  {port}" for port in self.outputs)
        yield f"parameters      {self.parameters:,} in {self.attribute_bytes:,} bytes"
        if self.shapes is not None:
            yield f"input shapes    {self.shapes}"
        yield f"multiply-adds   {_count(self.multiply_adds)}"
        yield f"intermediates   {_count(self.peak_bytes)} bytes at the most"
        if self.footprint is not None:
            yield from _compiled(self.footprint)
        yield from (f"not used        the compiled program {refusal}" for refusal in self.refused)
        yield from (f"unsupported     {operator}" for operator in self.unsupported)
        if self.problem is not None:
            yield f"cannot run      {self.problem}"
        if self.unchecked is not None:
            yield f"not checked     whether it runs: {self.unchecked}"
        yield from (f"warning         {warning}" for warning in self.warnings)


def inspect(graph: RuntimeGraph, shapes: Sequence[Sequence[int]] = ()) -> Report:
    """Build a graph as far as it goes and report on it.

    Args:
        graph: a graph in any state.
        shapes: input shapes to count for, in the order of the inputs; by default those that the file declares. A
            dynamic dimension is that of the image in `model.toml` beside it, or unknown; never guessed.

    Raises:
        PnnxError, GraphError, ParameterError: as `RuntimeGraph.build`; unsupported types are no error here, nor is a
            graph that cannot run on its shapes.
        BuildError: the file is contradictory or ambiguous.
        InputError: `shapes` do not fit the graph's inputs, or `model.toml` cannot be read.
    """
    unsupported: tuple[UnsupportedOperator, ...] = ()
    try:
        graph.build()
    except UnsupportedOperatorError as error:
        unsupported = error.operators
    choice = choose_shapes(graph.inputs, shapes, graph.param_path)
    plan: Plan | None = None
    footprint: Footprint | None = None
    problem: str | None = None
    if choice.specs is not None and not unsupported:
        try:
            plan = graph.plan(choice.specs)
            footprint = graph.prepare(choice.specs)
        except LayerError as error:
            problem = str(error)
    return Report(
        types=Counter(operator.type for operator in graph.operators),
        unsupported=unsupported,
        inputs=graph.inputs,
        outputs=graph.outputs,
        parameters=sum(_elements(operator) for operator in graph.operators),
        attribute_bytes=sum(a.data.nbytes for operator in graph.operators for a in operator.attrs.values()),
        multiply_adds=plan.multiply_adds if plan is not None else None,
        peak_bytes=plan.peak_bytes if plan is not None else None,
        footprint=footprint,
        shapes=None if choice.specs is None else f"{_spell(graph.inputs, choice.specs)}, {choice.source}",
        unchecked=choice.source if choice.specs is None and not unsupported else None,
        problem=problem,
        refused=graph.verification.refused,
        warnings=() if unsupported else graph.warnings,
    )


def _spell(ports: Sequence[Port], specs: Sequence[TensorSpec]) -> str:
    return " ".join(f"{port.operand}: {spec}" for port, spec in zip(ports, specs, strict=True)) or "none"


def _compiled(footprint: Footprint) -> Iterator[str]:
    yield f"compiled        {footprint.native} operators, {footprint.numpy} left to numpy"
    arena, least = footprint.arena_bytes, footprint.least_bytes
    yield f"arena           {arena:,} bytes, at least {least:,} are needed; scratch {footprint.scratch_bytes:,}"
    yield f"packed weights  {footprint.constant_bytes:,} bytes"


def _elements(operator: RuntimeOperator) -> int:
    total = 0
    for attribute in operator.attrs.values():
        total += int(attribute.array().size) if attribute.dtype != "null" else 0
    return total


def _count(value: int | None) -> str:
    return "unknown" if value is None else f"{value:,}"
