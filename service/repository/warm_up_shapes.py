"""The shapes that a model is compiled for when it is loaded: those that its requests are expected to have."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import prod

from engine import PNNX_COMPUTE, Port, TensorSpec
from service.config.limits import Limits
from service.config.model_config import FILE_NAME, ModelConfig, ModelConfigError, WarmUpConfig
from service.images.preparation import ImageInput, find_image_input
from service.repository.batching import run_sizes
from service.repository.files import ModelFilesError

MAX_PROGRAMS = 128
"""Maximum combinations of shape and batch size that a model is compiled for when it is loaded."""

_OWN_SHAPES = 2
"""Shapes that `warm_up.shapes` does not list: those that the file declares, and those of an image."""

_IMAGE, _SHAPES = "image.size", "warm_up.shapes"

Shape = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class WarmUpShapes:
    """Shapes of all inputs of one run, in the order of the graph's inputs.

    Attributes:
        shapes: one per input.
        key: the key of `model.toml` that asks for them; None if the model's `.param` file does.
        is_guess: whether a dynamic dimension was taken as 1; a graph that does not run on a guess is not broken.
        has_open_row_dims: whether such a dimension is another one than the batch.
    """

    shapes: tuple[Shape, ...]
    key: str | None = None
    is_guess: bool = False
    has_open_row_dims: bool = False

    @property
    def row_shapes(self) -> tuple[Shape, ...]:
        """The shapes without the batch axis."""
        return tuple(shape[1:] for shape in self.shapes)


def input_specs(ports: Sequence[Port], shapes: Sequence[Shape]) -> tuple[TensorSpec, ...]:
    """Return inputs of these shapes with the dtypes of the graph's inputs, f32 if the file declares none."""
    return tuple(
        TensorSpec(shape, PNNX_COMPUTE[port.dtype or "f32"])
        for port, shape in zip(ports, shapes, strict=True)
    )


def count_programs(config: ModelConfig, default_size: int) -> int:
    """Return the largest number of programs that the warm-up of a model may compile.

    Args:
        config: the model's `model.toml`.
        default_size: `max_batch_size` of models whose configuration sets none.

    Raises:
        ModelConfigError: it is larger than `MAX_PROGRAMS`.
    """
    sizes = batch_sizes(config, config.batching.max_batch_size or default_size)
    shapes = _OWN_SHAPES + len(config.warm_up.shapes)
    count = shapes * (1 + len(sizes))
    if count > MAX_PROGRAMS:
        key = _SHAPES if config.warm_up.shapes else "batching.preferred_batch_sizes"
        problem = f"{shapes} shapes at {1 + len(sizes)} batch sizes are {count} programs"
        raise ModelConfigError(FILE_NAME, key, problem, f"at most {MAX_PROGRAMS}")
    return count


def batch_sizes(config: ModelConfig, max_size: int) -> tuple[int, ...]:
    """Return the numbers of rows that runs of several requests have; none if every request runs on its own."""
    if max_size == 1:
        return ()
    preferred = (size for size in config.batching.preferred_batch_sizes if size <= max_size)
    return tuple(sorted({*run_sizes(max_size), *preferred}))


def warm_up_shapes(ports: Sequence[Port], config: ModelConfig, limits: Limits) -> list[WarmUpShapes]:
    """Return the shapes to compile a model for, without duplicates: declared, of an image, and listed in `[warm_up]`.

    Raises:
        ModelConfigError: a shape in `model.toml` does not fit the graph's inputs, or is larger than a request may be.
        ModelFilesError: a declared shape is larger than a request may be.
    """
    wanted = [*_image(ports, config), *_listed(ports, config.warm_up)]
    declared = _declared(ports)
    if declared is not None and not (declared.has_open_row_dims and wanted):
        wanted.insert(0, declared)
    for item in wanted:
        if item.key != _IMAGE:  # images have a limit of their own
            _check_size(ports, item, limits)
    first: dict[tuple[Shape, ...], WarmUpShapes] = {}
    for item in wanted:
        first.setdefault(item.shapes, item)
    return list(first.values())


def with_rows(items: Iterable[WarmUpShapes], sizes: Sequence[int]) -> Iterator[tuple[Shape, ...]]:
    """Yield the shapes of `items` with each number of rows, without duplicates and without `items` themselves."""
    items = list(items)
    seen = {item.shapes for item in items}
    for item in items:
        if item.has_open_row_dims:
            continue
        for size in sizes:
            shapes = tuple((size, *shape) for shape in item.row_shapes)
            if shapes not in seen:
                seen.add(shapes)
                yield shapes


def _declared(ports: Sequence[Port]) -> WarmUpShapes | None:
    if any(port.shape is None or port.dtype is None for port in ports):
        return None
    shapes = [port.shape or () for port in ports]
    return WarmUpShapes(
        tuple(tuple(1 if dim is None else dim for dim in shape) for shape in shapes),
        is_guess=any(None in shape for shape in shapes),
        has_open_row_dims=any(None in shape[1:] for shape in shapes),
    )


def _image(ports: Sequence[Port], config: ModelConfig) -> Iterator[WarmUpShapes]:
    """Yield the shapes of a request with one image; nothing if an input has dynamic dimensions besides its batch."""
    if config.image is None:
        return
    shapes: list[Shape] = []
    is_guess = False
    for port in ports:
        target = find_image_input(config.image, port)
        if isinstance(target, ImageInput):
            item = (config.image.channels, target.height, target.width)
            shapes.append((target.batch or 1, *item) if target.batched else item)
        elif port.shape is None or None in port.shape[1:]:
            return
        else:
            is_guess = is_guess or None in port.shape
            shapes.append(tuple(dim or 1 for dim in port.shape))
    yield WarmUpShapes(tuple(shapes), _IMAGE, is_guess)


def _listed(ports: Sequence[Port], config: WarmUpConfig) -> Iterator[WarmUpShapes]:
    for place, shapes in enumerate(config.shapes):
        key = f"{_SHAPES}[{place}]"
        if len(shapes) != len(ports):
            names = ", ".join(map(str, ports)) or "none"
            problem = f"{len(shapes)} shape{'s' if len(shapes) != 1 else ''}"
            raise ModelConfigError(FILE_NAME, key, problem, f"one for each input: {names}")
        for port, shape in zip(ports, shapes, strict=True):
            if port.shape is not None and len(shape) != len(port.shape):
                problem = f"{list(shape)} has {len(shape)} dimensions"
                raise ModelConfigError(FILE_NAME, key, problem, f"{len(port.shape)}, like input {port}")
        yield WarmUpShapes(shapes, key)


def _check_size(ports: Sequence[Port], item: WarmUpShapes, limits: Limits) -> None:
    most = f"maximum is {limits.tensor_elements}, or a quarter of --max-body-bytes if larger"
    for port, shape in zip(ports, item.shapes, strict=True):
        if prod(shape) <= limits.tensor_elements:
            continue
        if item.key is None:
            raise ModelFilesError(f"input {port} has {prod(shape)} elements; {most}")
        raise ModelConfigError(FILE_NAME, item.key, f"{list(shape)} has {prod(shape)} elements; {most}")
