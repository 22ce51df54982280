"""Operators of ONNX that the exporter leaves untranslated when it imports a model, and that PyTorch has as well.

Operands come in ONNX's order, attributes as parameters under ONNX's names with ONNX's defaults. Meanings:
https://onnx.ai/onnx/operators/
"""

from typing import Any

import numpy as np

from engine.binding.arguments import Ints
from engine.binding.registry import layer
from engine.dtypes import Array
from engine.errors import ArgumentError
from engine.kernels.axes import axis, broadcast, checked_shape
from engine.kernels.functions import MORE_UNARY
from engine.kernels.ordering import ordered
from engine.kernels.promotion import BOOL, INT64
from engine.layers.checks import check_kind, check_rank, keeps
from engine.layers.triangle import tril, triu
from engine.spec import UNKNOWN, TensorSpec, Unknown


def _infer_expand(input: TensorSpec, shape: TensorSpec | Ints) -> TensorSpec | Unknown:
    if isinstance(shape, TensorSpec):
        return UNKNOWN
    return input.with_shape(broadcast(input.shape, shape, argument="shape"))


@layer("Expand", infer=_infer_expand)
def onnx_expand(input: Array, shape: Array | Ints) -> Array:
    """Broadcast a tensor with a shape; sizes of 1 keep those of the tensor."""
    sizes = tuple(shape.tolist()) if isinstance(shape, np.ndarray) else shape
    return np.broadcast_to(input, broadcast(input.shape, checked_shape(sizes, "shape"), argument="shape"))


def _infer_nonzero() -> Unknown:
    return UNKNOWN


@layer("NonZero", infer=_infer_nonzero)
def onnx_nonzero(input: Array) -> Array:
    """Find the indices of what is not zero, one element a column."""
    return np.ascontiguousarray(np.argwhere(input).T, np.int64)


def _infer_topk(input: TensorSpec, k: TensorSpec | int, axis: int) -> tuple[TensorSpec, TensorSpec] | Unknown:
    check_kind("input", input, "iuf")
    if isinstance(k, TensorSpec):
        return UNKNOWN
    shape = _topk_shape(input.shape, k, axis)
    return input.with_shape(shape), TensorSpec(shape, INT64)


def _topk_shape(shape: tuple[int, ...], k: int, dim: int) -> tuple[int, ...]:
    place = axis(dim, len(shape), "axis")
    if not shape or not 0 <= k <= shape[place]:
        raise ArgumentError("k", f"got {k}", f"at most the size of dimension {dim} of {shape}")
    return (*shape[:place], k, *shape[place + 1 :])


@layer("TopK", infer=_infer_topk)
def onnx_topk(
    input: Array, k: Array | int, axis: int = -1, largest: int = 1, sorted: int = 1
) -> tuple[Array, Array]:
    """Take the `k` largest or smallest values along a dimension, in order, and where they are."""
    del sorted
    count = _number("k", k)
    _topk_shape(input.shape, count, axis)
    return ordered(input, count, axis % input.ndim, descending=bool(largest))


@layer("CumSum", infer=keeps("iuf"))
def onnx_cumsum(input: Array, axis: Array | int, exclusive: int = 0, reverse: int = 0) -> Array:
    """Add up along a dimension; `exclusive` leaves each element's own value out, `reverse` begins at the end."""
    place = _place(_number("axis", axis), input.ndim)
    line = np.flip(input, place) if reverse else input
    sums = np.cumsum(line, place, input.dtype)
    if exclusive:
        sums = np.roll(sums, 1, place)
        sums[(slice(None),) * place + (slice(1),)] = 0
    return np.flip(sums, place) if reverse else sums


def _number(name: str, value: Array | int) -> int:
    """Return the one integer that ONNX gives in a tensor."""
    array = np.asarray(value)
    if array.size != 1 or array.dtype.kind not in "iu":
        raise ArgumentError(name, f"got {array.dtype} of shape {array.shape}", "one integer")
    return int(array.item())


def _place(dim: int, rank: int) -> int:
    return axis(dim, rank, "axis")


def _infer_trilu(input: TensorSpec) -> TensorSpec:
    if input.rank < 2:
        raise ArgumentError("input", f"got {input.rank} dimensions", "at least 2")
    return input


@layer("Trilu", infer=_infer_trilu)
def onnx_trilu(input: Array, k: Array | int = 0, upper: int = 1) -> Array:
    """Keep what is on and above a diagonal of each matrix, or on and below it."""
    return (triu if upper else tril)(input, _number("k", k))


def _infer_place(input: TensorSpec, axis: int, keepdims: int) -> TensorSpec:
    check_kind("input", input, "iuf")
    place = _place(axis, input.rank)
    if not input.shape or not input.shape[place]:
        raise ArgumentError("input", f"got shape {input.shape}", "something to choose from")
    kept = (1,) if keepdims else ()
    return TensorSpec((*input.shape[:place], *kept, *input.shape[place + 1 :]), INT64)


def _found(find: Any, input: Array, axis: int, keepdims: int, last: int) -> Array:
    place = _place(axis, input.ndim)
    if not last:
        return np.asarray(find(input, place, keepdims=bool(keepdims)), np.int64)
    backwards = find(np.flip(input, place), place, keepdims=bool(keepdims))
    return np.asarray(input.shape[place] - 1 - backwards, np.int64)


@layer("ArgMax", infer=_infer_place)
def onnx_argmax(input: Array, axis: int = 0, keepdims: int = 1, select_last_index: int = 0) -> Array:
    """Find where the largest value is along a dimension, the first or the last of several."""
    return _found(np.argmax, input, axis, keepdims, select_last_index)


@layer("ArgMin", infer=_infer_place)
def onnx_argmin(input: Array, axis: int = 0, keepdims: int = 1, select_last_index: int = 0) -> Array:
    """Find where the smallest value is along a dimension, the first or the last of several."""
    return _found(np.argmin, input, axis, keepdims, select_last_index)


def _infer_truth(input: TensorSpec) -> TensorSpec:
    return TensorSpec(input.shape, BOOL)


@layer("IsNaN", infer=_infer_truth)
def onnx_isnan(input: Array) -> Array:
    """Return which elements are NaN."""
    return MORE_UNARY["isnan"](input)


@layer("IsInf", infer=_infer_truth)
def onnx_isinf(input: Array, detect_negative: int = 1, detect_positive: int = 1) -> Array:
    """Return which elements are infinite, of the requested signs."""
    found = np.zeros(input.shape, np.bool_)
    if detect_negative:
        found |= input == -np.inf
    if detect_positive:
        found |= input == np.inf
    return found


@layer("Softsign", infer=keeps("f"))
def onnx_softsign(input: Array) -> Array:
    """Compute x / (1 + |x|)."""
    return np.asarray(input / (1 + np.abs(input)))


@layer("ThresholdedRelu", infer=keeps("f"))
def onnx_thresholded_relu(input: Array, alpha: float = 1.0) -> Array:
    """Keep what is above `alpha`; zero elsewhere."""
    return np.where(input > input.dtype.type(alpha), input, input.dtype.type(0))


def _infer_prelu(input: TensorSpec, slope: TensorSpec) -> TensorSpec:
    check_kind("input", input, "iuf")
    if broadcast(input.shape, slope.shape, argument="slope") != input.shape or slope.dtype != input.dtype:
        raise ArgumentError(
            "slope", f"got {slope}", f"one that broadcasts to {input.shape}, in {input.dtype}"
        )
    return input


@layer("PRelu", infer=_infer_prelu)
def onnx_prelu(input: Array, slope: Array) -> Array:
    """Multiply what is below zero by a slope, which broadcasts from the last dimension on."""
    return np.where(input < 0, input * slope, input)


def _infer_depth_to_space(input: TensorSpec, blocksize: int, mode: str) -> TensorSpec:
    check_rank("input", input, 4)
    batch, channels, height, width = input.shape
    if blocksize < 1 or channels % blocksize**2:
        raise ArgumentError(
            "blocksize", f"got {blocksize} for {channels} channels", "blocks that divide them"
        )
    if mode not in ("DCR", "CRD"):
        raise ArgumentError("mode", f"got {mode!r}", "'DCR' or 'CRD'")
    return input.with_shape((batch, channels // blocksize**2, height * blocksize, width * blocksize))


@layer("DepthToSpace", infer=_infer_depth_to_space)
def onnx_depth_to_space(input: Array, blocksize: int, mode: str = "DCR") -> Array:
    """Turn channels into pixels; the blocks' pixels are the first part of a channel's number, or with CRD the last."""
    batch, channels, height, width = input.shape
    depth = channels // blocksize**2
    if mode == "DCR":
        blocks = input.reshape(batch, blocksize, blocksize, depth, height, width).transpose(0, 3, 4, 1, 5, 2)
    else:
        blocks = input.reshape(batch, depth, blocksize, blocksize, height, width).transpose(0, 1, 4, 2, 5, 3)
    return blocks.reshape(batch, depth, height * blocksize, width * blocksize)


def _infer_pad(input: TensorSpec, pads: Ints, mode: str) -> TensorSpec:
    rank = input.rank
    if len(pads) != 2 * rank or mode != "constant":
        raise ArgumentError("pads", f"got {pads} in mode {mode!r}", f"{2 * rank} constant margins")
    sizes = [size + pads[at] + pads[rank + at] for at, size in enumerate(input.shape)]
    return input.with_shape(checked_shape(sizes, "pads"))


@layer("Pad", infer=_infer_pad)
def onnx_pad(input: Array, pads: Ints, mode: str = "constant", value: float = 0.0) -> Array:
    """Put constant margins around, or cut off where they are negative: all that begin axes, then all that end them."""
    rank = input.ndim
    shape = _infer_pad(TensorSpec(input.shape, input.dtype), pads, mode).shape
    result = np.full(shape, value, input.dtype)
    before, after = pads[:rank], pads[rank:]
    target = tuple(
        slice(max(b, 0), size - max(a, 0)) for b, a, size in zip(before, after, shape, strict=True)
    )
    source = tuple(
        slice(max(-b, 0), size - max(-a, 0)) for b, a, size in zip(before, after, input.shape, strict=True)
    )
    result[target] = input[source]
    return result
