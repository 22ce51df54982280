"""How long digits take over gRPC and over HTTP: binary requests of Triton's clients, alternately.

Run: python -m tests.bench.grpc.
"""

import argparse
from collections.abc import Callable
from statistics import median
from time import perf_counter
from typing import Any
from urllib.parse import urlsplit

import numpy as np
import tritonclient.grpc as triton_grpc
import tritonclient.http as triton_http

from tests.service.grpc.servers import grpc_address
from tests.service.server.process import ROOT, ServerProcess

ROUNDS, REQUESTS, WARM_UP = 20, 100, 200
BAR = 1.5
"""The ratio that gRPC is to stay below."""


def caller(module: Any, client: Any) -> Callable[[], None]:
    """Return what sends one request by a client and reads its response."""
    pixels = np.random.default_rng(0).random((1, 1, 28, 28), np.float32)
    tensor = module.InferInput("0", list(pixels.shape), "FP32")
    tensor.set_data_from_numpy(pixels)
    output = module.InferRequestedOutput("31")

    def call() -> None:
        client.infer("digits", [tensor], outputs=[output]).as_numpy("31")

    return call


def milliseconds(call: Callable[[], None], count: int) -> list[float]:
    """Return how long each of some calls took."""
    taken = []
    for _ in range(count):
        began = perf_counter()
        call()
        taken.append((perf_counter() - began) * 1e3)
    return taken


def main() -> None:
    """Print the medians of both, and their ratio."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--processes", type=int, default=1)
    asked = parser.parse_args()
    rounds = asked.rounds
    flags = (
        "--models",
        str(ROOT / "models/digits"),
        "--grpc-port",
        "0",
        "--log-level",
        "info",
        "--processes",
        str(asked.processes),
    )
    with (
        ServerProcess(*flags, module="service") as server,
        triton_grpc.InferenceServerClient(grpc_address(server)) as over_grpc,
        triton_http.InferenceServerClient(urlsplit(server.url).netloc) as over_http,
    ):
        calls = {"HTTP": caller(triton_http, over_http), "gRPC": caller(triton_grpc, over_grpc)}
        taken: dict[str, list[float]] = {name: [] for name in calls}
        for call in calls.values():
            milliseconds(call, WARM_UP)
        for turn in range(rounds):
            for name in sorted(calls, reverse=turn % 2 == 0):
                taken[name] += milliseconds(calls[name], REQUESTS)
    medians = {name: median(times) for name, times in taken.items()}
    for name, value in medians.items():
        print(f"{name}: {value:.3f} ms, median of {len(taken[name])} requests alternately")
    print(f"gRPC / HTTP: {medians['gRPC'] / medians['HTTP']:.2f} (at most {BAR})")


if __name__ == "__main__":
    main()
