"""Lowering: operators of the model -> nodes of the compiler's graph. One rule per operator type."""

from engine.compiler.lowering import (
    attention,
    convolution,
    multihead,
    normalization,
    padding,
    pointwise,
    pooling,
    recurrent,
    reduction,
    shape,
)
from engine.compiler.lowering.shape import TAKES_APART
from engine.compiler.lowering.site import LAYER_RULES, RULES, Rule, Site, lowers, lowers_layer

__all__ = [
    "LAYER_RULES",
    "RULES",
    "TAKES_APART",
    "Rule",
    "Site",
    "attention",
    "convolution",
    "lowers",
    "lowers_layer",
    "multihead",
    "normalization",
    "padding",
    "pointwise",
    "pooling",
    "recurrent",
    "reduction",
    "shape",
]
