"""The runtimes that are compared: this engine's backends and the other runtimes."""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from importlib.util import find_spec

from tests.bench import int8, peers
from tests.bench.models import ModelFiles
from tests.bench.peers import Call

BASE = "onnxruntime"
"""The runtime that all are held against."""


@dataclass(frozen=True)
class Runtime:
    """A runtime that is compared.

    Attributes:
        name: what tables call it.
        package: what must be installed, and is imported before anything is timed.
        prepare: reads a model's files for a number of threads; returns how to run it.
        is_peer: whether it is another runtime rather than this engine.
        precision: what operands of products are rounded to; others than f32 are compared where they are asked for.
    """

    name: str
    package: str
    prepare: Callable[[ModelFiles, int], Call]
    is_peer: bool = True
    precision: str = "f32"


def native(files: ModelFiles, threads: int) -> Call:
    """Prepare this engine's compiled kernels."""
    return _kuiper(files, threads, "native")


def numpy(files: ModelFiles, threads: int) -> Call:
    """Prepare this engine's reference layers."""
    return _kuiper(files, threads, "numpy")


def native_bf16(files: ModelFiles, threads: int) -> Call:
    """Prepare this engine's compiled kernels, operands of products rounded to bfloat16 where that is faster."""
    return _kuiper(files, threads, "native", "bf16")


def _kuiper(files: ModelFiles, threads: int, backend: str, precision: str = "f32") -> Call:
    from threadpoolctl import threadpool_limits

    from engine import RuntimeGraph

    threadpool_limits(threads)  # numpy's BLAS, for the layers that run on it
    graph = RuntimeGraph(files.param, backend=backend, threads=threads, precision=precision)
    graph.build()
    image = files.model.input()
    return lambda: graph.forward([image])


_RUNTIMES = (
    Runtime("native", "llvmlite", native, is_peer=False),
    Runtime("numpy", "numpy", numpy, is_peer=False),
    Runtime(BASE, "onnxruntime", peers.onnxruntime),
    Runtime("openvino", "openvino", peers.openvino),
    Runtime("ncnn", "ncnn", peers.ncnn),
    Runtime("torch", "torch", peers.torch),
    Runtime("native-bf16", "llvmlite", native_bf16, is_peer=False, precision="bf16"),
    Runtime("openvino-bf16", "openvino", peers.openvino_bf16, precision="bf16"),
    Runtime("native-int8", "llvmlite", int8.native, is_peer=False, precision="int8"),
    Runtime("onnxruntime-int8", "onnxruntime", int8.onnxruntime, precision="int8"),
    Runtime("openvino-int8", "openvino", int8.openvino, precision="int8"),
)
RUNTIMES = {runtime.name: runtime for runtime in _RUNTIMES}
"""All runtimes by name."""
PEERS = tuple(runtime.name for runtime in _RUNTIMES if runtime.is_peer and runtime.precision == "f32")
"""Names of the other runtimes, in float32."""
PRECISIONS = tuple(dict.fromkeys(runtime.precision for runtime in _RUNTIMES))
"""Precisions that runtimes are compared in, f32 first."""


def of_precisions(precisions: Collection[str]) -> list[str]:
    """Return the names of the runtimes that compute in one of these precisions."""
    return [runtime.name for runtime in _RUNTIMES if runtime.precision in precisions]


def installed() -> list[Runtime]:
    """Return the runtimes whose packages are installed."""
    return [runtime for runtime in _RUNTIMES if find_spec(runtime.package) is not None]
