"""Models in int8: this engine's, and the other runtimes' on a graph that onnxruntime quantized (QDQ).

All are calibrated on the same inputs by the extremes of their tensors: activations of 0 to 255, one scale for a tensor;
weights of -127 to 127, one scale for a filter. An encoder's activations are quantized in each run instead, by all.
"""

import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from engine.dtypes import Array
from tests.bench import peers
from tests.bench.models import MODELS, ModelFiles
from tests.bench.peers import Call

EXAMPLES = 8
ROOT = Path(__file__).parents[2]


def examples(files: ModelFiles) -> Iterator[Array]:
    """Yield the inputs that models are calibrated on: like the one that is timed, which is the first."""
    yield files.model.input()
    for seed in range(1, EXAMPLES):
        yield np.random.default_rng(seed).standard_normal(files.model.shape).astype(np.float32)


def native(files: ModelFiles, threads: int) -> Call:
    """Prepare this engine's compiled kernels."""
    from engine import RuntimeGraph, sidecar_path

    if not sidecar_path(files.param).exists():
        _make_elsewhere(files, "native")
    quantized = RuntimeGraph(files.param, precision="int8", threads=threads)
    quantized.build()
    image = files.model.input()
    return lambda: quantized.forward([image])


def onnxruntime(files: ModelFiles, threads: int) -> Call:
    """Prepare an onnxruntime session on the CPU."""
    return peers.onnxruntime(_quantized_elsewhere(files), threads)


def openvino(files: ModelFiles, threads: int) -> Call:
    """Prepare an OpenVINO request; what is not quantized may be bfloat16, as by itself where the processor can."""
    return peers.openvino_bf16(_quantized_elsewhere(files), threads)


class QuantizedFiles(ModelFiles):
    """A model's files, the ONNX graph quantized."""

    @property
    def onnx(self) -> Path:
        """ONNX graph with weights of 8 bits."""
        return self.folder / "model.int8.onnx"


def quantized_files(files: ModelFiles, data: Iterable[Array] | None = None) -> QuantizedFiles:
    """Return the files with the graph that onnxruntime quantized, made the first time.

    Args:
        files: the model's.
        data: what it is calibrated on; by default `examples`.
    """
    made = QuantizedFiles(files.model, files.folder)
    path = made.onnx
    if not path.exists():
        from onnxruntime import InferenceSession
        from onnxruntime.quantization import QuantFormat, QuantType, quantize_dynamic, quantize_static
        from onnxruntime.quantization.shape_inference import quant_pre_process

        prepared = files.folder / "model.prepared.onnx"
        quant_pre_process(str(files.onnx), str(prepared))
        name = InferenceSession(str(files.onnx)).get_inputs()[0].name
        partial = path.with_suffix(".partial")
        common: dict[str, Any] = {"per_channel": True, "weight_type": QuantType.QInt8}
        if files.model.is_dynamic:
            quantize_dynamic(str(prepared), str(partial), **common)
        else:
            reader = _Reader(name, examples(files) if data is None else data)
            kinds = {"quant_format": QuantFormat.QDQ, "activation_type": QuantType.QUInt8}
            quantize_static(str(prepared), str(partial), reader, **kinds, **common)
        partial.replace(path)
    return made


def _quantized_elsewhere(files: ModelFiles) -> QuantizedFiles:
    """Return the files with the graph that onnxruntime quantized, made in a process of its own the first time."""
    if not QuantizedFiles(files.model, files.folder).onnx.exists():
        _make_elsewhere(files, "onnx")
    return quantized_files(files)


def _calibrate(files: ModelFiles) -> None:
    """Write the file that says how this engine computes the model in int8."""
    from engine import RuntimeGraph, write_sidecar
    from engine.calibration.calibrator import Calibrator
    from engine.calibration.examples import ArrayExamples

    graph = RuntimeGraph(files.param)
    graph.build()
    archive = files.folder / "examples.npz"
    np.savez(archive, in_0=np.stack(list(examples(files))))
    calibrator = Calibrator(graph, ArrayExamples(archive, graph.inputs), [], lambda *_: None)
    calibrator.calibrate("minmax")
    write_sidecar(calibrator.quantization(calibrator.candidates), graph.param_path, graph.bin_path)


_MAKERS: dict[str, Callable[[ModelFiles], object]] = {
    "native": _calibrate,
    "onnx": quantized_files,
}


def _make_elsewhere(files: ModelFiles, kind: str) -> None:
    """Quantize in a process of its own: what that takes is no memory of the runtime that is measured.

    Raises:
        subprocess.CalledProcessError: it failed.
    """
    command = [sys.executable, "-m", "tests.bench.int8", kind, files.model.name, str(files.folder)]
    subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.DEVNULL)


class _Reader:
    """Examples, as onnxruntime asks for them."""

    def __init__(self, name: str, data: Iterable[Array]) -> None:
        self._name = name
        self._examples = iter(data)

    def get_next(self) -> dict[str, Any] | None:
        """Return the next one, None after the last."""
        example = next(self._examples, None)
        return None if example is None else {self._name: example}


if __name__ == "__main__":
    _MAKERS[sys.argv[1]](ModelFiles(MODELS[sys.argv[2]], Path(sys.argv[3])))
