"""Other runtimes on the same weights and input: each function reads a model's files and returns how to run it.

All are asked for a precision, float32 if not named otherwise, and a number of threads, and for nothing else that
differs from what they do by themselves.
"""

from collections.abc import Callable

import numpy as np

from engine.dtypes import Array
from tests.bench.models import ModelFiles

Call = Callable[[], list[Array]]
"""Runs a model once on its input; returns its outputs."""


def onnxruntime(files: ModelFiles, threads: int) -> Call:
    """Prepare an onnxruntime session on the CPU."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(str(files.onnx), options, providers=["CPUExecutionProvider"])
    feeds = {session.get_inputs()[0].name: files.model.input()}
    return lambda: session.run(None, feeds)


def openvino(files: ModelFiles, threads: int) -> Call:
    """Prepare an OpenVINO request; by itself it would compute in bfloat16 where the processor can."""
    return _openvino(files, threads, "f32")


def openvino_bf16(files: ModelFiles, threads: int) -> Call:
    """Prepare an OpenVINO request that may compute in bfloat16, as it does by itself where the processor can."""
    return _openvino(files, threads, "bf16")


def _openvino(files: ModelFiles, threads: int, precision: str) -> Call:
    import openvino

    config = {
        "INFERENCE_PRECISION_HINT": precision,
        "INFERENCE_NUM_THREADS": threads,
        "PERFORMANCE_HINT": "LATENCY",
    }
    core = openvino.Core()
    compiled = core.compile_model(core.read_model(files.onnx), "CPU", config)
    request = compiled.create_infer_request()
    image = files.model.input()
    ports = range(len(compiled.outputs))

    def call() -> list[Array]:
        response = request.infer([image], share_inputs=True, share_outputs=True)
        return [response[port] for port in ports]

    return call


def ncnn(files: ModelFiles, threads: int) -> Call:
    """Prepare an ncnn net, which knows no batch."""
    import ncnn

    net = ncnn.Net()
    net.opt.num_threads = threads
    net.opt.use_fp16_packed = net.opt.use_fp16_storage = net.opt.use_fp16_arithmetic = False
    net.opt.use_bf16_storage = False
    if net.load_param(str(files.ncnn)) or net.load_model(str(files.ncnn.with_suffix(".bin"))):
        raise ValueError("ncnn does not load the files")
    image = files.model.input()[0]
    names = net.output_names()

    def call() -> list[Array]:
        extractor = net.create_extractor()
        extractor.input("in0", ncnn.Mat(image))
        outputs = []
        for name in names:
            code, mat = extractor.extract(name)
            if code:
                raise ValueError(f"ncnn gives no {name}: code {code}")
            outputs.append(np.asarray(mat)[None])
        return outputs

    return call


def torch(files: ModelFiles, threads: int) -> Call:
    """Prepare the module itself in inference mode."""
    import torch

    from tests.golden.networks import NETWORKS

    torch.set_num_threads(threads)
    module = NETWORKS[files.model.network].construct(**files.model.options).eval()
    module.load_state_dict(torch.load(files.weights, weights_only=True))
    image = torch.from_numpy(files.model.input())

    def call() -> list[Array]:
        with torch.inference_mode():
            outputs = module(image)
        return [output.numpy() for output in ([outputs] if isinstance(outputs, torch.Tensor) else outputs)]

    return call
