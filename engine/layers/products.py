"""Products and distances of vectors and matrices under their ATen names: dot, outer, kron, cdist and similar."""

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from engine.binding.arguments import Ints, Number
from engine.binding.registry import layer
from engine.dtypes import Array
from engine.errors import ArgumentError
from engine.kernels import matrix as kernels
from engine.kernels.axes import axis, broadcast, checked_shape
from engine.kernels.casting import cast, narrow, widen
from engine.kernels.promotion import result_type
from engine.kernels.reductions import norm
from engine.kernels.sums import total
from engine.layers.checks import (
    check_dtype,
    check_kind,
    check_min_rank,
    check_rank,
    check_shape,
    check_size,
)
from engine.spec import TensorSpec


def _infer_dot(input: TensorSpec, tensor: TensorSpec) -> TensorSpec:
    for name, spec in (("input", input), ("tensor", tensor)):
        check_rank(name, spec, 1)
        check_kind(name, spec, "iufc")
    check_dtype("tensor", tensor, input)
    check_shape("tensor", tensor, input.shape)
    return input.with_shape(())


@layer("aten::dot", infer=_infer_dot)
def dot(input: Array, tensor: Array) -> Array:
    """Add up the products of the elements of two vectors."""
    return narrow(np.dot(widen(input), widen(tensor)), input.dtype)


@layer("aten::vdot", infer=_infer_dot)
def vdot(input: Array, tensor: Array) -> Array:
    """Add up the products of the elements of two vectors, the first conjugated."""
    return dot(input.conj(), tensor)


def _infer_vecdot(x: TensorSpec, y: TensorSpec, dim: int) -> TensorSpec:
    check_dtype("y", y, x)
    check_kind("x", x, "fc")
    shape = broadcast(x.shape, y.shape, argument="y")
    place = axis(dim, len(shape))
    return x.with_shape((*shape[:place], *shape[place + 1 :]))


@layer("aten::linalg_vecdot", infer=_infer_vecdot)
def vecdot(x: Array, y: Array, dim: int = -1) -> Array:
    """Add up the products of elements along a dimension, the first conjugated."""
    a, b = np.broadcast_arrays(widen(x), widen(y))
    return narrow(np.vecdot(np.moveaxis(a, dim, -1), np.moveaxis(b, dim, -1)), x.dtype)


def _infer_inner(input: TensorSpec, other: TensorSpec) -> TensorSpec:
    check_dtype("other", other, input)
    if not input.shape or not other.shape:
        return input.with_shape(input.shape or other.shape)
    check_size("other", other, other.rank - 1, input.shape[-1])
    return input.with_shape((*input.shape[:-1], *other.shape[:-1]))


@layer("aten::inner", infer=_infer_inner)
def inner(input: Array, other: Array) -> Array:
    """Add up the products of elements along the last dimension of both, for all pairs of vectors."""
    return narrow(np.inner(widen(input), widen(other)), input.dtype)


def _infer_outer(input: TensorSpec, vec2: TensorSpec) -> TensorSpec:
    check_rank("input", input, 1)
    check_rank("vec2", vec2, 1)
    return TensorSpec(checked_shape((input.size, vec2.size)), result_type(input, vec2))


@layer("aten::outer", "aten::ger", infer=_infer_outer)
def outer(input: Array, vec2: Array) -> Array:
    """Multiply each element of a vector with each of another."""
    dtype = result_type(input, vec2)
    return np.multiply.outer(cast(input, dtype), cast(vec2, dtype))


def _infer_kron(input: TensorSpec, other: TensorSpec) -> TensorSpec:
    rank = max(input.rank, other.rank)
    shapes = [(1,) * (rank - spec.rank) + spec.shape for spec in (input, other)]
    sizes = [a * b for a, b in zip(*shapes, strict=True)]
    return TensorSpec(checked_shape(sizes), result_type(input, other))


@layer("aten::kron", infer=_infer_kron)
def kron(input: Array, other: Array) -> Array:
    """Put a copy of `other` times the element in the place of each element of `input`."""
    dtype = result_type(input, other)
    return np.asarray(np.kron(cast(input, dtype), cast(other, dtype)))


def _bf16(
    input: TensorSpec, other: TensorSpec, dims_self: Ints, dims_other: Ints
) -> tuple[list[int], list[int]]:
    """Return the dimensions that are summed over, counted from the front."""
    places = [axis(dim, input.rank, "dims_self") for dim in dims_self]
    others = [axis(dim, other.rank, "dims_other") for dim in dims_other]
    sizes = [input.shape[place] for place in places]
    if sizes != [other.shape[place] for place in others] or len(set(places)) != len(places):
        raise ArgumentError("dims_other", f"got {dims_other} for {dims_self}", "as many, of equal sizes")
    return places, others


def _infer_tensordot(input: TensorSpec, other: TensorSpec, dims_self: Ints, dims_other: Ints) -> TensorSpec:
    check_dtype("other", other, input)
    check_kind("input", input, "iufc")
    places, others = _bf16(input, other, dims_self, dims_other)
    left = [size for place, size in enumerate(input.shape) if place not in places]
    right = [size for place, size in enumerate(other.shape) if place not in others]
    return input.with_shape(checked_shape((*left, *right)))


@layer("aten::tensordot", infer=_infer_tensordot)
def tensordot(input: Array, other: Array, dims_self: Ints, dims_other: Ints) -> Array:
    """Multiply over pairs of dimensions; those of `input` that are left come first."""
    return narrow(np.tensordot(widen(input), widen(other), (dims_self, dims_other)), input.dtype)


def _added(input: TensorSpec, product: TensorSpec, beta: Number, alpha: Number) -> TensorSpec:
    check_dtype("input", input, product)
    if broadcast(input.shape, product.shape, argument="input") != product.shape:
        raise ArgumentError("input", f"shape {input.shape}", f"one that broadcasts to {product.shape}")
    if product.dtype.kind in "iu" and (isinstance(beta, float) or isinstance(alpha, float)):
        raise ArgumentError("beta", f"is {beta}, alpha {alpha}", "ints, as the tensors are of integers")
    return product


def _sum(input: Array, product: Array, beta: Number, alpha: Number) -> Array:
    """Compute beta · input + alpha · product; with beta = 0 the input does not matter."""
    added = product * product.dtype.type(alpha)
    if beta != 0:
        added = added + widen(input) * product.dtype.type(beta)
    return narrow(added, input.dtype)


def _infer_addmv(
    input: TensorSpec, mat: TensorSpec, vec: TensorSpec, beta: Number, alpha: Number
) -> TensorSpec:
    check_rank("mat", mat, 2)
    check_shape("vec", vec, (mat.shape[1],))
    check_dtype("vec", vec, mat)
    return _added(input, mat.with_shape((mat.shape[0],)), beta, alpha)


@layer("aten::addmv", infer=_infer_addmv)
def addmv(input: Array, mat: Array, vec: Array, beta: Number = 1, alpha: Number = 1) -> Array:
    """Compute beta · input + alpha · mat vec."""
    return _sum(input, kernels.matmul(widen(mat), widen(vec)), beta, alpha)


def _infer_addr(
    input: TensorSpec, vec1: TensorSpec, vec2: TensorSpec, beta: Number, alpha: Number
) -> TensorSpec:
    return _added(input, _infer_outer(vec1, vec2), beta, alpha)


@layer("aten::addr", infer=_infer_addr)
def addr(input: Array, vec1: Array, vec2: Array, beta: Number = 1, alpha: Number = 1) -> Array:
    """Compute beta · input + alpha · (vec1 outer vec2)."""
    return _sum(input, outer(widen(vec1), widen(vec2)), beta, alpha)


def _infer_addbmm(
    input: TensorSpec, batch1: TensorSpec, batch2: TensorSpec, beta: Number, alpha: Number
) -> TensorSpec:
    check_rank("batch1", batch1, 3)
    check_rank("batch2", batch2, 3)
    check_dtype("batch2", batch2, batch1)
    batch, rows, common = batch1.shape
    check_shape("batch2", batch2, (batch, common, batch2.shape[2]))
    return _added(input, batch1.with_shape((rows, batch2.shape[2])), beta, alpha)


@layer("aten::addbmm", infer=_infer_addbmm)
def addbmm(input: Array, batch1: Array, batch2: Array, beta: Number = 1, alpha: Number = 1) -> Array:
    """Compute beta · input + alpha · the sum of the products of two stacks of matrices."""
    product = kernels.matmul(widen(batch1), widen(batch2))
    return _sum(input, total(product, (0,)), beta, alpha)


def _matrices(operands: Sequence[Any]) -> list[Any]:
    tensors = operands[0] if operands and isinstance(operands[0], tuple | list) else ()
    if len(tensors) < 2 or not all(isinstance(tensor, np.ndarray | TensorSpec) for tensor in tensors):
        raise ArgumentError("inputs.0", f"got {len(tensors)} tensors", "a list of at least 2")
    return list(tensors)


def _infer_multi_dot(*operands: Any) -> TensorSpec:
    tensors = _matrices(operands)
    shape = tensors[0].shape
    for tensor in tensors[1:]:
        check_dtype("inputs.0", tensor, tensors[0])
        try:
            shape = kernels.matmul_shape(shape, tensor.shape)
        except ValueError as error:
            raise ArgumentError("inputs.0", str(error)) from error
    return TensorSpec(tuple(shape), tensors[0].dtype)


@layer("aten::linalg_multi_dot", infer=_infer_multi_dot)
def multi_dot(*operands: Any) -> Array:
    """Multiply a list of matrices, the first and the last of which may be vectors."""
    tensors = _matrices(operands)
    return narrow(np.linalg.multi_dot([widen(tensor) for tensor in tensors]), tensors[0].dtype)


def _infer_matrix_power(input: TensorSpec, n: int) -> TensorSpec:
    check_min_rank("input", input, 2)
    check_size("input", input, input.rank - 1, input.shape[-2])
    if n < 0:
        raise ArgumentError("n", f"got {n}", "0 or more")
    return input


@layer("aten::linalg_matrix_power", "aten::matrix_power", infer=_infer_matrix_power)
def matrix_power(input: Array, n: int) -> Array:
    """Multiply a matrix with itself `n` times; the identity for 0."""
    return narrow(np.linalg.matrix_power(widen(input), n), input.dtype)


def _infer_cosine(x1: TensorSpec, x2: TensorSpec, dim: int) -> TensorSpec:
    dtype = result_type(x1, x2)
    check_kind("x1", TensorSpec(x1.shape, dtype), "f")
    shape = broadcast(x1.shape, x2.shape, argument="x2")
    place = axis(dim, len(shape))
    return TensorSpec((*shape[:place], *shape[place + 1 :]), dtype)


@layer("aten::cosine_similarity", infer=_infer_cosine)
def cosine_similarity(x1: Array, x2: Array, dim: int = 1, eps: float = 1e-8) -> Array:
    """Take the cosine of the angle between vectors along a dimension, none taken to be shorter than `eps`."""
    dtype = result_type(x1, x2)
    a, b = np.broadcast_arrays(widen(cast(x1, dtype)), widen(cast(x2, dtype)))
    place = axis(dim, a.ndim)
    a, b = (x / np.maximum(norm(x, 2, (place,), True), x.dtype.type(eps)) for x in (a, b))
    return narrow(total(a * b, (place,)), dtype)


def _infer_cdist(x1: TensorSpec, x2: TensorSpec, p: float) -> TensorSpec:
    for name, spec in (("x1", x1), ("x2", x2)):
        check_kind(name, spec, "f")
        check_min_rank(name, spec, 2)
    check_dtype("x2", x2, x1)
    check_size("x2", x2, x2.rank - 1, x1.shape[-1])
    if p < 0:
        raise ArgumentError("p", f"is {p}", "0 or more")
    batch = broadcast(x1.shape[:-2], x2.shape[:-2], argument="x2")
    return x1.with_shape((*batch, x1.shape[-2], x2.shape[-2]))


@layer("aten::cdist", infer=_infer_cdist)
def cdist(x1: Array, x2: Array, p: float = 2.0, compute_mode: int | None = None) -> Array:
    """Take the p-norm of the difference of each vector of `x1` and each of `x2`."""
    del compute_mode
    spec = _infer_cdist(TensorSpec(x1.shape, x1.dtype), TensorSpec(x2.shape, x2.dtype), p)
    if not x1.shape[-1]:
        return np.zeros(spec.shape, spec.dtype)
    checked_shape((prod(spec.shape), x1.shape[-1]), "x1")
    difference = widen(x1)[..., :, np.newaxis, :] - widen(x2)[..., np.newaxis, :, :]
    return narrow(norm(difference, p, (difference.ndim - 1,), False), x1.dtype)


def _infer_pdist(input: TensorSpec, p: float) -> TensorSpec:
    check_rank("input", input, 2)
    _infer_cdist(input, input, p)
    return input.with_shape((input.shape[0] * (input.shape[0] - 1) // 2,))


@layer("aten::pdist", infer=_infer_pdist)
def pdist(input: Array, p: float = 2.0) -> Array:
    """Take the p-norm of the difference of each pair of different rows."""
    return cdist(input, input, p)[np.triu_indices(len(input), 1)]


def _infer_dist(input: TensorSpec, other: TensorSpec) -> TensorSpec:
    broadcast(input.shape, other.shape)
    result = TensorSpec((), result_type(input, other))
    check_kind("input", result, "f")
    return result


@layer("aten::dist", infer=_infer_dist)
def dist(input: Array, other: Array, p: Number = 2) -> Array:
    """Take the p-norm of the difference of two tensors, seen as vectors."""
    dtype = result_type(input, other)
    difference = np.atleast_1d(widen(cast(input, dtype)) - widen(cast(other, dtype)))
    order = p.real if isinstance(p, complex) else p
    return narrow(norm(difference, order, tuple(range(difference.ndim)), False), dtype)
