"""The engine: reads PNNX models, builds them once, runs them and tells what every layer did."""

from engine import layers as _layers  # registers every layer of the engine
from engine.binding import BoundLayer
from engine.errors import (
    ArchiveError,
    ArgumentError,
    BuildError,
    ExpressionError,
    GraphError,
    InputError,
    KuiperError,
    LayerError,
    ParamError,
    ParameterError,
    PnnxError,
    RunStoppedError,
    SignatureError,
    StateError,
    UnsupportedOperator,
    UnsupportedOperatorError,
)
from engine.expression import tokenize
from engine.graph import GraphState, RuntimeGraph
from engine.layer_factory import create_layer
from engine.operator import RuntimeOperand, RuntimeOperator
from engine.plan import Plan, Step
from engine.ports import Port
from engine.registry import DuplicateLayerError, Layer, LayerRegistry, layer, registry
from engine.run import RunResult
from engine.spec import UNKNOWN, TensorSpec
from engine.trace import LayerTrace, OperandTrace, RunTrace, Statistics, TraceLevel
from engine.verification import Refusal, Verification, Verify

__all__ = [
    "UNKNOWN",
    "ArchiveError",
    "ArgumentError",
    "BoundLayer",
    "BuildError",
    "DuplicateLayerError",
    "ExpressionError",
    "GraphError",
    "GraphState",
    "InputError",
    "KuiperError",
    "Layer",
    "LayerError",
    "LayerRegistry",
    "LayerTrace",
    "OperandTrace",
    "ParamError",
    "ParameterError",
    "Plan",
    "PnnxError",
    "Port",
    "Refusal",
    "RunResult",
    "RunStoppedError",
    "RunTrace",
    "RuntimeGraph",
    "RuntimeOperand",
    "RuntimeOperator",
    "SignatureError",
    "StateError",
    "Statistics",
    "Step",
    "TensorSpec",
    "TraceLevel",
    "UnsupportedOperator",
    "UnsupportedOperatorError",
    "Verification",
    "Verify",
    "create_layer",
    "layer",
    "registry",
    "tokenize",
]

del _layers
