"""Views and concatenation under their ATen names: movedim, hstack, meshgrid and similar.

The exporter has no names of its own for these. Lists of tensors come as one operand.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from engine.binding.arguments import Ints
from engine.binding.registry import layer
from engine.dtypes import Array
from engine.errors import ArgumentError
from engine.kernels.axes import axes, axis, broadcast, checked_shape, expanded_shape
from engine.kernels.promotion import result_type
from engine.layers.joining import cat, infer_cat
from engine.layers.view_rules import view_layer
from engine.spec import TensorSpec


def _transposed(input: Array) -> Array:
    if input.ndim < 2:
        raise ArgumentError("input", f"got {input.ndim} dimensions", "at least 2")
    return input.swapaxes(-1, -2)


@view_layer("aten::mT")
def matrix_transpose(input: Array) -> Array:
    """Swap the last two dimensions."""
    return _transposed(input)


def _infer_adjoint(input: TensorSpec) -> TensorSpec:
    return input.with_shape((*input.shape[:-2], input.shape[-1], input.shape[-2]))


@layer("aten::mH", "aten::adjoint", infer=_infer_adjoint)
def adjoint(input: Array) -> Array:
    """Swap the last two dimensions and conjugate."""
    transposed = _transposed(input)
    return transposed.conj() if input.dtype.kind == "c" else transposed


@view_layer("aten::numpy_T")
def reversed_dimensions(input: Array) -> Array:
    """Reverse the order of all dimensions."""
    return input.T


def _flipped(dim: int) -> Callable[[Array], Array]:
    def flip(input: Array) -> Array:
        if input.ndim <= dim:
            raise ArgumentError("input", f"got {input.ndim} dimensions", f"at least {dim + 1}")
        return np.flip(input, dim)

    return flip


for _name, _dim in (("flipud", 0), ("fliplr", 1)):
    view_layer(f"aten::{_name}")(_flipped(_dim))


@view_layer("aten::rot90")
def rotated(input: Array, k: int = 1, dims: Ints = (0, 1)) -> Array:
    """Turn by `k` quarters of a circle, from the first of two dimensions towards the second."""
    places = axes(dims, input.ndim, "dims")
    if len(dims) != 2 or len(places) != 2:
        raise ArgumentError("dims", f"got {dims}", "two dimensions")
    return np.rot90(input, k, places)


@view_layer("aten::movedim")
def moved(input: Array, source: Ints, destination: Ints) -> Array:
    """Move dimensions to other places; the others keep their order."""
    if len(source) != len(destination):
        raise ArgumentError("destination", f"got {destination}", f"{len(source)} dimensions")
    for name, dims in (("source", source), ("destination", destination)):
        axes(dims, input.ndim, name)
    return np.moveaxis(input, source, destination)


@view_layer("aten::ravel")
def ravel(input: Array) -> Array:
    """Look at all elements in one dimension."""
    return input.reshape(-1)


@view_layer("aten::unfold")
def windows(input: Array, dimension: int, size: int, step: int) -> Array:
    """Look at windows along a dimension, `step` apart; the elements of each are a new last dimension."""
    place = axis(dimension, input.ndim, "dimension")
    line = np.atleast_1d(input)
    if not 0 <= size <= line.shape[place]:
        raise ArgumentError("size", f"got {size}", f"from 0 to {line.shape[place]}")
    if step < 1:
        raise ArgumentError("step", f"got {step}", "1 or more")
    windows = np.lib.stride_tricks.sliding_window_view(line, max(size, 1), place)
    if not size:
        count = line.shape[place] // step + 1
        return np.zeros((*line.shape[:place], count, *line.shape[place + 1 :], 0), input.dtype)
    taken = windows[(slice(None),) * place + (slice(None, None, step),)]
    return taken if input.ndim else taken[0]


@view_layer("aten::broadcast_to")
def spread(input: Array, size: Ints) -> Array:
    """Repeat along dimensions of size 1, and along new ones in front; -1 keeps a size."""
    return np.broadcast_to(input, expanded_shape(input.shape, size, "size"))


def _at_least(rank: int) -> Callable[[Array], Array]:
    functions = (np.atleast_1d, np.atleast_2d, np.atleast_3d)

    def reshape(input: Array) -> Array:
        return functions[rank - 1](input)

    return reshape


for _rank in (1, 2, 3):
    view_layer(f"aten::atleast_{_rank}d")(_at_least(_rank))


def _infer_sum_to_size(input: TensorSpec, size: Ints) -> TensorSpec:
    if input.rank < len(size) or broadcast(input.shape, size, argument="size") != input.shape:
        raise ArgumentError("size", f"got {size}", f"sizes that expand to {input.shape}")
    return input.with_shape(size)


@layer("aten::sum_to_size", infer=_infer_sum_to_size)
def sum_to_size(input: Array, size: Ints) -> Array:
    """Add up along what would have to be repeated to get from `size` to the shape of `input`."""
    added = input.ndim - len(size)
    narrow = [added + place for place, length in enumerate(size) if length == 1]
    total = np.sum(input, (*range(added), *narrow), input.dtype, keepdims=True)
    return np.asarray(total).reshape(size)


@view_layer("aten::numel")
def numel(input: Array) -> Any:
    """Count the elements."""
    return input.size


@view_layer("aten::zero")
def zero(input: Array) -> Array:
    """Give zeros in place of all elements."""
    return np.broadcast_to(input.dtype.type(0), input.shape)


def _columns(tensors: Sequence[Any]) -> list[Any]:
    return [_reshaped(x, (x.shape or (1,)) + (1,)) if len(x.shape) < 2 else x for x in tensors]


def _reshaped(x: Any, shape: tuple[int, ...]) -> Any:
    return x.with_shape(shape) if isinstance(x, TensorSpec) else x.reshape(shape)


def _raised(tensors: Sequence[Any], rank: int) -> list[Any]:
    """Give tensors as many dimensions as `numpy.atleast_2d` and `atleast_3d` do."""
    shapes = {1: lambda s: s or (1,), 2: lambda s: (1,) * (2 - len(s)) + s, 3: _three_dimensional}
    return [_reshaped(x, shapes[rank](tuple(x.shape))) for x in tensors]


def _three_dimensional(shape: tuple[int, ...]) -> tuple[int, ...]:
    return shape if len(shape) > 2 else (*((1, *shape) if len(shape) == 1 else shape or (1, 1)), 1)


_Members = Callable[[Sequence[Any]], list[Any]]

_STACKS: dict[str, tuple[_Members, Callable[[list[Any]], int]]] = {
    "hstack": (lambda tensors: _raised(tensors, 1), lambda members: min(1, len(members[0].shape) - 1)),
    "vstack": (lambda tensors: _raised(tensors, 2), lambda _: 0),
    "dstack": (lambda tensors: _raised(tensors, 3), lambda _: 2),
    "column_stack": (_columns, lambda _: 1),
}
"""Name -> the dimensions that the tensors are given, and the one that they are joined along."""


def _stack_layer(
    join: Callable[..., Any], members: _Members, place: Callable[..., int]
) -> Callable[..., Any]:
    def run(*operands: Any) -> Any:
        tensors = members(_listed(operands))
        return join(*tensors, dim=place(tensors))

    return run


def _listed(operands: Sequence[Any]) -> tuple[Any, ...]:
    """Return the members of the list that is the first operand."""
    if not operands or not isinstance(operands[0], tuple | list) or not operands[0]:
        raise ArgumentError("inputs.0", f"got {len(operands)} operands", "a list of tensors")
    for member in operands[0]:
        if not isinstance(member, np.ndarray | TensorSpec):
            raise ArgumentError("inputs.0", f"got {member!r}", "a list of tensors")
    return tuple(operands[0])


for _name, (_members, _place) in _STACKS.items():
    layer(f"aten::{_name}", infer=_stack_layer(infer_cat, _members, _place))(
        _stack_layer(cat, _members, _place)
    )


def _split_layer(name: str, dim: int, least: int) -> None:
    def split(input: Array, sections: int | Ints) -> list[Array]:
        if input.ndim < least:
            raise ArgumentError("input", f"got {input.ndim} dimensions", f"at least {least}")
        place = 0 if name == "hsplit" and input.ndim == 1 else dim
        if isinstance(sections, int) and (sections < 1 or input.shape[place] % sections):
            raise ArgumentError("sections", f"got {sections}", f"a divisor of {input.shape[place]}")
        parts = sections if isinstance(sections, int) else list(sections)
        return list(np.split(input, parts, place))

    view_layer(f"aten::{name}")(split)


for _name, _dim, _least in (("hsplit", 1, 1), ("vsplit", 0, 2), ("dsplit", 2, 3)):
    _split_layer(_name, _dim, _least)


@view_layer("aten::broadcast_tensors")
def broadcast_list(*operands: Any) -> list[Array]:
    """Repeat tensors until all have one shape."""
    tensors = _listed(operands)
    shape = broadcast(*(tensor.shape for tensor in tensors), argument="inputs.0")
    return [np.broadcast_to(tensor, shape) for tensor in tensors]


@view_layer("aten::meshgrid")
def grids(*operands: Any) -> list[Array]:
    """Spread vectors over a grid, one dimension each: `tensors, indexing`, `ij` by default, or `xy`."""
    tensors = _listed(operands)
    indexing: Any = operands[1] if len(operands) > 1 else "ij"
    if indexing not in ("ij", "xy") or any(tensor.ndim > 1 for tensor in tensors):
        raise ArgumentError("inputs.0", f"got indexing {indexing!r}", "'ij' or 'xy', and vectors")
    lines = [np.atleast_1d(tensor) for tensor in tensors]
    checked_shape([line.size for line in lines])
    return list(np.meshgrid(*lines, indexing=indexing, copy=False))


def _infer_cartesian(*operands: Any) -> TensorSpec:
    tensors = _listed(operands)
    shape = checked_shape([tensor.size for tensor in tensors])
    dtype = result_type(*tensors)
    count = int(np.prod(shape, dtype=np.int64))
    return TensorSpec((count, len(tensors)) if len(tensors) > 1 else shape, dtype)


@layer("aten::cartesian_prod", infer=_infer_cartesian)
def cartesian_prod(*operands: Any) -> Array:
    """Give all combinations of elements of vectors, one a row; of one vector itself."""
    spread_out = grids(operands[0])
    if len(spread_out) == 1:
        return spread_out[0]
    dtype = result_type(*spread_out)
    return np.stack([grid.reshape(-1) for grid in spread_out], 1, dtype=dtype, casting="unsafe")


def _infer_block_diag(*operands: Any) -> TensorSpec:
    tensors = _listed(operands)
    shapes = [(1,) * (2 - len(tensor.shape)) + tuple(tensor.shape) for tensor in tensors]
    if any(len(shape) > 2 for shape in shapes):
        raise ArgumentError("inputs.0", "got more than 2 dimensions", "matrices, vectors or numbers")
    rows, columns = (sum(sizes) for sizes in zip(*shapes, strict=True))
    return TensorSpec(checked_shape((rows, columns)), result_type(*tensors))


@layer("aten::block_diag", infer=_infer_block_diag)
def block_diag(*operands: Any) -> Array:
    """Put matrices on the diagonal of one; a vector is a row."""
    tensors = [np.atleast_2d(tensor) for tensor in _listed(operands)]
    spec = _infer_block_diag(tensors)
    result = np.zeros(spec.shape, spec.dtype)
    row = column = 0
    for block in tensors:
        result[row : row + block.shape[0], column : column + block.shape[1]] = block
        row, column = row + block.shape[0], column + block.shape[1]
    return result
