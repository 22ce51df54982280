"""Weights in the order in which a kernel reads them."""

from dataclasses import field
from typing import NamedTuple, Protocol
from weakref import WeakValueDictionary

from engine.compiler.memory.alignment import aligned
from engine.dtypes import Array
from engine.light_dataclass import dataclass
from engine.mapped_pages import let_go


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


class PackedArrays(NamedTuple):
    """Weights and bias as a kernel reads them.

    Attributes:
        weight: the weights.
        bias: the bias.
        digest: tells their bytes from all others; None where it was not computed.
    """

    weight: Array
    bias: Array
    digest: str | None = None


class Shelf(Protocol):
    """Where packed weights are kept for later processes."""

    def key(self, kernel: Packing, weight: Array, bias: Array | None) -> str | None:
        """Return the key of weights and bias, packed for a kernel; None where they are not kept."""

    def load(self, key: str) -> PackedArrays | None:
        """Return what is kept for a key, or None."""

    def save(self, key: str, weight: Array, bias: Array) -> PackedArrays:
        """Keep packed weights and bias, if that is possible."""


@dataclass(eq=False, slots=True, weakref_slot=True)
class PackedWeights:
    """Weights and bias of one operator, packed when they are first asked for.

    Attributes:
        kernel: what knows the order.
        source: weight and bias as the model has them; let go of once they are packed.
        shelf: where they are looked for before they are packed, and kept; None for nowhere.
    """

    kernel: Packing
    source: tuple[Array, Array | None] | None
    shelf: Shelf | None = None
    _packed: PackedArrays | None = field(default=None, init=False)

    def weight(self) -> Array:
        """Return the packed weights."""
        return self._pack().weight

    def bias(self) -> Array:
        """Return the packed bias, zeros where there is none."""
        return self._pack().bias

    @property
    def digest(self) -> str | None:
        """What tells the packed bytes from all others; None where it was not computed."""
        return self._pack().digest

    def _pack(self) -> PackedArrays:
        if self._packed is None:
            if self.source is None:
                raise ValueError("there are no weights to pack")
            key = None if self.shelf is None else self.shelf.key(self.kernel, *self.source)
            known = None if self.shelf is None or key is None else self.shelf.load(key)
            if known is None:
                weight, bias = map(aligned, self.kernel.pack(*self.source))
                known = PackedArrays(weight, bias)
                if self.shelf is not None and key is not None:
                    known = self.shelf.save(key, weight, bias)
            for array in self.source:
                if array is not None:
                    let_go(array)
            self._packed, self.source = known, None
        return self._packed


class PackedStore(WeakValueDictionary[tuple[object, ...], PackedWeights]):
    """Operator and layout -> its weights, shared by the programs of a graph as long as one of them needs them.

    Args:
        shelf: where they are kept for later processes; None for nowhere.
    """

    def __init__(self, shelf: Shelf | None = None) -> None:
        super().__init__()
        self.shelf = shelf
