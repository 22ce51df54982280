"""An operator: the engine runs `gates.Gate`, a module that the exporter keeps whole with `moduleop=gates.Gate`."""

import numpy as np

from kuiper import ArgumentError, Array, TensorSpec, layer


def infer_gate(input: TensorSpec, weight: TensorSpec) -> TensorSpec:
    """Return the output's shape and dtype: the input's.

    Raises:
        ArgumentError: there is not one weight for each channel.
    """
    if input.shape[1:2] != weight.shape:
        raise ArgumentError("weight", f"has shape {weight.shape}", f"one for each channel of {input}")
    return input


@layer("gates.Gate", infer=infer_gate)
def gate(input: Array, weight: Array) -> Array:
    """Return x / (1 + exp(-w x)) of each element, w being its channel's weight.

    Args:
        input: (batch, channels, …).
        weight: (channels,).
    """
    shape = (len(weight), *(1,) * (input.ndim - 2))
    gated: Array = input / (1 + np.exp(-input * weight.reshape(shape)))
    return gated
