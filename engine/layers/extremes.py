"""Layers that find the largest and the smallest: max, min, amax, amin, argmax, argmin, topk.

NaN counts as larger than everything where a largest is sought, and as smaller where a smallest is, as in PyTorch.
"""

from collections.abc import Callable

import numpy as np

from engine.binding.arguments import Ints
from engine.binding.registry import layer
from engine.dtypes import Array
from engine.errors import ArgumentError
from engine.kernels.axes import axes, axis, reduced_shape
from engine.kernels.ordering import ordered
from engine.kernels.promotion import INT64
from engine.layers.checks import check_kind
from engine.spec import TensorSpec


def _reduced(input: TensorSpec, dims: Ints, keepdim: bool) -> TensorSpec:
    check_kind("input", input, "biuf")
    places = axes(dims, input.rank)
    if any(input.shape[place] == 0 for place in places):
        raise ArgumentError("input", f"got shape {input.shape}", "something to choose from")
    return input.with_shape(reduced_shape(input.shape, places, keepdim))


def _infer_extreme_values(input: TensorSpec, dim: Ints, keepdim: bool) -> TensorSpec:
    return _reduced(input, dim, keepdim)


@layer("torch.amax", infer=_infer_extreme_values)
def amax(input: Array, dim: Ints = (), keepdim: bool = False) -> Array:
    """Take the largest value over `dim`, or over all dimensions."""
    return np.asarray(np.max(input, axes(dim, input.ndim), keepdims=keepdim))


@layer("torch.amin", infer=_infer_extreme_values)
def amin(input: Array, dim: Ints = (), keepdim: bool = False) -> Array:
    """Take the smallest value over `dim`, or over all dimensions."""
    return np.asarray(np.min(input, axes(dim, input.ndim), keepdims=keepdim))


def _dims(dim: int | None) -> Ints:
    return () if dim is None else (dim,)


def _infer_place(input: TensorSpec, dim: int | None, keepdim: bool) -> TensorSpec:
    return TensorSpec(_reduced(input, _dims(dim), keepdim).shape, INT64)


@layer("torch.argmax", infer=_infer_place)
def argmax(input: Array, dim: int | None = None, keepdim: bool = False) -> Array:
    """Find where the first largest value is along a dimension, or in the flattened tensor."""
    return _place(np.argmax, input, dim, keepdim)


@layer("torch.argmin", infer=_infer_place)
def argmin(input: Array, dim: int | None = None, keepdim: bool = False) -> Array:
    """Find where the first smallest value is along a dimension, or in the flattened tensor."""
    return _place(np.argmin, input, dim, keepdim)


def _place(find: Callable[..., Array], input: Array, dim: int | None, keepdim: bool) -> Array:
    if not input.ndim:
        return np.zeros((), np.int64)
    place = None if dim is None else axis(dim, input.ndim)
    return np.asarray(find(input, place, keepdims=keepdim)).astype(np.int64, copy=False)


def _infer_extreme(input: TensorSpec, dim: int | None, keepdim: bool) -> TensorSpec | tuple[TensorSpec, ...]:
    if dim is None:
        return _reduced(input, (), keepdim=False)
    values = _reduced(input, (dim,), keepdim)
    return values, TensorSpec(values.shape, INT64)


@layer("torch.max", infer=_infer_extreme)
def maximum(input: Array, dim: int | None = None, keepdim: bool = False) -> Array | tuple[Array, Array]:
    """Take the largest value of all; with `dim` the largest along it, and where the first of them is."""
    return amax(input) if dim is None else _extreme(np.argmax, input, dim, keepdim)


@layer("torch.min", infer=_infer_extreme)
def minimum(input: Array, dim: int | None = None, keepdim: bool = False) -> Array | tuple[Array, Array]:
    """Take the smallest value of all; with `dim` the smallest along it, and where the first of them is."""
    return amin(input) if dim is None else _extreme(np.argmin, input, dim, keepdim)


def _extreme(find: Callable[..., Array], input: Array, dim: int, keepdim: bool) -> tuple[Array, Array]:
    indices = _place(find, input, dim, keepdim=True)
    if not input.ndim:
        return input, indices
    place = axis(dim, input.ndim)
    values = np.take_along_axis(input, indices, place)
    return (values, indices) if keepdim else (values.squeeze(place), indices.squeeze(place))


def _infer_topk(input: TensorSpec, k: int, dim: int) -> tuple[TensorSpec, TensorSpec]:
    check_kind("input", input, "biuf")
    place = axis(dim, input.rank)
    available = input.shape[place] if input.shape else 1
    if not 0 <= k <= available:
        raise ArgumentError("k", f"got {k}", f"from 0 to {available}")
    shape = (*input.shape[:place], k, *input.shape[place + 1 :]) if input.shape else ()
    return input.with_shape(shape), TensorSpec(shape, INT64)


@layer("torch.topk", infer=_infer_topk)
def topk(
    input: Array, k: int, dim: int = -1, largest: bool = True, sorted: bool = True
) -> tuple[Array, Array]:
    """Take the `k` largest or smallest values along a dimension, and where they are.

    They are sorted whatever `sorted` is; of equal values the first comes first.
    """
    del sorted
    if not input.ndim:
        return input, np.zeros((), np.int64)
    return ordered(input, k, axis(dim, input.ndim), descending=largest)
