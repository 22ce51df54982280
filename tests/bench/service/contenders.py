"""Who is measured: how each is started, and what each is sent in its own form."""

import base64
import json
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import orjson

from engine.dtypes import Array
from tests.bench.service.generator import Answer
from tests.bench.service.lead import OURS
from tests.bench.service.models import Model
from tests.bench.service.server import Server, free_port

FORMS = ("JSON", "binary", "image")
Reader = Callable[[bytes], Array]


@dataclass(frozen=True, slots=True)
class Contender:
    """A server and its forms.

    Attributes:
        name: its name.
        start: makes a server for a model, in a folder for files, with so many workers.
        ask: makes the request of a form.
        read: takes the scores out of an answer.
    """

    name: str
    start: Callable[[Model, Path, int], Server]
    ask: Callable[[Model, str], bytes]
    read: Callable[[Answer], Array]


def post(path: str, body: bytes, headers: Mapping[str, str]) -> bytes:
    """Return a request's bytes."""
    lines = [f"{name}: {value}" for name, value in headers.items()]
    head = [f"POST {path} HTTP/1.1", "Host: 127.0.0.1", *lines, f"Content-Length: {len(body)}", "", ""]
    return "\r\n".join(head).encode() + body


def _json(path: str, document: Any) -> bytes:
    return post(path, orjson.dumps(document), {"Content-Type": "application/json"})


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode()


def kuiper_command(models: Path, port: int, workers: int) -> list[str]:
    """Return the command that starts this server, all else as it is by default."""
    flags = ("--workers", str(workers), "--threads", "1", "--no-access-log")
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


def _start_kuiper(model: Model, scratch: Path, workers: int) -> Server:
    port = free_port()
    return Server(kuiper_command(model.folder / model.name, port, workers), port, "/readyz")


def _ask_kuiper(model: Model, form: str) -> bytes:
    if form == "image":
        return post(f"/infer?model={model.name}&trace=off", model.picture, {"Content-Type": "image/png"})
    name = {"digits": "0", "resnet18": "0"}[model.name]
    described = {"name": name, "shape": model.array.shape, "datatype": "FP32"}
    path = f"/v2/models/{model.name}/infer"
    if form == "JSON":
        return _json(path, {"inputs": [{**described, "data": model.array.ravel().tolist()}]})
    return binary_request(path, described, model.array)


def binary_request(path: str, described: Mapping[str, Any], array: Array) -> bytes:
    """Return a request of the protocol with one input, both ways in binary."""
    entry = {**described, "parameters": {"binary_data_size": array.nbytes}}
    text = orjson.dumps({"inputs": [entry], "parameters": {"binary_data_output": True}})
    headers = {"Inference-Header-Content-Length": str(len(text)), "Content-Type": "application/octet-stream"}
    return post(path, text + array.tobytes(), headers)


def _read_kuiper(answer: Answer) -> Array:
    head = answer.head.lower()
    mark = b"inference-header-content-length:"
    if mark in head:
        length = int(head.split(mark, 1)[1].split(b"\r\n", 1)[0])
        return np.frombuffer(answer.body[length:], np.float32)
    return np.array(orjson.loads(answer.body)["outputs"][0]["data"], np.float32).ravel()


def _environment(model: Model, port: int, workers: int) -> dict[str, str]:
    # one thread each: a server that runs several requests side by side has no more to give
    limits = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    bench = {"BENCH_MODEL": str(model.folder), "BENCH_PORT": str(port), "BENCH_WORKERS": str(workers)}
    return limits | bench


def _starter(python: Path, module: str) -> Callable[[Model, Path, int], Server]:
    def start(model: Model, scratch: Path, workers: int) -> Server:
        port = free_port()
        command = [str(python), "-m", f"tests.bench.service.peers.{module}"]
        return Server(command, port, "/ready", _environment(model, port, workers))

    return start


def _ask_fastapi(model: Model, form: str) -> bytes:
    if form == "JSON":
        return _json("/json", {"data": model.array.ravel().tolist()})
    kind = {"Content-Type": "application/octet-stream"}
    return post(f"/{form}", model.picture if form == "image" else model.array.tobytes(), kind)


def _read_fastapi(answer: Answer) -> Array:
    if answer.body.startswith(b"{"):
        return np.array(orjson.loads(answer.body)["data"], np.float32).ravel()
    return np.frombuffer(answer.body, np.float32)


def _ask_litserve(model: Model, form: str) -> bytes:
    if form == "JSON":
        return _json("/predict", {"data": model.array.ravel().tolist()})
    if form == "binary":
        return _json("/predict", {"bytes": _text(model.array.tobytes())})
    return _json("/predict", {"image": _text(model.picture)})


def _mlserver_starter(python: Path, parallel: bool) -> Callable[[Model, Path, int], Server]:
    def start(model: Model, scratch: Path, workers: int) -> Server:
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
        return Server(command, ports[0], ready, _environment(model, ports[0], workers))

    return start


def _ask_mlserver(model: Model, form: str) -> bytes:
    path = f"/v2/models/{model.name}/infer"
    if form == "JSON":
        numbers = {"name": "numbers", "shape": model.array.shape, "datatype": "FP32"}
        return _json(path, {"inputs": [{**numbers, "data": model.array.ravel().tolist()}]})
    name, data = ("bytes", model.array.tobytes()) if form == "binary" else ("image", model.picture)
    coded = {"name": name, "shape": [1], "datatype": "BYTES", "parameters": {"content_type": "base64"}}
    return _json(path, {"inputs": [{**coded, "data": [_text(data)]}]})


def _read_mlserver(answer: Answer) -> Array:
    return np.array(orjson.loads(answer.body)["outputs"][0]["data"], np.float32).ravel()


def contenders(environments: Path) -> list[Contender]:
    """Return this server, and those others that are installed.

    Args:
        environments: a folder with a virtual environment for each of the others.
    """
    pythons = {name: environments / name / "bin/python" for name in ("fastapi", "litserve", "mlserver")}
    fastapi, litserve, mlserver = pythons.values()
    known = {
        "fastapi": [Contender("FastAPI", _starter(fastapi, "fastapi_app"), _ask_fastapi, _read_fastapi)],
        "litserve": [Contender("LitServe", _starter(litserve, "litserve_app"), _ask_litserve, _read_fastapi)],
        "mlserver": [
            Contender(name, _mlserver_starter(mlserver, parallel), _ask_mlserver, _read_mlserver)
            for name, parallel in (("MLServer, in process", False), ("MLServer, workers", True))
        ],
    }
    ours = Contender(OURS, _start_kuiper, _ask_kuiper, _read_kuiper)
    installed = [name for name, python in pythons.items() if python.exists()]
    return [ours, *(contender for name in installed for contender in known[name])]
