"""The servers that are compared: how each is started, and what each is sent for one kind of input."""

import base64
import json
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import orjson

from engine.dtypes import Array
from tests.bench.service.request import PostRequest
from tests.bench.service.results import OURS, OURS_TWICE
from tests.bench.service.served_model import ServedModel
from tests.bench.service.server import MeasuredServer, free_port
from tests.bench.service.triton import TritonError, TritonInstallation

FORMS = ("JSON", "binary", "image")
CLOSE = 1e-3
"""Maximum difference of a response from PyTorch's, relative to the largest score."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A server that is compared.

    Attributes:
        name: its name.
        start: makes a server for a model, in a folder for files, with so many workers.
        request: makes the request for a form of input.
        read: takes the scores out of a response.
        forms: of input that it takes.
    """

    name: str
    start: Callable[[ServedModel, Path, int], MeasuredServer]
    request: Callable[[ServedModel, str], PostRequest]
    read: Callable[[httpx.Response], Array]
    forms: tuple[str, ...] = FORMS

    def check(self, model: ServedModel, form: str, url: str) -> None:
        """See that a server that listens at `url` answers as PyTorch does.

        Raises:
            ValueError: it does not.
        """
        scores = self.read(self.request(model, form).send(url))
        expected = (model.of_picture if form == "image" else model.scores).ravel()
        if np.abs(scores - expected).max() > CLOSE * np.abs(expected).max():
            raise ValueError(f"{self.name} responses {model.name} by {form} otherwise than PyTorch")


def json_request(path: str, document: Any) -> PostRequest:
    """Return a request whose body is a document as JSON."""
    return PostRequest(path, orjson.dumps(document), {"Content-Type": "application/json"})


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode()


def kuiper_command(models: Path, port: int, workers: int) -> list[str]:
    """Return the command that starts this server, all else as it is by default."""
    flags = ("--workers", str(workers), "--threads", "1", "--log-level", "warning")
    return [
        sys.executable,
        "-m",
        "service.cli",
        "serve",
        "--models",
        str(models),
        "--port",
        str(port),
        *flags,
    ]


def _kuiper_starter(processes: int) -> Callable[[ServedModel, Path, int], MeasuredServer]:
    """Return what starts this server with so many processes; they share the workers, as they do by default."""

    def start(model: ServedModel, scratch: Path, workers: int) -> MeasuredServer:
        port = free_port()
        command = kuiper_command(model.folder / model.name, port, max(workers // processes, 1))
        command += ["--processes", str(processes)]
        return MeasuredServer(command, port, "/readyz", processes=processes)

    return start


def _request_kuiper(model: ServedModel, form: str) -> PostRequest:
    if form == "image":
        return PostRequest(
            f"/infer?model={model.name}&trace=off", model.picture, {"Content-Type": "image/png"}
        )
    return _request_protocol(model, form)


def _request_protocol(model: ServedModel, form: str) -> PostRequest:
    """Return a request of the Open Inference Protocol."""
    described = {"name": "0", "shape": model.array.shape, "datatype": "FP32"}
    path = f"/v2/models/{model.name}/infer"
    if form == "JSON":
        return json_request(path, {"inputs": [{**described, "data": model.array.ravel().tolist()}]})
    return binary_request(path, described, model.array)


def binary_request(path: str, described: Mapping[str, Any], array: Array) -> PostRequest:
    """Return a request of the protocol with one input, both ways in binary."""
    entry = {**described, "parameters": {"binary_data_size": array.nbytes}}
    text = orjson.dumps({"inputs": [entry], "parameters": {"binary_data_output": True}})
    headers = {"Inference-Header-Content-Length": str(len(text)), "Content-Type": "application/octet-stream"}
    return PostRequest(path, text + array.tobytes(), headers)


def _read_protocol(response: httpx.Response) -> Array:
    if (length := response.headers.get("Inference-Header-Content-Length")) is not None:
        return np.frombuffer(response.content[int(length) :], np.float32)
    return np.array(orjson.loads(response.content)["outputs"][0]["data"], np.float32).ravel()


def _environment(model: ServedModel, port: int, workers: int) -> dict[str, str]:
    # one thread each: a server that runs several requests side by side has no more to give
    limits = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    bench = {"BENCH_MODEL": str(model.folder), "BENCH_PORT": str(port), "BENCH_WORKERS": str(workers)}
    return limits | bench


def _starter(python: Path, module: str) -> Callable[[ServedModel, Path, int], MeasuredServer]:
    def start(model: ServedModel, scratch: Path, workers: int) -> MeasuredServer:
        port = free_port()
        command = [str(python), "-m", f"tests.bench.service.peers.{module}"]
        return MeasuredServer(command, port, "/ready", _environment(model, port, workers))

    return start


def _request_fastapi(model: ServedModel, form: str) -> PostRequest:
    if form == "JSON":
        return json_request("/json", {"data": model.array.ravel().tolist()})
    kind = {"Content-Type": "application/octet-stream"}
    return PostRequest(f"/{form}", model.picture if form == "image" else model.array.tobytes(), kind)


def _read_fastapi(response: httpx.Response) -> Array:
    if response.content.startswith(b"{"):
        return np.array(orjson.loads(response.content)["data"], np.float32).ravel()
    return np.frombuffer(response.content, np.float32)


def _request_litserve(model: ServedModel, form: str) -> PostRequest:
    if form == "JSON":
        return json_request("/predict", {"data": model.array.ravel().tolist()})
    if form == "binary":
        return json_request("/predict", {"bytes": _text(model.array.tobytes())})
    return json_request("/predict", {"image": _text(model.picture)})


def _mlserver_starter(python: Path, parallel: bool) -> Callable[[ServedModel, Path, int], MeasuredServer]:
    def start(model: ServedModel, scratch: Path, workers: int) -> MeasuredServer:
        folder = scratch / f"mlserver-{model.name}-{parallel}"
        folder.mkdir(parents=True, exist_ok=True)
        ports = [free_port() for _ in range(3)]
        settings = {
            **dict(zip(("http_port", "grpc_port", "metrics_port"), ports, strict=True)),
            "host": "127.0.0.1",
            "debug": False,
            "metrics_endpoint": None,
            "parallel_workers": workers if parallel else 0,
        }
        implementation = "tests.bench.service.peers.mlserver_model.Model"
        (folder / "settings.json").write_text(json.dumps(settings))
        described = {"name": model.name, "implementation": implementation}
        (folder / "model-settings.json").write_text(json.dumps(described))
        command = [str(python.parent / "mlserver"), "start", str(folder)]
        ready = f"/v2/models/{model.name}/ready"
        return MeasuredServer(command, ports[0], ready, _environment(model, ports[0], workers))

    return start


def _request_mlserver(model: ServedModel, form: str) -> PostRequest:
    path = f"/v2/models/{model.name}/infer"
    if form == "JSON":
        numbers = {"name": "numbers", "shape": model.array.shape, "datatype": "FP32"}
        return json_request(path, {"inputs": [{**numbers, "data": model.array.ravel().tolist()}]})
    name, data = ("bytes", model.array.tobytes()) if form == "binary" else ("image", model.picture)
    coded = {"name": name, "shape": [1], "datatype": "BYTES", "parameters": {"content_type": "base64"}}
    return json_request(path, {"inputs": [{**coded, "data": [_text(data)]}]})


def _read_mlserver(response: httpx.Response) -> Array:
    return np.array(orjson.loads(response.content)["outputs"][0]["data"], np.float32).ravel()


def _triton_starter(
    installed: TritonInstallation, instances: int | None
) -> Callable[[ServedModel, Path, int], MeasuredServer]:
    """Return what starts Triton with so many processes for the model; with None, as many as others have workers."""

    def start(model: ServedModel, scratch: Path, workers: int) -> MeasuredServer:
        port = free_port()
        variables = _environment(model, port, workers)
        return installed.start(model, scratch, port, instances or workers, variables)

    return start


def _tritons(environment: Path) -> list[Candidate]:
    """Return Triton, where it is installed and runs; says why if it does not."""
    try:
        installed = TritonInstallation.find(environment)
    except TritonError as error:
        print(f"Triton is left out: {error}", flush=True)
        return []
    if installed is None:
        return []
    return [
        # pictures are for models of their own there
        Candidate(
            name, _triton_starter(installed, count), _request_protocol, _read_protocol, ("JSON", "binary")
        )
        for name, count in (("Triton, 1 instance", 1), ("Triton, instances", None))
    ]


def candidates(environments: Path) -> list[Candidate]:
    """Return this server, with one process and with two, and those others that are installed.

    Args:
        environments: a folder with a virtual environment for each of the others.
    """
    pythons = {name: environments / name / "bin/python" for name in ("fastapi", "litserve", "mlserver")}
    fastapi, litserve, mlserver = pythons.values()
    known = {
        "fastapi": [Candidate("FastAPI", _starter(fastapi, "fastapi_app"), _request_fastapi, _read_fastapi)],
        "litserve": [
            Candidate("LitServe", _starter(litserve, "litserve_app"), _request_litserve, _read_fastapi)
        ],
        "mlserver": [
            Candidate(name, _mlserver_starter(mlserver, parallel), _request_mlserver, _read_mlserver)
            for name, parallel in (("MLServer, in process", False), ("MLServer, workers", True))
        ],
    }
    ours = [
        Candidate(name, _kuiper_starter(processes), _request_kuiper, _read_protocol)
        for name, processes in ((OURS, 1), (OURS_TWICE, 2))
    ]
    installed = [name for name, python in pythons.items() if python.exists()]
    others = [candidate for name in installed for candidate in known[name]]
    return [*ours, *_tritons(environments / "triton"), *others]
