"""What a kernel does to its results before it stores them: activations, residual additions, whole expressions."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from engine.compiler.emitter import Emitter, Index, Value
from engine.compiler.pointwise import Expression, Leaf, emit


class Spread(Enum):
    """How an operand spreads over a kernel's results."""

    FULL = "full"
    """One element per result."""
    CHANNEL = "channel"
    """One element per channel, the same for all pixels."""
    SCALAR = "scalar"
    """One element."""


@dataclass(frozen=True, slots=True)
class Operand:
    """Another tensor that an epilogue reads; its channels lie side by side.

    Attributes:
        spread: how it spreads.
        strides: of a FULL operand, elements between images, rows and pixels; of a CHANNEL one, between images.
    """

    spread: Spread
    strides: tuple[int, ...] = ()


RESULT = Leaf(0)
"""What a kernel has just computed."""


@dataclass(frozen=True, slots=True)
class Epilogue:
    """An expression over a kernel's result (`Leaf(0)`) and the operands (`Leaf(1)` …)."""

    expression: Expression = RESULT
    operands: tuple[Operand, ...] = ()


NOTHING = Epilogue()
"""The epilogue that leaves results as they are."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a result belongs: image, row, pixel (column) and first channel."""

    image: Index
    row: Index
    pixel: Index
    channel: Index


def finish(
    e: Emitter,
    epilogue: Epilogue,
    result: Value,
    bases: Sequence[Value],
    place: Place,
    count: int | None = None,
) -> Value:
    """Write an epilogue for the result at a place, a vector of `count` channels (all lanes by default)."""
    leaves = [result]
    for operand, base in zip(epilogue.operands, bases, strict=True):
        if operand.spread is Spread.SCALAR:
            leaves.append(e.load_broadcast(base))
            continue
        offset = [e.mul(place.image, operand.strides[0])]
        if operand.spread is Spread.FULL:
            offset += [e.mul(place.row, operand.strides[1]), e.mul(place.pixel, operand.strides[2])]
        leaves.append(e.load(base, *offset, place.channel, count=count))
    return emit(e, epilogue.expression, leaves)
