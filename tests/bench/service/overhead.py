"""What the service adds to a run: the time that a client waits, less that of the bare `forward`.

The model takes 150,528 numbers, as many as a 224x224 picture has, and answers as many, or their means alone.
"""

import tempfile
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from time import perf_counter

import numpy as np
import orjson

from engine import RuntimeGraph
from engine.dtypes import Array
from tests.bench.service.contenders import binary_request, kuiper_command, post
from tests.bench.service.generator import Generator
from tests.bench.service.server import Server, free_port
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
MOST_MS = {"binary": 1.0, "JSON": 15.0}
"""Milliseconds that the service may add at the median, to a request that is answered by few numbers."""


@dataclass(frozen=True, slots=True)
class Overhead:
    """What the service adds to one model's run for one form of request.

    Attributes:
        model: what is run.
        form: binary or JSON.
        forward_ms: median of the bare `forward`.
        request_ms: median that a client waits.
    """

    model: str
    form: str
    forward_ms: float
    request_ms: float

    @property
    def added_ms(self) -> float:
        """Milliseconds that the service adds."""
        return self.request_ms - self.forward_ms


def measure_overhead(seconds: float) -> list[Overhead]:
    """Ask a server on one connection, each form for some seconds."""
    image = np.random.default_rng(0).standard_normal(SHAPE).astype(np.float32)
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        folders = {"means": add_model(root, "means", MEANS), "same": add_model(root, "same", SAME)}
        port = free_port()
        command = [*kuiper_command(root, port, 1), "--trace-rate", "0"]
        forward = {model: _forward_ms(folder, image) for model, folder in folders.items()}
        found = []
        with Server(command, port, "/readyz") as server:
            for model in folders:
                for form, request in _requests(model, image).items():
                    timings, _ = Generator(server.url, request, 1).measure(seconds)
                    found.append(Overhead(model, form, forward[model], timings.p50))
    return found


def too_slow(found: list[Overhead]) -> list[str]:
    """Return a sentence for each form of request to which the service adds more than it may."""
    return [
        f"the service adds {one.added_ms:.2f} ms to a {one.form} request; {MOST_MS[one.form]} are allowed"
        for one in found
        if one.model == "means" and one.added_ms > MOST_MS[one.form]
    ]


def overhead_table(found: list[Overhead]) -> str:
    """Return the table."""
    rows = [
        "| answers | request | forward, ms | client waits, ms | service adds, ms |",
        "|---|---|---|---|---|",
    ]
    words = {"means": "3 numbers", "same": "150,528 numbers"}
    for one in found:
        row = f"{one.forward_ms:.3f} | {one.request_ms:.3f} | {one.added_ms:.3f}"
        rows.append(f"| {words[one.model]} | {one.form} | {row} |")
    return "\n".join(rows)


def _forward_ms(folder: Path, image: Array) -> float:
    graph = RuntimeGraph(folder / "model.param", folder / "model.bin")
    graph.build()
    times = []
    for _ in range(200):
        started = perf_counter()
        graph.forward([image])
        times.append(perf_counter() - started)
    return median(times) * 1e3


def _requests(model: str, image: Array) -> dict[str, bytes]:
    path = f"/v2/models/{model}/infer"
    described = {"name": "0", "shape": SHAPE, "datatype": "FP32"}
    numbers = [float(f"{value:.6g}") for value in image.ravel().tolist()]
    text = orjson.dumps({"inputs": [{**described, "data": numbers}]})
    return {
        "binary": binary_request(path, described, image),
        "JSON": post(path, text, {"Content-Type": "application/json"}),
    }
