"""The axes of a graph's inputs whose extents differ from run to run: batches, and lengths of sequences."""

from collections.abc import Iterator, Sequence
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
    """

    by_input: tuple[tuple[int, ...], ...] = ()

    @property
    def are_batches(self) -> bool:
        """Whether these are numbers of rows only."""
        return any(self.by_input) and all(axis == 0 for axes in self.by_input for axis in axes)

    def family(self, inputs: Sequence[TensorSpec]) -> tuple[TensorSpec, ...] | None:
        """Return the family of inputs; None if it has no others, or an input is empty."""
        if not self.by_input or any(0 in spec.shape for spec in inputs):
            return None
        found = tuple(
            _with(spec, {axis: 0 for axis in axes if spec.shape[axis] > 1})
            for spec, axes in zip(inputs, self.by_input, strict=True)
        )
        return found if any(0 in spec.shape for spec in found) else None

    def main_family(self, inputs: Sequence[TensorSpec]) -> tuple[TensorSpec, ...] | None:
        """Return the family that inputs would be of at other lengths; None without such axes.

        Where nothing but the batch is dynamic, that of batches.
        """
        longer = [
            _with(spec, {axis: 2 for axis in axes if axis or self.are_batches})
            for spec, axes in zip(inputs, self.by_input or [()] * len(inputs), strict=True)
        ]
        return self.family(longer)

    def members(
        self, family: Sequence[TensorSpec], batches: Sequence[int], lengths: Sequence[int]
    ) -> Iterator[tuple[TensorSpec, ...]]:
        """Yield inputs of a family, all different.

        Args:
            family: the family.
            batches: extents of the first axes.
            lengths: of the others, as many.
        """
        pairs = zip(batches, lengths, strict=True)
        yield from dict.fromkeys(
            tuple(
                _with(
                    spec,
                    {axis: length if axis else batch for axis, extent in enumerate(spec.shape) if not extent},
                )
                for spec in family
            )
            for batch, length in pairs
        )


NO_DYNAMIC_AXES = DynamicAxes()
"""The axes of a graph without dynamic extents."""


def dynamic_axes(ports: Sequence[Port]) -> DynamicAxes:
    """Return the dynamic axes of a graph's inputs, as far as kernels have runtime dimensions.

    Sequences vary in batch and length, pictures in their number only. Without a length, sequences have none.
    """
    shapes = [port.shape for port in ports]
    if any(shape is None for shape in shapes):
        return NO_DYNAMIC_AXES
    axes = tuple(tuple(axis for axis, extent in enumerate(shape or ()) if extent is None) for shape in shapes)
    if any(len(shape or ()) > _SEQUENCE_RANK for shape in shapes):
        axes = tuple(tuple(axis for axis in each if axis == 0) for each in axes)
    elif not any(axis for each in axes for axis in each):
        return NO_DYNAMIC_AXES
    return DynamicAxes(axes) if any(axes) else NO_DYNAMIC_AXES


def _with(spec: TensorSpec, extents: dict[int, int]) -> TensorSpec:
    return TensorSpec(tuple(extents.get(axis, extent) for axis, extent in enumerate(spec.shape)), spec.dtype)
