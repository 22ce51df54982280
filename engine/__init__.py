"""The engine: reads PNNX models, builds them once, runs them and traces every layer."""

from engine import import_time as _import_time  # before all other modules
from engine import layers as _layers  # registers every layer of the engine
from engine.backend import Backend, code_folder_in_use, finish_compiling
from engine.binding.bound_layer import BoundLayer
from engine.binding.registry import DuplicateLayerError, Layer, LayerRegistry, layer, registry
from engine.dtypes import PNNX_COMPUTE, PNNX_STORAGE, Array, pnnx_name, widen
from engine.errors import (
    ArchiveError,
    ArgumentError,
    BuildError,
    BuildTimeoutError,
    CompileError,
    ExpressionError,
    GraphError,
    InputError,
    KuiperError,
    LayerError,
    ModelFilesError,
    ParamError,
    ParameterError,
    PnnxError,
    QuantizationError,
    RunStoppedError,
    SignatureError,
    StateError,
    UnsupportedOperator,
    UnsupportedOperatorError,
    describe_problem,
)
from engine.expression import tokenize
from engine.graph import GraphState, RuntimeGraph
from engine.host import Host, describe_host
from engine.model.build import create_layer
from engine.model.model_folder import (
    ONLY_VERSION,
    ModelFiles,
    files_at,
    find_files,
    model_folders,
    shown_name,
    stray_files,
    version_folders,
)
from engine.model.operator import RuntimeOperand, RuntimeOperator
from engine.model.ports import Port
from engine.precision import LOSS_TOLERATED, Precision
from engine.quantization.figures import LayerFigures, OutputFigures, QuantizationFigures, RunFigures
from engine.quantization.scheme import Activation, Calibration, Quantization
from engine.quantization.sidecar import read_sidecar, sidecar_path, write_sidecar
from engine.quantization.tensor_scale import TensorScale
from engine.run.executor import PROGRAMS_KEPT, Compilation, Footprint
from engine.run.plan import MAX_RUN_BYTES, Plan, Step
from engine.run.run import RunResult
from engine.run.stop import OVERDUE, StopSignal
from engine.run.trace import LayerTrace, OperandTrace, RunTrace, Statistics, TraceLevel, join_statistics
from engine.run.verification import Refusal, Verification, Verify
from engine.spec import UNKNOWN, TensorSpec, Value
from engine.steps_graph import StepsGraph

__all__ = [
    "LOSS_TOLERATED",
    "MAX_RUN_BYTES",
    "ONLY_VERSION",
    "OVERDUE",
    "PNNX_COMPUTE",
    "PNNX_STORAGE",
    "PROGRAMS_KEPT",
    "UNKNOWN",
    "Activation",
    "ArchiveError",
    "ArgumentError",
    "Array",
    "Backend",
    "BoundLayer",
    "BuildError",
    "BuildTimeoutError",
    "Calibration",
    "Compilation",
    "CompileError",
    "DuplicateLayerError",
    "ExpressionError",
    "Footprint",
    "GraphError",
    "GraphState",
    "Host",
    "InputError",
    "KuiperError",
    "Layer",
    "LayerError",
    "LayerFigures",
    "LayerRegistry",
    "LayerTrace",
    "ModelFiles",
    "ModelFilesError",
    "OperandTrace",
    "OutputFigures",
    "ParamError",
    "ParameterError",
    "Plan",
    "PnnxError",
    "Port",
    "Precision",
    "Quantization",
    "QuantizationError",
    "QuantizationFigures",
    "Refusal",
    "RunFigures",
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
    "StepsGraph",
    "StopSignal",
    "TensorScale",
    "TensorSpec",
    "TraceLevel",
    "UnsupportedOperator",
    "UnsupportedOperatorError",
    "Value",
    "Verification",
    "Verify",
    "code_folder_in_use",
    "create_layer",
    "describe_host",
    "describe_problem",
    "files_at",
    "find_files",
    "finish_compiling",
    "join_statistics",
    "layer",
    "model_folders",
    "pnnx_name",
    "read_sidecar",
    "registry",
    "shown_name",
    "sidecar_path",
    "stray_files",
    "tokenize",
    "version_folders",
    "widen",
    "write_sidecar",
]

del _import_time, _layers
