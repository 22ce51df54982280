"""Second shapes: from what differs between two, the exporter tells which sizes are open.

A shape that a model cannot take kills the exporter, so each is tried on the model first.
"""

from collections.abc import Iterator, Sequence

from engine import Array
from service.export.errors import ExportError
from service.export.input_spec import InputSpec
from service.export.source import Source
from service.export.trial import Shapes, runnable_arrays

_GROWTH = (
    lambda size, place: size + 32 * (place + 1),
    lambda size, place: size * 2,  # noqa: ARG005  # all of them alike
    lambda size, place: size + 32,  # noqa: ARG005
    lambda size, place: size + 8 * (place + 1),
    lambda size, place: size // 2,  # noqa: ARG005
)
"""Ways to change sizes, the most telling first: those of height and width are to differ.

A change that is too small tells nothing: where a picture is halved five times, 33 pixels come to the same as 32.
"""


def second_shapes(source: Source, specs: Sequence[InputSpec]) -> list[Array] | None:
    """Return inputs whose open sizes are others than those of the first; None where no size is open.

    Raises:
        ExportError: the model runs on no such inputs; names a size that cannot vary, and what the model said.
    """
    open_axes = sorted({axis for spec in specs for axis, is_open in enumerate(spec.is_open) if is_open})
    if not open_axes:
        return None
    problem = ""
    for shapes in _candidates(specs, open_axes):
        try:
            return runnable_arrays(specs, shapes, source.run)[0]
        except ExportError as error:
            problem = problem or str(error)
    raise ExportError(_fixed(source, specs, open_axes) or problem)


def _candidates(specs: Sequence[InputSpec], axes: Sequence[int]) -> Iterator[Shapes]:
    """Yield shapes in which all open sizes differ from the first ones; equal ones of several inputs stay equal."""
    seen = set()
    for grow in _GROWTH:
        shapes = tuple(
            tuple(
                _grown(size, axis, axes, grow) if is_open else size
                for axis, (size, is_open) in enumerate(zip(spec.shape, spec.is_open, strict=True))
            )
            for spec in specs
        )
        differs = all(
            new != old
            for spec, shape in zip(specs, shapes, strict=True)
            for new, old, is_open in zip(shape, spec.shape, spec.is_open, strict=True)
            if is_open
        )
        if shapes not in seen and differs and all(size > 0 for shape in shapes for size in shape):
            seen.add(shapes)
            yield shapes


def _grown(size: int, axis: int, axes: Sequence[int], grow: object) -> int:
    if axis == 0:
        return size + 1  # of batches, the next size
    place = [other for other in axes if other != 0].index(axis)
    return int(grow(size, place)) if callable(grow) else size


def _fixed(source: Source, specs: Sequence[InputSpec], axes: Sequence[int]) -> str:
    """Say which open size no other value suits, where each is varied alone."""
    for axis in axes:
        problem = ""
        for shapes in _candidates([_only(spec, axis) for spec in specs], [axis]):
            try:
                runnable_arrays(specs, shapes, source.run)
                problem = ""
                break
            except ExportError as error:
                problem = problem or str(error)
        if problem:
            sizes = " and ".join(sorted({str(spec.shape[axis]) for spec in specs if _has(spec, axis)}))
            return f"size {axis} cannot be open: {problem}. Give the number in place of the ?, as {sizes}"
    return ""


def _only(spec: InputSpec, axis: int) -> InputSpec:
    is_open = tuple(place == axis and flag for place, flag in enumerate(spec.is_open))
    return InputSpec(spec.shape, is_open, spec.dtype, spec.name)


def _has(spec: InputSpec, axis: int) -> bool:
    return axis < len(spec.is_open) and spec.is_open[axis]
