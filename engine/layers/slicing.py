"""Layers that slice: Tensor.slice and select over one or several dimensions, slice_copy, narrow, slice_scatter.

A slice over several dimensions is one that PNNX fused out of a chain: `dims` of the tensor itself, in ascending
order, and per dimension either a `start`, an `end` and a `step`, or in `selects` an index that drops the dimension.
INT_MAX means "to the end" among the ends and "no index" among the selects.
"""

import functools
import inspect
from collections.abc import Callable
from typing import Any, TypeAlias

from engine.binding.arguments import Ints, Strings
from engine.binding.registry import layer
from engine.dtypes import Array
from engine.errors import ArgumentError
from engine.kernels.axes import axis, broadcast, position
from engine.kernels.casting import cast
from engine.layers.checks import check_min_rank
from engine.layers.view_rules import view_layer
from engine.spec import UNKNOWN, Spec, TensorSpec, tensor_specs

INT_MAX = 2**31 - 1
"""What PNNX writes for "to the end", and for a dimension that is sliced rather than indexed."""

SliceKey: TypeAlias = tuple[slice | int, ...]


def _key(
    shape: tuple[int, ...],
    dims: Ints,
    starts: Ints | None,
    ends: Ints | None,
    steps: Ints | None,
    selects: Ints | None,
) -> SliceKey:
    """Work out numpy's index: one slice or one int per dimension."""
    count = len(dims)
    starts, ends, steps = starts or (0,) * count, ends or (INT_MAX,) * count, steps or (1,) * count
    selects = selects or (INT_MAX,) * count
    for name, values in (("starts", starts), ("ends", ends), ("steps", steps), ("selects", selects)):
        if len(values) != count:
            raise ArgumentError(name, f"got {len(values)} values", f"one for each of {count} dims")
    key: list[slice | int] = [slice(None)] * len(shape)
    for dim, start, end, step, select in zip(dims, starts, ends, steps, selects, strict=True):
        if not shape:
            raise ArgumentError("input", "got no dimensions", "a tensor with dimensions")
        place = axis(dim, len(shape))
        if select != INT_MAX:
            key[place] = position(select, shape[place])
        elif step < 1:
            raise ArgumentError("step", f"got {step}", "at least 1")
        else:
            key[place] = slice(*slice(start, None if end == INT_MAX else end, step).indices(shape[place]))
    return tuple(key)


def _one(value: int | None) -> Ints | None:
    return None if value is None else (value,)


def _slice_key(
    shape: tuple[int, ...],
    dim: int | None = None,
    start: int | None = None,
    end: int | None = None,
    step: int | None = None,
    select: int | None = None,
    dims: Ints | None = None,
    starts: Ints | None = None,
    ends: Ints | None = None,
    steps: Ints | None = None,
    selects: Ints | None = None,
) -> SliceKey:
    """Return the key of a slice in one dimension, or in several."""
    if dims is None:
        return _key(shape, (dim or 0,), _one(start), _one(end), _one(step), _one(select))
    return _key(shape, dims, starts, ends, steps, selects)


def _takes_slice(function: Callable[..., Array]) -> Callable[..., Array]:
    """Return a layer's function that takes the arguments of a slice where `function` takes the key of one.

    The key comes last, and is of the first of the other arguments.
    """
    *own, _ = inspect.signature(function).parameters.values()
    _, *bounds = inspect.signature(_slice_key).parameters.values()

    @functools.wraps(function)
    def forward(**arguments: Any) -> Array:
        arrays = [arguments.pop(parameter.name) for parameter in own]
        return function(*arrays, _slice_key(arrays[0].shape, **arguments))

    forward.__signature__ = inspect.Signature([*own, *bounds])  # type: ignore[attr-defined]  # read when it is registered
    return forward


def _sliced_shape(shape: tuple[int, ...], key: SliceKey) -> tuple[int, ...]:
    return tuple(
        len(range(*part.indices(size)))
        for size, part in zip(shape, key, strict=True)
        if isinstance(part, slice)
    )


@view_layer("Tensor.slice")
@_takes_slice
def slice_tensor(input: Array, key: SliceKey) -> Array:
    """Look at every `step`-th index from `start` up to `end`, in one dimension or several."""
    return input[(*key, ...)]


def _infer_slice_copy(self: TensorSpec, src: TensorSpec, **bounds: Any) -> TensorSpec:
    shape = _sliced_shape(self.shape, _slice_key(self.shape, **bounds))
    if broadcast(src.shape, shape, argument="src") != shape:
        raise ArgumentError("src", f"got shape {src.shape}", f"one that broadcasts to {shape}")
    return self


@layer("Tensor.slice_copy", infer=_infer_slice_copy)
@_takes_slice
def slice_copy(self: Array, src: Array, key: SliceKey) -> Array:
    """Give a copy of `self` in which the slice has the values of `src`."""
    result = self.copy()
    result[key] = cast(src, self.dtype)
    return result


def _selected(shape: tuple[int, ...], dim: int, index: int) -> tuple[int, int]:
    if not shape:
        raise ArgumentError("input", "got no dimensions", "a tensor with dimensions")
    place = axis(dim, len(shape))
    return place, position(index, shape[place])


def _infer_select(input: TensorSpec, dim: int, index: int | Ints) -> TensorSpec:
    places = index if isinstance(index, tuple) else (index,)
    check_min_rank("input", input, 1)  # also without any index
    place = axis(dim, input.rank)
    for at in places:
        _selected(input.shape, dim, at)
    kept = (len(places),) if isinstance(index, tuple) else ()
    return input.with_shape((*input.shape[:place], *kept, *input.shape[place + 1 :]))


@layer("Tensor.select", infer=_infer_select)
def select(input: Array, dim: int, index: int | Ints) -> Array:
    """Look at one index of a dimension, which is dropped; of several, as ONNX's Gather gives them, take each."""
    if isinstance(index, tuple):
        chosen = [_selected(input.shape, dim, at)[1] for at in index]
        return input[(slice(None),) * axis(dim, input.ndim) + (chosen,)]
    place, at = _selected(input.shape, dim, index)
    return input[(slice(None),) * place + (at, ...)]


def _narrowed(shape: tuple[int, ...], dim: int, start: int, length: int) -> tuple[int, int]:
    if not shape:
        raise ArgumentError("input", "got no dimensions", "a tensor with dimensions")
    place = axis(dim, len(shape))
    size = shape[place]
    if not -size <= start <= size:
        raise ArgumentError("start", f"got {start}", f"from {-size} to {size}")
    first = start + size if start < 0 else start
    if not 0 <= length <= size - first:
        raise ArgumentError("length", f"got {length}", f"from 0 to {size - first}")
    return place, first


@view_layer("torch.narrow")
def narrow(input: Array, dim: int, start: int, length: int) -> Array:
    """Look at `length` indices of a dimension, from `start` on."""
    place, first = _narrowed(input.shape, dim, start, length)
    return input[(slice(None),) * place + (slice(first, first + length),)]


def _infer_slice_scatter(
    input: TensorSpec, src: TensorSpec, dim: int, start: int | None, end: int | None, step: int
) -> TensorSpec:
    shape = _sliced_shape(input.shape, _key(input.shape, (dim,), _one(start), _one(end), (step,), None))
    if src.shape != shape:
        raise ArgumentError("src", f"got shape {src.shape}", f"{shape}")
    return input


@layer("torch.slice_scatter", infer=_infer_slice_scatter)
def slice_scatter(
    input: Array, src: Array, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1
) -> Array:
    """Give a copy of `input` in which a slice of one dimension has the values of `src`."""
    result = input.copy()
    result[_key(input.shape, (dim,), _one(start), _one(end), (step,), None)] = cast(src, input.dtype)
    return result


def _infer_slice_indexes(*values: Spec, indexes: Strings) -> Spec:
    return UNKNOWN if any(tensor_specs(values)) else slice_indexes(*values, indexes=indexes)


@layer("pnnx.SliceIndexes", infer=_infer_slice_indexes)
def slice_indexes(*values: Any, indexes: Strings) -> tuple[Ints]:
    """Gather the bounds of a slice: each index is a number, or `@0` for the first operand."""
    gathered = []
    for text in indexes:
        operand = text.removeprefix("@")
        digits = operand.removeprefix("-") if operand == text else operand
        if not (digits.isascii() and digits.isdecimal()) or (operand != text and int(operand) >= len(values)):
            raise ArgumentError("indexes", f"got {text!r}", "a number, or @ and the place of an operand")
        gathered.append(int(values[int(operand)]) if operand != text else int(text))
    return (tuple(gathered),)
