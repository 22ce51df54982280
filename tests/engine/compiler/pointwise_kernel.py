"""The least kernels that apply an expression, or a function of the emitter: for tests of functions."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from engine.compiler.emit.emitter import Emitter
from engine.compiler.emit.pointwise import Leaf, PointwiseExpression, apply, emit
from engine.compiler.emit.target import Target
from engine.compiler.emit.types import IRValue
from engine.compiler.memory.region import Region, line
from engine.dtypes import Array
from tests.engine.compiler.harness import run


@dataclass(frozen=True)
class Pointwise:
    """Applies an expression to arrays of `size` elements, a multiple of the vector. Arguments: operands, output."""

    size: int
    operands: int
    expression: PointwiseExpression
    chunks: int = 1
    scratch: int = 0

    @property
    def regions(self) -> tuple[Region, ...]:
        return *[line(self.size)] * self.operands, line(self.size, is_written=True)

    def emit(self, e: Emitter) -> None:
        *operands, out = [e.argument(place) for place in range(self.operands + 1)]
        with e.loop(0, self.size, e.lanes) as loop:
            leaves = [e.load(operand, loop.index) for operand in operands]
            e.store(emit(e, self.expression, leaves), out, loop.index)


@dataclass(frozen=True)
class Applied:
    """Applies a function to `size` elements, a multiple of the vector, or to one by one. Arguments: input, output."""

    function: Callable[[Emitter, IRValue], IRValue]
    size: int
    is_scalar: bool = False
    chunks: int = 1
    scratch: int = 0

    @property
    def regions(self) -> tuple[Region, ...]:
        return line(self.size), line(self.size, is_written=True)

    def emit(self, e: Emitter) -> None:
        x, out = e.argument(0), e.argument(1)
        with e.loop(0, self.size, 1 if self.is_scalar else e.lanes) as loop:
            if self.is_scalar:
                e.store_scalar(self.function(e, e.load_scalar(x, loop.index)), out, loop.index)
            else:
                e.store(self.function(e, e.load(x, loop.index)), out, loop.index)


def values_of(target: Target, points: Array, name: str, *parameters: float) -> Array:
    """Return what kernels make of points by a function of expressions."""
    kernel = Pointwise(points.size, 1, apply(name, Leaf(0), *parameters))
    return run(kernel, target, points, np.full_like(points, np.nan))[1]


def applied(
    target: Target, points: Array, function: Callable[[Emitter, IRValue], IRValue], is_scalar: bool = False
) -> Array:
    """Return what a function makes of points, in vectors or one by one."""
    return run(Applied(function, points.size, is_scalar), target, points, np.full_like(points, np.nan))[1]
