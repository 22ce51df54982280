"""Shape of a recurrent layer, and the parts that its kernel goes through: chunks, steps in time, groups of units."""

from dataclasses import dataclass

from engine.compiler.emit.types import Index, Value
from engine.compiler.kernels.cells import GATES


@dataclass(frozen=True, slots=True, kw_only=True)
class RecurrentShape:
    """Shape of a recurrent layer.

    Attributes:
        cell: kind of cell: a key of `GATES`.
        steps: length of the sequence.
        batch: sequences.
        hidden: units.
        directions: 1, or 2: forwards and backwards.
    """

    cell: str
    steps: int
    batch: int
    hidden: int
    directions: int

    @property
    def gates(self) -> int:
        """Gates of a cell."""
        return GATES[self.cell]


@dataclass(frozen=True, slots=True)
class RecurrentChunk:
    """What a call works on: some rows of the batch in one direction.

    Attributes:
        direction: 0 forwards, 1 backwards.
        rows: first row and the end of them.
        products: address of the direction's products.
        weights: address of its weights.
        bias: address of a GRU's new gate's bias.
        out: address of the output of every step.
        hidden: addresses, in scratch memory, of the two hidden states.
        cell: address, in scratch memory, of the cell state.
    """

    direction: Index
    rows: tuple[Index, Index]
    products: Value
    weights: Value
    bias: Value | None
    out: Value | None
    hidden: tuple[Value, Value]
    cell: Value


@dataclass(frozen=True, slots=True)
class TimeStep:
    """One step in time of a chunk.

    Attributes:
        time: which one.
        before: address of the hidden state before it.
        after: address of the hidden state after it.
    """

    time: Index
    before: Value
    after: Value


@dataclass(frozen=True, slots=True)
class UnitGroup:
    """Blocks of units that a tile covers.

    Attributes:
        place: which group.
        lanes: lanes of each of its blocks that hold units.
    """

    place: Index
    lanes: tuple[int, ...]
