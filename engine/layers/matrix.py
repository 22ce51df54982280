"""Products of matrices and vectors."""

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from engine.binding.arguments import Number
from engine.binding.registry import layer
from engine.dtypes import Array
from engine.errors import ArgumentError
from engine.kernels import matrix as kernels
from engine.kernels.einsum import einsum as contract
from engine.kernels.einsum import parse, sizes_of
from engine.layers.checks import broadcasts_to, check_dtype, check_kind, check_rank, check_size
from engine.spec import TensorSpec


def _product(name: str, a: TensorSpec, b: TensorSpec) -> TensorSpec:
    """Return the spec of a · b, `b` being the argument called `name`."""
    check_kind(name, b, "iufc")
    check_dtype(name, b, a)
    try:
        return a.with_shape(kernels.matmul_shape(a.shape, b.shape))
    except ValueError as error:
        raise ArgumentError(name, str(error)) from error


def _infer_matmul(input: TensorSpec, other: TensorSpec) -> TensorSpec:
    return _product("other", input, other)


def _count_matmul(outputs: tuple[TensorSpec, ...], input: TensorSpec) -> int:
    return outputs[0].size * input.shape[-1]


@layer("torch.matmul", infer=_infer_matmul, multiply_adds=_count_matmul)
def matmul(input: Array, other: Array) -> Array:
    """Multiply vectors, matrices or stacks of matrices; leading dimensions broadcast."""
    return kernels.matmul(input, other)


def _infer_mm(input: TensorSpec, mat2: TensorSpec) -> TensorSpec:
    check_rank("input", input, 2)
    check_rank("mat2", mat2, 2)
    return _product("mat2", input, mat2)


@layer("torch.mm", infer=_infer_mm, multiply_adds=_count_matmul)
def mm(input: Array, mat2: Array) -> Array:
    """Multiply two matrices."""
    return kernels.matmul(input, mat2)


def _infer_mv(input: TensorSpec, vec: TensorSpec) -> TensorSpec:
    check_rank("input", input, 2)
    check_rank("vec", vec, 1)
    return _product("vec", input, vec)


@layer("torch.mv", infer=_infer_mv, multiply_adds=_count_matmul)
def mv(input: Array, vec: Array) -> Array:
    """Multiply a matrix and a vector."""
    return kernels.matmul(input, vec)


def _batched_product(name: str, a: TensorSpec, b: TensorSpec) -> TensorSpec:
    check_rank(name, b, 3)
    check_size(name, b, 0, a.shape[0])
    return _product(name, a, b)


def _infer_bmm(input: TensorSpec, mat2: TensorSpec) -> TensorSpec:
    check_rank("input", input, 3)
    return _batched_product("mat2", input, mat2)


@layer("torch.bmm", infer=_infer_bmm, multiply_adds=_count_matmul)
def bmm(input: Array, mat2: Array) -> Array:
    """Multiply two stacks of as many matrices."""
    return kernels.matmul(input, mat2)


def _sum(input: TensorSpec, product: TensorSpec, factors: dict[str, Number]) -> TensorSpec:
    """Check what is added to a product, and the factors of both."""
    check_dtype("input", input, product)
    if not broadcasts_to(input.shape, product.shape):
        raise ArgumentError("input", f"shape {input.shape}", f"one that broadcasts to {product.shape}")
    for name, factor in factors.items():
        if isinstance(factor, complex) and product.dtype.kind != "c":
            raise ArgumentError(name, f"is {factor}", "a real number")
        if isinstance(factor, float) and product.dtype.kind in "iu":
            raise ArgumentError(name, f"is {factor}", "an int, as the tensors are of integers")
    return product


def _infer_addmm(
    input: TensorSpec, mat1: TensorSpec, mat2: TensorSpec, beta: Number, alpha: Number
) -> TensorSpec:
    check_rank("mat1", mat1, 2)
    check_rank("mat2", mat2, 2)
    return _sum(input, _product("mat2", mat1, mat2), {"beta": beta, "alpha": alpha})


def _count_addmm(outputs: tuple[TensorSpec, ...], mat1: TensorSpec) -> int:
    return outputs[0].size * mat1.shape[-1]


@layer("torch.addmm", infer=_infer_addmm, multiply_adds=_count_addmm)
def addmm(input: Array, mat1: Array, mat2: Array, beta: Number = 1, alpha: Number = 1) -> Array:
    """Compute beta · input + alpha · mat1 mat2; with beta = 0 the input does not matter, NaN or not."""
    return kernels.add_product(input, mat1, mat2, beta, alpha)


def _infer_baddbmm(
    input: TensorSpec, batch1: TensorSpec, batch2: TensorSpec, beta: Number, alpha: Number
) -> TensorSpec:
    check_rank("batch1", batch1, 3)
    return _sum(input, _batched_product("batch2", batch1, batch2), {"beta": beta, "alpha": alpha})


def _count_baddbmm(outputs: tuple[TensorSpec, ...], batch1: TensorSpec) -> int:
    return outputs[0].size * batch1.shape[-1]


@layer("torch.baddbmm", infer=_infer_baddbmm, multiply_adds=_count_baddbmm)
def baddbmm(input: Array, batch1: Array, batch2: Array, beta: Number = 1, alpha: Number = 1) -> Array:
    """Compute beta · input + alpha · batch1 batch2 for stacks of matrices."""
    return kernels.add_product(input, batch1, batch2, beta, alpha)


def _check_tensors(operands: Sequence[Any]) -> None:
    """Refuse numbers: where a layer takes any operands nothing has looked at them yet."""
    for place, operand in enumerate(operands):
        if not isinstance(operand, TensorSpec | np.ndarray):
            raise ArgumentError(f"inputs.{place}", f"got {operand!r}", "a tensor")


def _infer_einsum(*operands: TensorSpec, equation: str) -> TensorSpec:
    _check_tensors(operands)
    for place, operand in enumerate(operands):
        check_kind(f"inputs.{place}", operand, "iufc")
        check_dtype(f"inputs.{place}", operand, operands[0])
    try:
        terms, output = parse(equation, [operand.rank for operand in operands])
        sizes = sizes_of(terms, [operand.shape for operand in operands])
    except ValueError as error:
        raise ArgumentError("equation", str(error)) from error
    return operands[0].with_shape([sizes[label] for label in output])


def _count_einsum(*operands: TensorSpec, equation: str) -> int:
    """Count the pairwise products: per pair, one for each combination of the labels of both."""
    terms, output = parse(equation, [operand.rank for operand in operands])
    sizes = sizes_of(terms, [operand.shape for operand in operands])
    count, done = 0, set(terms[0])
    for place, labels in enumerate(terms[1:], 2):
        count += prod(sizes[label] for label in done | set(labels))
        done = (done | set(labels)) & set(output).union(*terms[place:])
    return count


@layer("torch.einsum", infer=_infer_einsum, multiply_adds=_count_einsum)
def einsum(*operands: Array, equation: str) -> Array:
    """Sum products of elements by an einsum equation, `"bij,bjk->bik"`."""
    _check_tensors(operands)
    return contract(equation, operands)
