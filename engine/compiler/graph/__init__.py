"""The compiler's graph: what is computed, before it is decided where results lie and which kernel computes them.

A node does one or more operators of the model. Its first inputs are its own; those after them are read by its epilogue.
"""

from engine.compiler.graph.contractions import Convolution, Linear, MatrixProduct, TransposedConvolution
from engine.compiler.graph.graph import LoweredGraph
from engine.compiler.graph.integers import (
    Dequantize,
    IntegerConvolution,
    IntegerLinear,
    IntegerPool,
    Quantize,
    Requantize,
    RowQuantize,
)
from engine.compiler.graph.movement import Concatenation, Pad, Rearrangement, Reshape, Upsample
from engine.compiler.graph.node import Node, Tensor, connect
from engine.compiler.graph.normalization import GroupNorm, LayerNorm, Softmax
from engine.compiler.graph.pointwise import EpilogueNode, Pointwise
from engine.compiler.graph.pooling import AdaptivePool, Pool, Reduction
from engine.compiler.graph.recurrent import Recurrent
from engine.compiler.graph.sources import Constant, Fallback, Placeholder

__all__ = [
    "AdaptivePool",
    "Concatenation",
    "Constant",
    "Convolution",
    "Dequantize",
    "EpilogueNode",
    "Fallback",
    "GroupNorm",
    "IntegerConvolution",
    "IntegerLinear",
    "IntegerPool",
    "LayerNorm",
    "Linear",
    "LoweredGraph",
    "MatrixProduct",
    "Node",
    "Pad",
    "Placeholder",
    "Pointwise",
    "Pool",
    "Quantize",
    "Rearrangement",
    "Recurrent",
    "Reduction",
    "Requantize",
    "Reshape",
    "RowQuantize",
    "Softmax",
    "Tensor",
    "TransposedConvolution",
    "Upsample",
    "connect",
]
