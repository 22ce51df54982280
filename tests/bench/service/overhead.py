"""What the service adds to a run: the time that a client waits, less that of the bare `forward`.

The model takes 150,528 numbers, as many as a 224x224 picture has, and answers as many, or their means alone.
"""

import tempfile
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from time import perf_counter

import numpy as np

from engine import RuntimeGraph
from engine.dtypes import Array
from tests.bench.service.candidates import binary_request, json_request, kuiper_command
from tests.bench.service.load import measure
from tests.bench.service.request import PostRequest
from tests.bench.service.results import Overhead
from tests.bench.service.server import MeasuredServer, free_port
from tests.service.models import add_model

SHAPE = (1, 3, 224, 224)
MEANS = """
pnnx.Input  in   0 1 0 #0=(1,3,224,224)f32
torch.mean  mean 1 1 0 1 dim=(2,3) keepdim=False $input=0 #0=(1,3,224,224)f32 #1=(1,3)f32
pnnx.Output out  1 0 1 #1=(1,3)f32
"""
SAME = """
pnnx.Input  in   0 1 0 #0=(1,3,224,224)f32
nn.ReLU     relu 1 1 0 1 #0=(1,3,224,224)f32 #1=(1,3,224,224)f32
pnnx.Output out  1 0 1 #1=(1,3,224,224)f32
"""
MAX_MS = {"binary": 1.0, "JSON": 15.0}
"""Milliseconds that the service may add at the median, to a request that is answered by few numbers."""


def measure_overhead(seconds: int) -> list[Overhead]:
    """Ask a server on one connection, each form for some seconds."""
    image = np.random.default_rng(0).standard_normal(SHAPE).astype(np.float32)
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        folders = {"means": add_model(root, "means", MEANS), "same": add_model(root, "same", SAME)}
        port = free_port()
        command = [*kuiper_command(root, port, 1), "--trace-rate", "0"]
        forward = {model: _forward_ms(folder, image) for model, folder in folders.items()}
        found = []
        with MeasuredServer(command, port, "/readyz") as server:
            for model in folders:
                for form, request in _requests(model, image).items():
                    timings = measure(server.url, request.to_bytes(), 1, seconds)
                    found.append(Overhead(model, form, forward[model], timings.p50))
    return found


def too_slow(found: Sequence[Overhead]) -> list[str]:
    """Return a sentence for each form of request to which the service adds more than it may."""
    return [
        f"the service adds {one.added_ms:.2f} ms to a {one.form} request; {MAX_MS[one.form]} are allowed"
        for one in found
        if one.model == "means" and one.added_ms > MAX_MS[one.form]
    ]


def _forward_ms(folder: Path, image: Array) -> float:
    graph = RuntimeGraph(folder / "model.param", folder / "model.bin")
    graph.build()
    times = []
    for _ in range(200):
        started = perf_counter()
        graph.forward([image])
        times.append(perf_counter() - started)
    return median(times) * 1e3


def _requests(model: str, image: Array) -> dict[str, PostRequest]:
    path = f"/v2/models/{model}/infer"
    described = {"name": "0", "shape": SHAPE, "datatype": "FP32"}
    numbers = [float(f"{value:.6g}") for value in image.ravel().tolist()]
    return {
        "binary": binary_request(path, described, image),
        "JSON": json_request(path, {"inputs": [{**described, "data": numbers}]}),
    }
