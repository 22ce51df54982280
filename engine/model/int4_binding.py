"""Rounds the weights of a graph's linear layers to four bits."""

from collections.abc import Callable, Sequence

import numpy as np

from engine.dtypes import Array
from engine.model.int8_binding import LINEARS, may_be_int8
from engine.model.operator import RuntimeOperator
from engine.pnnx.mapped_pages import release_pages
from engine.quantization.int4 import GROUP, rounding_error

MAX_ERROR = 2.0**-3
"""Accuracy budget of a layer: by what rounding may change its weights, in Euclidean norms, for it to be rounded."""
Rounder = Callable[[Array], Array]
"""Rounds float32 weights; see `rounded_to_int4`."""


def round_weights(order: Sequence[RuntimeOperator], rounded: Rounder) -> tuple[str, ...]:
    """Round the weights of the linear layers whose input features are a multiple of 32; all else stays as it is.

    Args:
        order: the operators, bound.
        rounded: rounds weights.

    Returns:
        A sentence for each layer that stays in float32 because of its weights, or one if no layer can be rounded.
    """
    kept, count = [], 0
    for operator in order:
        layer = operator.layer
        if layer is None or operator.type not in LINEARS or not may_be_int8(operator):
            continue
        weight: Array = layer.arguments["weight"]
        if weight.shape[-1] % GROUP:
            continue
        count += 1
        problem, made = _rounded(weight, rounded)
        if made is None:
            kept.append(f"precision int4 leaves layer {operator.name!r:.200} in float32: {problem}")
        else:
            layer.round_weight(made)
    if not count:
        return (
            f"precision int4: no linear layer has constant weights of a multiple of {GROUP} input features",
        )
    return tuple(kept)


def _rounded(weight: Array, rounded: Rounder) -> tuple[str, Array | None]:
    """Return rounded weights, or what is wrong with them and None."""
    if not all(np.isfinite(part).all() for part in weight):
        return "weights are not all finite", None
    made = rounded(weight)
    error = rounding_error(weight, made)
    for array in (weight, made):
        release_pages(array)
    if error > MAX_ERROR:
        return f"rounding changes its weights by {error:.3g}, more than {MAX_ERROR}", None
    return "", made
