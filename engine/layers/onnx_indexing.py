"""Operators of ONNX that pick elements by index, which the exporter leaves untranslated when it imports a model.

Operands come in ONNX's order, attributes as parameters under ONNX's names with ONNX's defaults; negative indices count
from the end. Meanings: https://onnx.ai/onnx/operators/
"""

import numpy as np

from engine.binding.registry import layer
from engine.dtypes import Array
from engine.errors import ArgumentError
from engine.kernels.axes import axis as axis_of
from engine.layers.checks import check_index, check_min_rank
from engine.spec import TensorSpec


def _infer_gather(input: TensorSpec, indices: TensorSpec, axis: int) -> TensorSpec:
    check_min_rank("input", input, 1)
    check_index(indices)
    place = axis_of(axis, input.rank, "axis")
    return input.with_shape((*input.shape[:place], *indices.shape, *input.shape[place + 1 :]))


@layer("Gather", infer=_infer_gather)
def onnx_gather(input: Array, indices: Array, axis: int = 0) -> Array:
    """Pick whole slices along a dimension, which the dimensions of `indices` replace."""
    place = axis_of(axis, input.ndim, "axis")
    _check_range(indices, input.shape[place])
    return np.take(input, indices, place)


def _infer_gather_nd(input: TensorSpec, indices: TensorSpec, batch_dims: int) -> TensorSpec:
    check_min_rank("indices", indices, batch_dims + 1)
    check_index(indices)
    count = indices.shape[-1]
    if not 0 <= batch_dims <= batch_dims + count <= input.rank:
        problem = f"names {count} dimensions after {batch_dims} of the batch"
        raise ArgumentError("indices", problem, f"at most {input.rank} in all")
    if input.shape[:batch_dims] != indices.shape[:batch_dims]:
        raise ArgumentError(
            "indices", f"got shape {indices.shape}", f"{input.shape[:batch_dims]} to begin with"
        )
    return input.with_shape((*indices.shape[:-1], *input.shape[batch_dims + count :]))


@layer("GatherND", infer=_infer_gather_nd)
def onnx_gather_nd(input: Array, indices: Array, batch_dims: int = 0) -> Array:
    """Pick what the rows of `indices` name, a place along each dimension behind those of the batch."""
    count = indices.shape[-1]
    for place in range(count):
        _check_range(indices[..., place], input.shape[batch_dims + place])
    batch: tuple[Array, ...] = np.indices(indices.shape[:batch_dims], sparse=True)
    rest = (1,) * (indices.ndim - 1 - batch_dims)
    key = (*(index.reshape(*index.shape, *rest) for index in batch), *np.moveaxis(indices, -1, 0))
    return np.asarray(input[key])


def _check_range(indices: Array, size: int) -> None:
    if indices.size and not -size <= indices.min() <= indices.max() < size:
        wrong = indices[(indices < -size) | (indices >= size)].flat[0]
        raise ArgumentError("indices", f"got {wrong}", f"{-size} to {size - 1}")
