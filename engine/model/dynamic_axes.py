"""The axes of a graph's inputs whose extents differ from run to run: batches, lengths, and sizes of pictures."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from engine.model.ports import Port
from engine.spec import TensorSpec

_SEQUENCE_RANK = 3
"""Axes of an input that is a sequence: rows, places, features. Pictures have more."""


@dataclass(frozen=True, slots=True)
class DynamicAxes:
    """Axes with extents that differ from run to run.

    Inputs that differ in the extents of these axes only, and in none that is 1, are of one family: 1 is apart since
    any stride serves an axis of one element. A family is written as its inputs with 0 for these extents.

    Attributes:
        by_input: for each input, those of its axes.
        has_pictures: whether rows or columns of pictures are among them.
    """

    by_input: tuple[tuple[int, ...], ...] = ()
    has_pictures: bool = False

    @property
    def are_batches(self) -> bool:
        """Whether these are numbers of rows only."""
        return any(self.by_input) and all(axis == 0 for axes in self.by_input for axis in axes)

    @property
    def of_pictures(self) -> bool:
        """Whether these are numbers of rows only, or sizes of pictures among them."""
        return self.are_batches or self.has_pictures

    def family(self, inputs: Sequence[TensorSpec]) -> tuple[TensorSpec, ...] | None:
        """Return the family of inputs; None if it has no others, or an input is empty."""
        if not self.by_input or any(0 in spec.shape for spec in inputs):
            return None
        found = tuple(
            _with(spec, {axis: 0 for axis in axes if spec.shape[axis] > 1})
            for spec, axes in zip(inputs, self.by_input, strict=True)
        )
        return found if any(0 in spec.shape for spec in found) else None

    def main_family(
        self, inputs: Sequence[TensorSpec], has_batch: bool = False
    ) -> tuple[TensorSpec, ...] | None:
        """Return the family that inputs would be of at other lengths or sizes; None without such axes.

        Where nothing but the batch is dynamic, that of batches.

        Args:
            inputs: the inputs.
            has_batch: whether they are of another batch too, where that is dynamic.
        """
        longer = [
            _with(spec, {axis: 2 for axis in axes if axis or self.are_batches or has_batch})
            for spec, axes in zip(inputs, self.by_input or [()] * len(inputs), strict=True)
        ]
        return self.family(longer)

    def members(
        self, family: Sequence[TensorSpec], samples: Iterable["Extents"]
    ) -> Iterator[tuple[TensorSpec, ...]]:
        """Yield inputs of a family, all different, with extents as in samples."""
        yield from dict.fromkeys(tuple(extents.of(spec) for spec in family) for extents in samples)


@dataclass(frozen=True, slots=True)
class Extents:
    """Extents of dynamic axes.

    Attributes:
        batch: of the first axis.
        length: of the places of a sequence.
        picture: of rows and columns.
    """

    batch: int
    length: int
    picture: tuple[int, int]

    def of(self, spec: TensorSpec) -> TensorSpec:
        """Return a member of a family with these extents where that has 0."""
        dynamic = [axis for axis, extent in enumerate(spec.shape) if not extent]
        return _with(spec, {axis: self._of_axis(axis, spec.rank) for axis in dynamic})

    def _of_axis(self, axis: int, rank: int) -> int:
        if axis == 0:
            return self.batch
        return self.picture[axis % 2] if rank > _SEQUENCE_RANK else self.length


NO_DYNAMIC_AXES = DynamicAxes()
"""The axes of a graph without dynamic extents."""


def dynamic_axes(ports: Sequence[Port]) -> DynamicAxes:
    """Return the dynamic axes of a graph's inputs. Without a dynamic length, sequences have none."""
    shapes = [port.shape for port in ports]
    if any(shape is None for shape in shapes):
        return NO_DYNAMIC_AXES
    axes = tuple(tuple(axis for axis, extent in enumerate(shape or ()) if extent is None) for shape in shapes)
    are_pictures = any(len(shape or ()) > _SEQUENCE_RANK for shape in shapes)
    is_longer = any(axis for each in axes for axis in each)
    if not any(axes) or not (are_pictures or is_longer):
        return NO_DYNAMIC_AXES
    return DynamicAxes(axes, are_pictures and is_longer)


def _with(spec: TensorSpec, extents: dict[int, int]) -> TensorSpec:
    return TensorSpec(tuple(extents.get(axis, extent) for axis, extent in enumerate(spec.shape)), spec.dtype)
