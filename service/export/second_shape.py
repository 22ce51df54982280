"""Further shapes of inputs with dynamic dimensions: for the exporter, which takes two, and for the comparison.

A shape that a model cannot take kills the exporter, so each is tried on the model first.
"""

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from engine import Array
from service.export.errors import ExportError
from service.export.input_spec import InputSpec
from service.export.source import Source
from service.export.trial import Shapes, Trial

Change = Callable[[int, int], int]
"""From a size, and the place of its dimension among the dynamic ones, to another size."""

_PICTURE_SECOND: tuple[Change, ...] = (
    lambda size, place: size + 32 * (place + 1),
    lambda size, place: size * 2,  # noqa: ARG005  # all of them alike
    lambda size, place: size + 32,  # noqa: ARG005
    lambda size, place: size + 8 * (place + 1),
    lambda size, place: size // 2,  # noqa: ARG005
)
_LENGTH_SECOND: tuple[Change, ...] = (
    lambda size, place: size * 2 + 8 * place,
    *_PICTURE_SECOND,
)
"""Ways to change sizes for the exporter, the most distinctive first: those of height and width are to differ.

A change that a stride divides away shows nothing: of 16,000 samples and of 16,032, a stride of 320 makes as many.
"""
_SMALLER: tuple[Change, ...] = (
    lambda size, place: int(size * 0.61) - 4 * place | 1,
    lambda size, place: size - 32,  # noqa: ARG005
    lambda size, place: size - 8,  # noqa: ARG005
    lambda size, place: size // 2,  # noqa: ARG005
)
_LARGER: tuple[Change, ...] = (
    lambda size, place: int(size * 1.57) + 4 * place | 1,
    lambda size, place: size + 96,  # noqa: ARG005
    lambda size, place: size * 3,  # noqa: ARG005
    lambda size, place: size + 24,  # noqa: ARG005
)
_MUCH_LARGER: tuple[Change, ...] = (
    lambda size, place: int(size * 2.7) + 4 * place | 1,
    *_LARGER,
)


def is_dynamic(specs: Sequence[InputSpec]) -> bool:
    """Whether any dimension is dynamic."""
    return any(any(spec.is_dynamic) for spec in specs)


def second_inputs(source: Source, specs: Sequence[InputSpec], trial: Trial) -> Iterator[list[Array]]:
    """Yield inputs whose dynamic sizes are others than those of the first, the most distinctive first.

    Raises:
        ExportError: the model runs on no such inputs; names a size that cannot vary, and what the model said.
    """
    problems: list[str] = []
    changes = _PICTURE_SECOND if _are_pictures(specs) else _LENGTH_SECOND
    found = _running(source, trial, _changed(specs, changes), 1, problems)
    first = next(found, None)
    if first is None:
        raise ExportError(_fixed(source, specs, trial) or problems[0])
    yield first
    yield from found


def further_inputs(source: Source, specs: Sequence[InputSpec], trial: Trial) -> Iterator[list[Array]]:
    """Yield inputs that the exporter does not see: smaller ones, and larger ones, of sizes that no stride divides.

    Where no size is dynamic these are inputs of the same shapes with other values.
    """
    if not is_dynamic(specs):
        yield trial.arrays([spec.shape for spec in specs], 1)
        return
    larger = _LARGER if _are_pictures(specs) else _MUCH_LARGER
    for place, (changes, batch) in enumerate(((_SMALLER, 5), (larger, 3)), 2):
        found = _running(source, trial, _changed(specs, changes, batch=batch), place, [])
        yield from itertools.islice(found, 1)


def dynamic_specs(source: Source, specs: Sequence[InputSpec], trial: Trial) -> list[InputSpec]:
    """Return the inputs with each dimension dynamic that the model lets vary."""
    found = [replace(spec, is_dynamic=(False,) * len(spec.shape)) for spec in specs]
    for axis in range(max(len(spec.shape) for spec in specs)):
        alone = [_only(spec, axis) for spec in specs]
        changed = _running(source, trial, _changed(alone, _LENGTH_SECOND), 0, [])
        if is_dynamic(alone) and next(changed, None) is not None:
            found = [_or(spec, other) for spec, other in zip(found, alone, strict=True)]
    return found


def _are_pictures(specs: Sequence[InputSpec]) -> bool:
    return all(len(spec.shape) == 4 for spec in specs)


def _changed(specs: Sequence[InputSpec], changes: Sequence[Change], batch: int = 0) -> Iterator[Shapes]:
    """Yield shapes in which all dynamic sizes differ from the first ones; equal ones of several inputs stay equal."""
    axes = sorted({axis for spec in specs for axis, varies in enumerate(spec.is_dynamic) if varies})
    places = {axis: place for place, axis in enumerate(axis for axis in axes if axis)}
    seen = {tuple(spec.shape for spec in specs)}
    for change in changes:
        shapes = tuple(
            tuple(
                size if not varies else (batch or size + 1) if axis == 0 else change(size, places[axis])
                for axis, (size, varies) in enumerate(zip(spec.shape, spec.is_dynamic, strict=True))
            )
            for spec in specs
        )
        if shapes not in seen and all(size > 0 for shape in shapes for size in shape):
            seen.add(shapes)
            yield shapes


def _running(
    source: Source, trial: Trial, candidates: Iterator[Shapes], place: int, problems: list[str]
) -> Iterator[list[Array]]:
    """Yield arrays of those shapes that the model runs on; note what it said of the others."""
    for shapes in candidates:
        arrays = trial.arrays(shapes, place)
        try:
            source.run(arrays)
        except ExportError as error:
            problems.append(str(error))
            continue
        yield arrays


def _fixed(source: Source, specs: Sequence[InputSpec], trial: Trial) -> str:
    """Say which dynamic size no other value suits, where each is varied alone."""
    for axis in range(max(len(spec.shape) for spec in specs)):
        alone = [_and(spec, _only(spec, axis)) for spec in specs]
        problems: list[str] = []
        found = _running(source, trial, _changed(alone, _LENGTH_SECOND), 1, problems)
        if is_dynamic(alone) and next(found, None) is None:
            sizes = " and ".join(sorted({str(spec.shape[axis]) for spec in alone if any(spec.is_dynamic)}))
            return f"size {axis} cannot be open: {problems[0]}. Give the number in place of the ?, as {sizes}"
    return ""


def _only(spec: InputSpec, axis: int) -> InputSpec:
    return replace(spec, is_dynamic=tuple(place == axis for place in range(len(spec.shape))))


def _and(spec: InputSpec, other: InputSpec) -> InputSpec:
    return replace(
        spec,
        is_dynamic=tuple(one and two for one, two in zip(spec.is_dynamic, other.is_dynamic, strict=True)),
    )


def _or(spec: InputSpec, other: InputSpec) -> InputSpec:
    return replace(
        spec, is_dynamic=tuple(one or two for one, two in zip(spec.is_dynamic, other.is_dynamic, strict=True))
    )
