"""Shape of a recurrent layer, and the parts that its kernel goes through: chunks, steps in time, groups of units."""

from dataclasses import dataclass

from engine.compiler.emit.types import IRIndex, IRValue
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
    """Operands of a call: some rows of the batch in one direction.

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

    direction: IRIndex
    rows: tuple[IRIndex, IRIndex]
    products: IRValue
    weights: IRValue
    bias: IRValue | None
    out: IRValue | None
    hidden: tuple[IRValue, IRValue]
    cell: IRValue


@dataclass(frozen=True, slots=True)
class TimeStep:
    """One step in time of a chunk.

    Attributes:
        time: which one.
        before: address of the hidden state before it.
        after: address of the hidden state after it.
    """

    time: IRIndex
    before: IRValue
    after: IRValue


@dataclass(frozen=True, slots=True)
class UnitGroup:
    """Blocks of units that a tile covers.

    Attributes:
        place: which group.
        lanes: lanes of each of its blocks that hold units.
    """

    place: IRIndex
    lanes: tuple[int, ...]
