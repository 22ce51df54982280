"""Batch normalisation, by the statistics that training left behind."""

from collections.abc import Callable

from engine.binding.registry import layer
from engine.dtypes import Array
from engine.errors import ArgumentError
from engine.kernels import normalization as kernels
from engine.layers.checks import check_channels, check_kind, check_min_rank, check_rank
from engine.spec import TensorSpec


def _infer_batch_norm(
    input: TensorSpec,
    running_mean: TensorSpec | None,
    running_var: TensorSpec | None,
    weight: TensorSpec | None,
    bias: TensorSpec | None,
) -> TensorSpec:
    check_kind("input", input, "f")
    check_min_rank("input", input, 2)
    channels = input.shape[1]
    vectors = {"running_mean": running_mean, "running_var": running_var, "weight": weight, "bias": bias}
    check_channels(input, channels, **vectors)
    if (running_mean is None or running_var is None) and input.size <= channels:
        raise ArgumentError(
            "input", f"shape {input.shape}", "more than one element per channel to take statistics of"
        )
    return input


def _of_rank(*ranks: int) -> Callable[..., TensorSpec]:
    def infer(
        input: TensorSpec,
        running_mean: TensorSpec | None,
        running_var: TensorSpec | None,
        weight: TensorSpec | None,
        bias: TensorSpec | None,
    ) -> TensorSpec:
        check_rank("input", input, *ranks)
        return _infer_batch_norm(input, running_mean, running_var, weight, bias)

    return infer


@layer("nn.BatchNorm1d", infer=_of_rank(2, 3))
@layer("nn.BatchNorm2d", infer=_of_rank(4))
@layer("nn.BatchNorm3d", infer=_of_rank(5))
@layer("F.batch_norm", infer=_infer_batch_norm)
def batch_norm(
    input: Array,
    running_mean: Array | None = None,
    running_var: Array | None = None,
    weight: Array | None = None,
    bias: Array | None = None,
    eps: float = 1e-5,
) -> Array:
    """Normalise each channel (dimension 1), then scale and shift it.

    Without running statistics those of the input are taken, as PyTorch does.
    """
    if running_mean is None or running_var is None:
        running_mean, running_var = kernels.channel_statistics(input)
    return kernels.scale_and_shift(input, running_mean, running_var, weight, bias, eps)
