"""Times this engine beside onnxruntime and OpenVINO: one thread, float32, alternately in one process."""

import importlib.util
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median
from typing import Any

import torch

from engine import Array, RuntimeGraph
from tests.bench.interleaving import interleave
from tests.bench.loaded import timed_calls
from tests.zoo.comparison import difference, run
from tests.zoo.results import OURS, one_line

OPSET = 18
ROUNDS = 15
_SECONDS = 40

Call = Callable[[], list[Array]]


def time_runtimes(graph: RuntimeGraph, module: Any, arrays: Sequence[Array], folder: Path) -> dict[str, Any]:
    """Return the fields of a row that show how long a run takes, by runtime."""
    wanted = run(module, arrays)
    calls: dict[str, Call] = {OURS: lambda: graph.forward(list(arrays))}
    notes: list[str] = []
    differences: dict[str, float] = {}
    try:
        file = write_onnx(module, arrays, folder)
    except Exception as error:  # whatever the exporter raises is a note of the row
        return {"notes": (one_line(f"torch.onnx.export: {type(error).__name__}: {error}"),)}
    for name, prepare in PEERS.items():
        try:
            call = prepare(file, arrays)
            differences[name] = difference(call(), wanted)
            calls[name] = call
        except Exception as error:
            notes.append(one_line(f"{name}: {type(error).__name__}: {error}"))
    samplers = {name: _sampler(call) for name, call in calls.items()}
    times = interleave(samplers, ROUNDS, {}, pause=0.0, max_seconds=_SECONDS)
    return {
        "times": {name: median(samples) for name, samples in times.items()},
        "differences": differences,
        "notes": tuple(notes),
    }


def _sampler(call: Call) -> Callable[[], list[float]]:
    return lambda: timed_calls(call)


def write_onnx(module: Any, arrays: Sequence[Array], folder: Path) -> Path:
    """Write a module as ONNX with fixed sizes: traced, or where that fails by torch.export."""
    file = folder / "model.onnx"
    tensors = tuple(torch.from_numpy(array) for array in arrays)
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")  # about numbers taken from shapes, and successors of the exporter
        torch.backends.mha.set_fastpath_enabled(False)  # an operator that ONNX has not
        try:
            torch.onnx.export(module, tensors, str(file), dynamo=False, opset_version=OPSET)
        except Exception:  # what the older exporter knows no more, the newer one may
            torch.onnx.export(module, tensors, str(file), dynamo=True, verbose=False)
    return file


def _onnxruntime(file: Path, arrays: Sequence[Array]) -> Call:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(str(file), options, providers=["CPUExecutionProvider"])
    feeds = dict(zip((item.name for item in session.get_inputs()), arrays, strict=True))
    return lambda: session.run(None, feeds)


def _openvino(file: Path, arrays: Sequence[Array]) -> Call:
    import openvino

    config = {"INFERENCE_PRECISION_HINT": "f32", "INFERENCE_NUM_THREADS": 1, "PERFORMANCE_HINT": "LATENCY"}
    core = openvino.Core()
    compiled = core.compile_model(core.read_model(file), "CPU", config)
    request = compiled.create_infer_request()
    ports = range(len(compiled.outputs))

    def call() -> list[Array]:
        found = request.infer(list(arrays), share_inputs=True, share_outputs=True)
        return [found[port] for port in ports]

    return call


PEERS: dict[str, Callable[[Path, Sequence[Array]], Call]] = {
    name: prepare
    for name, prepare in (("onnxruntime", _onnxruntime), ("openvino", _openvino))
    if importlib.util.find_spec(name) is not None
}
"""Other runtimes that are installed: each function reads a file, and returns how to run it."""
