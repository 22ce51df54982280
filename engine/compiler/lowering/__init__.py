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
from engine.compiler.lowering.context import (
    LAYER_RULES,
    RULES,
    LoweringContext,
    LoweringRule,
    lowers,
    lowers_layer,
)
from engine.compiler.lowering.shape import TAKES_APART

__all__ = [
    "LAYER_RULES",
    "RULES",
    "TAKES_APART",
    "LoweringContext",
    "LoweringRule",
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
