"""Applies a quantization to the bound layers of a graph: computation in 8-bit integers."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from engine.binding.bound_layer import BoundLayer
from engine.dtypes import Array
from engine.errors import BuildError, describe_problem
from engine.layers import BUILT_IN
from engine.model.operator import RuntimeOperand, RuntimeOperator
from engine.pnnx.mapped_pages import release_pages
from engine.quantization.layer import Int8Layer
from engine.quantization.scheme import Activation, Quantization
from engine.quantization.weights import QuantizedWeights, quantize_weights

CONVOLUTIONS = ("nn.Conv1d", "nn.Conv2d", "F.conv1d", "F.conv2d")
"""Types of convolutions that may be computed in integers."""
LINEARS = ("nn.Linear", "F.linear")
"""Types of linear layers that may be."""
Quantizer = Callable[[Array], QuantizedWeights]
"""Quantizes float32 weights; raises BuildError if that is impossible."""
WORD_CHANNELS = 4
"""Channels that are multiplied together: groups of channels have a multiple of them, or one."""


def may_be_int8(operator: RuntimeOperator) -> bool:
    """Return whether an operator may be computed in integers: it is one of the engine's own, with constant weights.

    Weights that modules share, which the exporter gives as an operand as well, stay in float32.
    """
    layer = operator.layer
    if (
        layer is None
        or operator.type not in (*CONVOLUTIONS, *LINEARS)
        or BUILT_IN.find(operator.type) != layer.layer
    ):
        return False
    weight, bias = layer.arguments.get("weight"), layer.arguments.get("bias")
    if not isinstance(weight, np.ndarray) or weight.dtype != np.float32 or weight.ndim < 2 or not weight.size:
        return False
    is_bias = bias is None or (isinstance(bias, np.ndarray) and bias.shape == weight.shape[:1])
    groups = layer.arguments.get("groups", 1)
    is_grouped = (
        groups > 1 and weight.shape[1] % WORD_CHANNELS and (weight.shape[1] > 1 or groups != len(weight))
    )
    is_input_alone = list(layer.operand_places) == ["input"] and len(operator.inputs) == 1
    return is_bias and not is_grouped and is_input_alone


def apply_quantization(
    quantization: Quantization,
    order: Sequence[RuntimeOperator],
    operands: Mapping[str, RuntimeOperand],
    quantize: Quantizer = quantize_weights,
) -> tuple[str, ...]:
    """Apply a quantization to the bound layers of a graph.

    Args:
        quantization: the quantization.
        order: the operators, bound.
        operands: the operands by name.
        quantize: makes weights integers.

    Returns:
        A sentence for each tensor whose scale fits no number but 0.

    Raises:
        BuildError: it names an operator or operand that the graph does not have, or one that cannot be quantized.
    """
    by_name = {operator.name: operator for operator in order}
    for name in quantization.layers:
        if name not in by_name or not may_be_int8(by_name[name]):
            what = "is not in the graph" if name not in by_name else f"is a {by_name[name].type}"
            expected = "a convolution or linear layer of the engine's own with constant weights"
            raise BuildError(describe_problem(f"quantization, layer {name!r:.200}", what, expected))
    for name in quantization.tensors:
        if name not in operands:
            problem = "the graph has no operand of this name"
            raise BuildError(
                describe_problem(f"quantization, tensor {name!r:.200}", problem, "one of the graph's")
            )
    bound = [(operator, operator.layer) for operator in order if operator.layer is not None]
    int8_layers = [_int8_layer(quantization, operator, layer, quantize) for operator, layer in bound]
    # only after all of it is checked: a graph with an optional quantization has all of it or none
    for (operator, layer), int8 in zip(bound, int8_layers, strict=True):
        layer.quantize(int8, tuple(quantization.tensors.get(operand.name) for operand in operator.outputs))
    return tuple(
        f"operand {name!r:.200} was 0 in all examples that int8 was calibrated on, so it counts as 0 whatever it is; "
        "calibrate on examples of what the model will see"
        for name, scale in quantization.tensors.items()
        if scale.is_of_zeros
    )


def _int8_layer(
    quantization: Quantization, operator: RuntimeOperator, layer: BoundLayer, quantize: Quantizer
) -> Int8Layer | None:
    activation = quantization.layers.get(operator.name)
    if activation is None:
        return None
    is_linear = operator.type in LINEARS
    place = f"quantization, layer {operator.name!r}"
    if activation is Activation.DYNAMIC and not is_linear:
        raise BuildError(describe_problem(place, "is a convolution with a dynamic input", "a static one"))
    (source,) = operator.inputs
    scale = None
    if activation is Activation.STATIC:
        scale = quantization.tensors.get(source.name)
        if scale is None:
            raise BuildError(
                describe_problem(place, f"its input {source.name!r} has no scale", "one in tensors")
            )
    weight: Array = layer.arguments["weight"]
    try:
        weights = quantize(weight)
        release_pages(weight)
    except BuildError as error:
        raise BuildError(f"{place}: {error}") from error
    with np.errstate(over="ignore"):
        factors = weights.scales * np.float32(1 if scale is None else scale.scale)
    if not np.isfinite(factors).all():
        raise BuildError(
            describe_problem(place, "scales of input and weights overflow float32", "smaller ones")
        )
    return Int8Layer(
        forward=layer.layer.forward,
        static={name: value for name, value in layer.arguments.items() if name not in ("weight", "bias")},
        weights=weights,
        bias=layer.arguments.get("bias"),
        input_scale=scale,
        channel_axis=-1 if is_linear else 1 - weight.ndim,
    )
