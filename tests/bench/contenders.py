"""Who is compared: this engine's backends and the other runtimes."""

from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec

from tests.bench import peers
from tests.bench.models import Files
from tests.bench.peers import Call

BASE = "onnxruntime"
"""The runtime that all are held against."""


@dataclass(frozen=True)
class Contender:
    """A runtime that takes part.

    Attributes:
        name: what tables call it.
        package: what must be installed, and is imported before anything is timed.
        prepare: reads a model's files for a number of threads; returns how to run it.
        is_peer: whether it is another runtime rather than this engine.
    """

    name: str
    package: str
    prepare: Callable[[Files, int], Call]
    is_peer: bool = True


def native(files: Files, threads: int) -> Call:
    """Prepare this engine's compiled kernels."""
    return _kuiper(files, threads, "native")


def numpy(files: Files, threads: int) -> Call:
    """Prepare this engine's numpy layers."""
    return _kuiper(files, threads, "numpy")


def _kuiper(files: Files, threads: int, backend: str) -> Call:
    from threadpoolctl import threadpool_limits

    from engine import RuntimeGraph

    threadpool_limits(threads)  # numpy's BLAS, for the layers that run on it
    graph = RuntimeGraph(files.param, backend=backend, threads=threads)
    graph.build()
    image = files.model.input()
    return lambda: graph.forward([image])


_CONTENDERS = (
    Contender("native", "llvmlite", native, is_peer=False),
    Contender("numpy", "numpy", numpy, is_peer=False),
    Contender(BASE, "onnxruntime", peers.onnxruntime),
    Contender("openvino", "openvino", peers.openvino),
    Contender("ncnn", "ncnn", peers.ncnn),
    Contender("torch", "torch", peers.torch),
)
CONTENDERS = {contender.name: contender for contender in _CONTENDERS}
"""All contenders by name."""
PEERS = tuple(contender.name for contender in _CONTENDERS if contender.is_peer)
"""Names of the other runtimes."""


def installed() -> list[Contender]:
    """Return the contenders whose packages are installed."""
    return [contender for contender in _CONTENDERS if find_spec(contender.package) is not None]
