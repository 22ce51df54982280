"""A graph that is being drawn, one operator after the other. Shapes are those that the layers themselves infer."""

from collections.abc import Mapping, Sequence
from random import Random
from typing import Any, TypeVar

import numpy as np

from engine import KuiperError
from engine.dtypes import PNNX_COMPUTE
from engine.spec import TensorSpec
from tests.differential.case import GraphCase, Line, Shape, spell
from tests.differential.inference import bind

T = TypeVar("T")
MAX_ELEMENTS = 400_000
"""Elements of a tensor: more than the 512 KiB from which on convolutions stage their input."""
MAX_PRODUCTS = 400_000_000
"""Multiply-adds of an operator: some ten milliseconds."""
FLOAT = np.dtype(np.float32)


class Drawing:
    """A graph that is being drawn.

    Attributes:
        random: where all choices come from.
        lines: the operators so far.
        specs: what is known of each operand.
    """

    def __init__(self, random: Random) -> None:
        self.random = random
        self.lines: list[Line] = []
        self.specs: dict[str, TensorSpec] = {}

    def shape(self, name: str) -> Shape:
        """Return the shape of an operand."""
        return self.specs[name].shape

    def rank(self, name: str) -> int:
        """Return the rank of an operand."""
        return self.specs[name].rank

    def pick(self, options: Sequence[T]) -> T:
        """Choose one."""
        return options[int(self.random.random() * len(options))]

    def number(self, low: int, high: int) -> int:
        """Choose a whole number from `low` to `high`."""
        return low + int(self.random.random() * (high - low + 1))

    def chance(self, share: float) -> bool:
        """Say yes as often as `share`."""
        return self.random.random() < share

    def floats(self) -> list[str]:
        """Return the operands that are tensors of float32."""
        return [name for name, spec in self.specs.items() if spec.dtype == FLOAT and spec.size]

    def alike(self, x: str) -> list[str]:
        """Return the float operands of the same shape."""
        return [name for name in self.floats() if self.shape(name) == self.shape(x)]

    def input(self, shape: Shape, dynamic_axes: Sequence[int] = (), dtype: str = "f32") -> str:
        """Add an input; extents along `dynamic_axes` are not declared."""
        name = f"t{len(self.specs)}"
        extents = ",".join("?" if axis in dynamic_axes else str(extent) for axis, extent in enumerate(shape))
        line = Line("pnnx.Input", f"in{len(self.lines)}", (), (name,), (f"#{name}=({extents}){dtype}",))
        self.lines.append(line)
        self.specs[name] = TensorSpec(shape, PNNX_COMPUTE[dtype])
        return name

    def constant(self, shape: Shape) -> str:
        """Add a constant of float32, however large: what reads it is looked at."""
        name = f"t{len(self.specs)}"
        line = Line("pnnx.Attribute", f"op{len(self.lines)}", (), (name,), (f"@data={spell(shape)}f32",))
        self.lines.append(line)
        self.specs[name] = TensorSpec(shape, FLOAT)
        return name

    def add(
        self,
        kind: str,
        inputs: Sequence[str],
        *,
        weights: Mapping[str, Shape] | None = None,
        gives: int = 1,
        named: bool = False,
        **parameters: Any,
    ) -> list[str]:
        """Add an operator if it can run on its inputs and is not too large.

        Args:
            kind: PNNX type.
            inputs: operands.
            weights: attribute -> shape.
            gives: how many outputs it has.
            named: whether its first input is named `input`, as the exporter does for functions.
            parameters: the others.

        Returns:
            The names of its outputs, none where it was not added.
        """
        if not inputs:
            return []  # what it was to read was not added
        first = len(self.specs)
        names = [f"t{first + place}" for place in range(gives)]
        words = [f"{key}={write(value)}" for key, value in parameters.items()]
        words += [f"@{key}={spell(shape)}f32" for key, shape in (weights or {}).items()]
        words += [f"$input={inputs[0]}"] if named else []
        line = Line(kind, f"op{len(self.lines)}", tuple(inputs), tuple(names), tuple(words))
        specs = self._infer(line)
        if specs is None:
            return []
        self.lines.append(line)
        self.specs.update(zip(names, specs, strict=True))
        return names

    def case(self, name: str, outputs: Sequence[str], seed: int) -> GraphCase:
        """Return the graph as a case whose only run is on the shapes that it was drawn for."""
        ends = [Line("pnnx.Output", f"out{place}", (x,), ()) for place, x in enumerate(outputs)]
        shapes = tuple(self.shape(line.outputs[0]) for line in self.lines if line.type == "pnnx.Input")
        return GraphCase(name, (*self.lines, *ends), (shapes,), seed)

    def _infer(self, line: Line) -> tuple[TensorSpec, ...] | None:
        inputs = [self.specs[name] for name in line.inputs]
        try:
            bound = bind(line)
            specs = bound.infer(inputs)
        except KuiperError:
            return None
        known = [spec for spec in specs if isinstance(spec, TensorSpec) and 0 < spec.size <= MAX_ELEMENTS]
        if len(known) != len(line.outputs) or bound.multiply_adds(inputs, specs) > MAX_PRODUCTS:
            return None
        return tuple(known)


def write(value: object) -> str:
    """Write a parameter as the exporter does."""
    if isinstance(value, tuple):
        return f"({','.join(map(write, value))})"
    return str(value)
