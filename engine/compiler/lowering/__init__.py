"""Lowering: operators of the model -> nodes of the compiler's graph. One rule per operator type."""

from engine.compiler.lowering import attention, convolution, padding, pointwise, pooling, recurrent, shape
from engine.compiler.lowering.site import RULES, Rule, Site, lowers

__all__ = [
    "RULES",
    "Rule",
    "Site",
    "attention",
    "convolution",
    "lowers",
    "padding",
    "pointwise",
    "pooling",
    "recurrent",
    "shape",
]
