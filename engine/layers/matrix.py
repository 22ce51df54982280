"""Products of matrices and vectors."""

from typing import Any

from engine.checks import check_dtype, check_kind
from engine.dtypes import Array
from engine.errors import ArgumentError
from engine.kernels import matrix as kernels
from engine.registry import layer
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


def _count_matmul(outputs: tuple[TensorSpec, ...], input: TensorSpec, **_: Any) -> int:
    return outputs[0].size * input.shape[-1]


@layer("torch.matmul", infer=_infer_matmul, multiply_adds=_count_matmul)
def matmul(input: Array, other: Array) -> Array:
    """Multiply vectors, matrices or stacks of matrices; leading dimensions broadcast."""
    return kernels.matmul(input, other)
