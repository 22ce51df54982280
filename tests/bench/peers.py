"""Other runtimes on the same weights and input: each peer takes a torch module and gives a callable."""

import subprocess
import warnings
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import torch

from engine.dtypes import Array
from tests.golden.networks.export import find_exporter

Call = Callable[[], Array]


def onnxruntime_call(module: Any, image: Array, folder: Path, threads: int) -> Call:
    """Prepare a session on the CPU with `threads` threads inside an operator and one between them."""
    import onnxruntime

    path = folder / "model.onnx"
    if not path.exists():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the exporter announces its successor
            torch.onnx.export(module, (torch.from_numpy(image),), str(path), dynamo=False, verbose=False)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    feeds = {session.get_inputs()[0].name: image}
    return lambda: np.asarray(session.run(None, feeds)[0])


def ncnn_call(module: Any, image: Array, folder: Path, threads: int) -> Call:
    """Prepare an ncnn net of the exporter's own f32 files."""
    import ncnn

    param = folder / "model.ncnn.param"
    if not param.exists():
        traced = folder / "model.pt"
        torch.jit.trace(module, torch.from_numpy(image), check_trace=False).save(str(traced))
        shape = ",".join(map(str, image.shape))
        command = [find_exporter(), str(traced), f"inputshape=[{shape}]", "fp16=0"]
        subprocess.run(command, cwd=folder, check=True, capture_output=True)
    net = ncnn.Net()
    net.opt.num_threads = threads
    net.load_param(str(param))
    net.load_model(str(param.with_suffix(".bin")))
    mat = ncnn.Mat(image[0])

    def call() -> Array:
        extractor = net.create_extractor()
        extractor.set_light_mode(True)
        extractor.input("in0", mat)
        return np.array(extractor.extract("out0")[1])[None]

    return call


def torch_call(module: Any, image: Array, folder: Path, threads: int) -> Call:
    """Prepare the module itself in inference mode."""
    del folder
    tensor = torch.from_numpy(image)

    def call() -> Array:
        torch.set_num_threads(threads)
        with torch.inference_mode():
            return np.asarray(module(tensor))

    return call


PEERS: dict[str, Callable[[Any, Array, Path, int], Call]] = {
    "onnxruntime": onnxruntime_call,
    "ncnn": ncnn_call,
    "torch": torch_call,
}


def available() -> dict[str, Callable[[Any, Array, Path, int], Call]]:
    """Return the peers that are installed."""
    return {name: prepare for name, prepare in PEERS.items() if find_spec(name) is not None}
