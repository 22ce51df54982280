"""The runtimes that are compared: this engine's backends and the other runtimes."""

from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec

from tests.bench import peers
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
    """

    name: str
    package: str
    prepare: Callable[[ModelFiles, int], Call]
    is_peer: bool = True


def native(files: ModelFiles, threads: int) -> Call:
    """Prepare this engine's compiled kernels."""
    return _kuiper(files, threads, "native")


def numpy(files: ModelFiles, threads: int) -> Call:
    """Prepare this engine's numpy layers."""
    return _kuiper(files, threads, "numpy")


def _kuiper(files: ModelFiles, threads: int, backend: str) -> Call:
    from threadpoolctl import threadpool_limits

    from engine import RuntimeGraph

    threadpool_limits(threads)  # numpy's BLAS, for the layers that run on it
    graph = RuntimeGraph(files.param, backend=backend, threads=threads)
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
)
RUNTIMES = {runtime.name: runtime for runtime in _RUNTIMES}
"""All runtimes by name."""
PEERS = tuple(runtime.name for runtime in _RUNTIMES if runtime.is_peer)
"""Names of the other runtimes."""


def installed() -> list[Runtime]:
    """Return the runtimes whose packages are installed."""
    return [runtime for runtime in _RUNTIMES if find_spec(runtime.package) is not None]
