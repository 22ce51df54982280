"""Instance normalisation: every channel of every item of the batch by statistics of its own."""

from collections.abc import Callable

import numpy as np

from engine.binding.registry import layer
from engine.dtypes import Array
from engine.errors import ArgumentError
from engine.kernels.normalization import group_norm, scale_and_shift
from engine.layers.checks import check_channels, check_kind, check_rank
from engine.spec import TensorSpec

ShapeRule = Callable[..., TensorSpec]


def _check_spatial_size(input: TensorSpec, batched: tuple[int, ...]) -> None:
    if int(np.prod(batched[2:])) == 1:
        raise ArgumentError("input", f"shape {input.shape}", "more than one element per channel")


def _of_spatial_rank(spatial: int) -> ShapeRule:
    """Make the rule of inputs with so many spatial dimensions, with or without a batch."""

    def infer(
        input: TensorSpec,
        weight: TensorSpec | None,
        bias: TensorSpec | None,
        running_mean: TensorSpec | None,
        running_var: TensorSpec | None,
    ) -> TensorSpec:
        check_kind("input", input, "f")
        check_rank("input", input, spatial + 1, spatial + 2)
        batched = input.shape if input.rank == spatial + 2 else (1, *input.shape)
        check_channels(
            input, batched[1], weight=weight, bias=bias, running_mean=running_mean, running_var=running_var
        )
        if running_mean is None or running_var is None:
            _check_spatial_size(input, batched)
        return input

    return infer


def _register(spatial: int) -> None:
    @layer(f"nn.InstanceNorm{spatial}d", infer=_of_spatial_rank(spatial))
    def forward(
        input: Array,
        weight: Array | None = None,
        bias: Array | None = None,
        running_mean: Array | None = None,
        running_var: Array | None = None,
        eps: float = 1e-5,
    ) -> Array:
        """Normalise by the statistics that training left behind, where it tracked any, else by the input's."""
        batched = input if input.ndim == spatial + 2 else input[np.newaxis]
        if running_mean is None or running_var is None:
            output = group_norm(batched, batched.shape[1], weight, bias, eps)
        else:
            output = scale_and_shift(batched, running_mean, running_var, weight, bias, eps)
        return output.reshape(input.shape)


for _spatial in (1, 2, 3):
    _register(_spatial)


def _infer_instance_norm(input: TensorSpec, weight: TensorSpec | None, bias: TensorSpec | None) -> TensorSpec:
    check_kind("input", input, "f")
    if input.rank < 3:
        raise ArgumentError("input", f"{input.rank} dimensions", "at least 3 dimensions")
    check_channels(input, input.shape[1], weight=weight, bias=bias)
    _check_spatial_size(input, input.shape)
    return input


@layer("F.instance_norm", infer=_infer_instance_norm)
def instance_norm(
    input: Array,
    running_mean: Array | None = None,
    running_var: Array | None = None,
    weight: Array | None = None,
    bias: Array | None = None,
    eps: float = 1e-5,
) -> Array:
    """Normalise by the statistics of the input; the exporter writes no call that uses the running ones."""
    del running_mean, running_var
    return group_norm(input, input.shape[1], weight, bias, eps)
