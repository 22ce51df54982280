"""The axes of a graph's inputs that vary together: the length of a sequence."""

from collections.abc import Sequence
from dataclasses import dataclass

from engine.model.ports import Port
from engine.spec import TensorSpec

_MOST_RANK = 3
"""Axes of an input that is a sequence: rows, places, features. Pictures have more, and vary in two of them."""


@dataclass(frozen=True, slots=True)
class DynamicAxes:
    """Axes that have one length in common, which differs from run to run.

    Attributes:
        by_input: for each input, those of its axes.
    """

    by_input: tuple[tuple[int, ...], ...] = ()

    def split(self, inputs: Sequence[TensorSpec]) -> tuple[tuple[TensorSpec, ...], int] | None:
        """Return what inputs have in common with those of other lengths, and their length.

        None without dynamic axes, or if their lengths differ.
        """
        if not self.by_input:
            return None
        lengths = {
            spec.shape[axis] for spec, axes in zip(inputs, self.by_input, strict=True) for axis in axes
        }
        return (self.at(inputs, 0), lengths.pop()) if len(lengths) == 1 else None

    def at(self, inputs: Sequence[TensorSpec], length: int) -> tuple[TensorSpec, ...]:
        """Return such inputs of another length."""
        return tuple(
            TensorSpec(
                tuple(length if axis in axes else extent for axis, extent in enumerate(spec.shape)),
                spec.dtype,
            )
            for spec, axes in zip(inputs, self.by_input, strict=True)
        )


NO_DYNAMIC_AXES = DynamicAxes()
"""The axes of a graph without a common dynamic length."""


def dynamic_axes(ports: Sequence[Port]) -> DynamicAxes:
    """Return the dynamic axes of a graph's inputs, except the first axis.

    The first axis is the batch, which is handled separately.
    """
    shapes = [port.shape for port in ports]
    if any(shape is None or len(shape) > _MOST_RANK for shape in shapes):
        return NO_DYNAMIC_AXES
    axes = tuple(
        tuple(axis for axis, extent in enumerate(shape or ()) if extent is None and axis > 0)
        for shape in shapes
    )
    return DynamicAxes(axes) if any(axes) else NO_DYNAMIC_AXES
