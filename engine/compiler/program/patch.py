"""Addresses that each run fills in: those of arrays that are no part of its arena."""

from dataclasses import dataclass

import numpy as np

from engine.compiler.memory.alignment import address_of
from engine.compiler.memory.arena import Arena
from engine.dtypes import Array
from engine.errors import LayerError


@dataclass(frozen=True, slots=True)
class Patch:
    """Addresses in the table that a run fills in.

    Attributes:
        slot: the operand's slot.
        entries: places in the table, each with the bytes between the operand's first element and what the kernel reads.
        shape: shape of the operand's array.
    """

    slot: int
    entries: tuple[tuple[int, int], ...]
    shape: tuple[int, ...]

    def fill_in(self, arena: Arena, array: Array) -> None:
        """Have the kernels of a run read or write an array, of float32 row by row, that has to live as long as it.

        Raises:
            LayerError: the array has another shape.
        """
        if array.shape != self.shape:
            raise LayerError(f"a tensor of shape {array.shape} came where {self.shape} was planned")
        address, table = address_of(array), arena.table
        for place, offset in self.entries:  # mostly one: numpy's own loop would take longer to begin
            table[place] = address + offset


def row_by_row(array: Array) -> Array:
    """Return a float32 array whose elements lie row by row where the processor likes to read them."""
    flags = array.flags
    if array.dtype == np.float32 and flags.c_contiguous and flags.aligned:
        return array
    return np.require(array, np.float32, ("C", "A"))
