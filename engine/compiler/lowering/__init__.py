"""Lowering: operators of the model -> nodes of the compiler's graph. One rule per operator type."""

from engine.compiler.lowering import (
    attention,
    convolution,
    detection,
    folding,
    indexing,
    multihead,
    normalization,
    padding,
    pointwise,
    pooling,
    recurrent,
    reduction,
    shape,
    typed,
)
from engine.compiler.lowering.context import (
    LAYER_RULES,
    RULES,
    LoweringContext,
    LoweringRule,
    lowers,
    lowers_layer,
)
from engine.compiler.lowering.pooling import GIVES_PLACES
from engine.compiler.lowering.shape import TAKES_APART

__all__ = [
    "GIVES_PLACES",
    "LAYER_RULES",
    "RULES",
    "TAKES_APART",
    "LoweringContext",
    "LoweringRule",
    "attention",
    "convolution",
    "detection",
    "folding",
    "indexing",
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
    "typed",
]
