"""The compiler's graph (IR): computations, before memory layout and kernel selection.

A node does one or more operators of the model. Its first inputs are its own; those after them are read by its epilogue.
"""

from engine.compiler.graph.contractions import (
    Attention,
    Convolution,
    Linear,
    MatrixProduct,
    TransposedConvolution,
)
from engine.compiler.graph.graph import Guard, LoweredGraph
from engine.compiler.graph.int8 import (
    Dequantize,
    Int8Convolution,
    Int8Linear,
    Quantize,
    Requantize,
    RowQuantize,
)
from engine.compiler.graph.movement import Concatenation, Gather, Pad, Rearrangement, Reshape, Upsample
from engine.compiler.graph.node import EXACT, FLOAT, Bounds, Node, Tensor, connect
from engine.compiler.graph.normalization import GroupNorm, LayerNorm, Softmax
from engine.compiler.graph.pointwise import EpilogueNode, Pointwise
from engine.compiler.graph.pooling import AdaptivePool, Pool, Reduction, Scan
from engine.compiler.graph.recurrent import Recurrent
from engine.compiler.graph.sources import Constant, Fallback, Placeholder, Ramp

__all__ = [
    "EXACT",
    "FLOAT",
    "AdaptivePool",
    "Attention",
    "Bounds",
    "Concatenation",
    "Constant",
    "Convolution",
    "Dequantize",
    "EpilogueNode",
    "Fallback",
    "Gather",
    "GroupNorm",
    "Guard",
    "Int8Convolution",
    "Int8Linear",
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
    "Ramp",
    "Rearrangement",
    "Recurrent",
    "Reduction",
    "Requantize",
    "Reshape",
    "RowQuantize",
    "Scan",
    "Softmax",
    "Tensor",
    "TransposedConvolution",
    "Upsample",
    "connect",
]
