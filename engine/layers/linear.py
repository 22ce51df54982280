"""Linear layers."""

from engine.binding.registry import layer
from engine.dtypes import Array
from engine.errors import ArgumentError
from engine.kernels import matrix as kernels
from engine.layers.checks import (
    broadcasts_to,
    check_dtype,
    check_kind,
    check_min_rank,
    check_rank,
    check_size,
)
from engine.spec import TensorSpec


def _infer_linear(input: TensorSpec, weight: TensorSpec, bias: TensorSpec | None) -> TensorSpec:
    check_kind("input", input, "iufc")
    check_min_rank("input", input, 1)
    check_rank("weight", weight, 1, 2)
    check_size("input", input, input.rank - 1, weight.shape[-1])
    for name, spec in (("weight", weight), ("bias", bias)):
        check_dtype(name, spec, input)
    shape = (*input.shape[:-1], *weight.shape[:-1])
    if bias is not None and not broadcasts_to(bias.shape, shape):
        raise ArgumentError(
            "bias", f"shape {bias.shape}", f"{weight.shape[:-1]}, one value per output feature"
        )
    return input.with_shape(shape)


def _count_linear(outputs: tuple[TensorSpec, ...], weight: TensorSpec) -> int:
    return outputs[0].size * weight.shape[-1]


@layer("nn.Linear", "F.linear", infer=_infer_linear, multiply_adds=_count_linear)
def linear(input: Array, weight: Array, bias: Array | None = None) -> Array:
    """Compute x Wᵀ + b over the last axis: (…, in) -> (…, out)."""
    return kernels.linear(input, weight, bias)
