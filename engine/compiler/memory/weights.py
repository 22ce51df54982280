"""Weights in the order in which a kernel reads them."""

from dataclasses import dataclass, field
from typing import Protocol
from weakref import WeakValueDictionary

from engine.compiler.memory.alignment import aligned
from engine.dtypes import Array


class Packing(Protocol):
    """A kernel that wants its weights in an order of its own."""

    @property
    def layout(self) -> tuple[object, ...]:
        """What the order depends on: kernels of equal layout may share packed weights."""

    @property
    def packed_sizes(self) -> tuple[int, int]:
        """Elements of packed weights and bias."""

    def pack(self, weight: Array, bias: Array | None) -> tuple[Array, Array]:
        """Return weights and bias as the kernel reads them."""


@dataclass(eq=False, slots=True, weakref_slot=True)
class PackedWeights:
    """Weights and bias of one operator, packed when they are first asked for.

    Attributes:
        kernel: what knows the order.
        source: weight and bias as the model has them; let go of once they are packed.
    """

    kernel: Packing
    source: tuple[Array, Array | None] | None
    _packed: tuple[Array, Array] | None = field(default=None, init=False)

    def weight(self) -> Array:
        """Return the packed weights."""
        return self._pack()[0]

    def bias(self) -> Array:
        """Return the packed bias, zeros where there is none."""
        return self._pack()[1]

    def _pack(self) -> tuple[Array, Array]:
        if self._packed is None:
            if self.source is None:
                raise ValueError("there are no weights to pack")
            weight, bias = self.kernel.pack(*self.source)
            self._packed = aligned(weight), aligned(bias)
            self.source = None
        return self._packed


PackedStore = WeakValueDictionary[tuple[object, ...], PackedWeights]
"""Operator and layout -> its weights, shared by the programs of a graph as long as one of them needs them."""
