"""All kinds of requests that the soak test makes."""

import base64
import gzip
from collections.abc import Iterator
from typing import Any

import numpy as np
import orjson

from engine.dtypes import Array
from tests.service.codec.payloads import form, npy, npz
from tests.service.server.process import ROOT
from tests.service.v2.bodies import binary_body, binary_input, json_input, strings
from tests.soak.case import TRY_AGAIN, Identity, LoadCase, infer_json, infer_npz, v2_outputs
from tests.soak.models import ROWS
from tests.soak.wire import SoakRequest

DIGITS: Identity = ("digits", "1")
PICTURES = (1, 2)
"""Pictures that a request for `digits` may bring."""
JSON = {"Content-Type": "application/json"}
OCTETS = {"Content-Type": "application/octet-stream"}
HEADER = "Inference-Header-Content-Length"
LATE = frozenset({*TRY_AGAIN, "timeout"})
AWAY = frozenset({*TRY_AGAIN, "model_unloaded", "model_loading"})
VISITED = (
    *("/livez", "/readyz", "/v2/health/ready", "/v2", "/v2/models/digits", "/v2/models/digits/config"),
    *("/v2/models/stats", "/v2/models/twin/versions/2/stats", "/models", "/graph?model=digits", "/metrics"),
    *("/traces", "/traces?format=chrome", "/openapi.json", "/docs"),
)
VARIANTS = 6
"""Requests of each kind, with inputs of their own: a response that went to another client is noticed."""


def infer(name: str, query: str, body: bytes, headers: dict[str, str], **rest: Any) -> LoadCase:
    """Return a request to `/infer`."""
    return LoadCase(name, SoakRequest("POST", f"/infer?{query}", headers, body), **rest)


def v2(name: str, path: str, document: Any, *arrays: Array, headers: Any = None, **rest: Any) -> LoadCase:
    """Return a request to `/v2/models/…/infer`, with binary data where there are arrays."""
    body, length = binary_body(document, *arrays)
    lead = {**OCTETS, HEADER: str(length)} if arrays else {}
    return LoadCase(
        name, SoakRequest("POST", f"/v2/models/{path}/infer", {**lead, **(headers or {})}, body), **rest
    )


def make_cases() -> list[LoadCase]:
    """Return all kinds of requests for models that stay loaded."""
    generator = np.random.default_rng(0)
    cases = [*_digits_pictures(), *_faulty(), *_lookups()]
    for _ in range(VARIANTS):
        cases += [*_digits_tensors(generator), *_small(generator), *_slow(generator)]
    return cases


def make_guest_cases() -> list[LoadCase]:
    """Return requests for the model that comes and goes; no counter is asked about them."""
    generator = np.random.default_rng(1)
    cases = []
    for _ in range(VARIANTS):
        rows = generator.standard_normal((2, 3)).astype(np.float32)
        document = {"inputs": [json_input("0", rows)]}
        cases.append(v2("guest", "guest", document, reads=v2_outputs, codes=AWAY))
    return cases


def make_visits() -> list[LoadCase]:
    """Return requests for all but inference: they are answered whatever else goes on."""
    visits = [LoadCase(target, SoakRequest("GET", target)) for target in VISITED]
    visits.append(LoadCase("index", SoakRequest("POST", "/v2/repository/index")))
    visits.append(LoadCase("nowhere", SoakRequest("GET", "/nowhere"), status=404))
    visits.append(LoadCase("no method", SoakRequest("DELETE", "/models"), status=405))
    visits.append(LoadCase("no trace", SoakRequest("GET", "/traces/none"), status=404))
    visits.append(LoadCase("no key", SoakRequest("POST", "/v2/repository/models/digits/load"), status=401))
    return visits


def _digits_pictures() -> Iterator[LoadCase]:
    answered: dict[str, Any] = {"model": DIGITS, "reads": infer_json}
    for digit in range(10):
        picture = (ROOT / f"models/digits/samples/{digit}.png").read_bytes()
        name = f"digit {digit}"
        yield infer(f"{name} png", "model=digits", picture, {"Content-Type": "image/png"}, **answered)
        body, kind = form(('name="file"; filename="x.png"', picture))
        query = "model=digits&trace=off&version=1"
        yield infer(f"{name} form", query, body, {"Content-Type": kind}, **answered)
        text = orjson.dumps({"image": base64.b64encode(picture).decode()})
        yield infer(f"{name} base64", "model=digits&trace=stats", text, JSON, **answered)
        taken: dict[str, Any] = {"model": DIGITS, "reads": v2_outputs}
        raw = SoakRequest("POST", "/v2/models/digits/infer", {**OCTETS, HEADER: "0"}, picture)
        yield LoadCase(f"{name} v2 raw", raw, **taken)
        data = np.frombuffer(strings(picture, picture), np.uint8)
        bytes_input = {"name": "0", "shape": [2], "datatype": "BYTES"}
        document = {"inputs": [{**bytes_input, "parameters": {"binary_data_size": data.nbytes}}]}
        yield v2(f"{name} v2 BYTES", "digits", document, data, **taken)


def _digits_tensors(generator: np.random.Generator) -> Iterator[LoadCase]:
    image = generator.random((1, 1, 28, 28), np.float32)
    answered: dict[str, Any] = {"model": DIGITS, "reads": infer_json}
    flat = {"shape": [1, 1, 28, 28], "dtype": "f32", "data": image.ravel().tolist()}
    body = orjson.dumps({"inputs": [flat]})
    yield infer("digits json", "model=digits", body, JSON, **answered)
    chunked = SoakRequest("POST", "/infer?model=digits&trace=off", {}, npy(image), chunk=500)
    yield LoadCase("digits npy in chunks", chunked, **answered)
    wanted = {"Accept": "application/x-npz"}
    query = "model=digits&trace=off"
    yield infer("digits npz response", query, npy(image), wanted, model=DIGITS, reads=infer_npz)
    taken: dict[str, Any] = {"model": DIGITS, "reads": v2_outputs}
    document = {"inputs": [binary_input("0", image)], "parameters": {"binary_data_output": True}}
    yield v2("digits v2 binary", "digits", document, image, **taken)
    document = {"inputs": [json_input("0", image)], "parameters": {"trace": True}, "id": "soak"}
    yield v2("digits v2 json", "digits/versions/1", document, **taken)
    packed = gzip.compress(orjson.dumps({"inputs": [json_input("0", image)]}), 1)
    headers = {"Content-Encoding": "gzip"}
    yield LoadCase("digits v2 gzip", SoakRequest("POST", "/v2/models/digits/infer", headers, packed), **taken)


def _small(generator: np.random.Generator) -> Iterator[LoadCase]:
    rows = generator.standard_normal((int(generator.choice(ROWS)), 3)).astype(np.float32)
    vector: dict[str, Any] = {"model": ("vector", "1"), "reads": v2_outputs}
    urgent = {"inputs": [binary_input("0", rows)], "parameters": {"priority": int(generator.integers(1, 9))}}
    yield v2("vector v2 binary", "vector", urgent, rows, **vector)
    text = "\n".join(",".join(str(value) for value in row) for row in rows.tolist())
    csv = {"Content-Type": "text/csv"}
    yield infer("vector csv", "model=vector", text.encode(), csv, model=("vector", "1"), reads=infer_json)
    for version in "12":
        twin = ("twin", version)
        yield v2(
            "twin",
            f"twin/versions/{version}",
            {"inputs": [json_input("0", rows)]},
            model=twin,
            reads=v2_outputs,
        )
    left, right = generator.standard_normal((2, 2)).astype(np.float32)
    kind = {"Content-Type": "application/x-npz"}
    yield infer(
        "pair npz", "model=pair", npz(left=left, right=right), kind, model=("pair", "1"), reads=infer_json
    )
    wide = generator.standard_normal((1, 65536)).astype(np.float32)
    document = {"inputs": [binary_input("0", wide)], "parameters": {"binary_data_output": True}}
    yield v2("wide v2 binary", "wide", document, wide, model=("wide", "1"), reads=v2_outputs)
    yield infer("wide npy", "model=wide", npy(wide), {}, model=("wide", "1"), reads=infer_json)


def _slow(generator: np.random.Generator) -> Iterator[LoadCase]:
    rows = generator.standard_normal((1, 3)).astype(np.float32)
    slow: dict[str, Any] = {"model": ("slow", "1"), "reads": v2_outputs}
    document = {"inputs": [json_input("0", rows)], "parameters": {"priority": int(generator.integers(0, 4))}}
    yield v2("slow", "slow", document, **slow)


def make_hurried_cases() -> list[LoadCase]:
    """Return requests with deadlines that are met or not."""
    rows = np.ones((1, 3), np.float32)
    cases = []
    for milliseconds in (1, 5, 20, 45, 70, 200):
        parameters = {"timeout": milliseconds * 1000}
        document = {"inputs": [json_input("0", rows)], "parameters": parameters}
        name = f"slow within {milliseconds} ms"
        cases.append(v2(name, "slow", document, model=("slow", "1"), codes=LATE))
        image = {"inputs": [json_input("0", np.zeros((1, 1, 28, 28), np.float32))], "parameters": parameters}
        cases.append(v2(f"digits within {milliseconds} ms", "digits", image, model=DIGITS, codes=LATE))
    return cases


def _lookups() -> Iterator[LoadCase]:
    table = np.arange(10, dtype=np.float32).reshape(5, 2)
    for last, status in ((4, 200), (5, 422), (1 << 40, 422)):
        index = np.array([0, 1, 2, last])
        arrays = npz(index=index, table=table)
        kind = {"Content-Type": "application/x-npz"}
        lookup: dict[str, Any] = {"model": ("lookup", "1")}
        yield infer(f"lookup of {last}", "model=lookup", arrays, kind, status=status, **lookup)
        document = {"inputs": [binary_input("index", index), binary_input("table", table)]}
        v2_status = 200 if status == 200 else 400
        yield v2(f"v2 lookup of {last}", "lookup", document, index, table, status=v2_status, **lookup)


def _faulty() -> Iterator[LoadCase]:
    zeros = np.zeros((1, 1, 28, 28), np.float32)
    for name, query, body, headers, status in (
        ("broken JSON", "", b"{", JSON, 400),
        ("broken picture", "", b"\x89PNG\r\n\x1a\nnothing more", {"Content-Type": "image/png"}, 400),
        ("wrong shape", "", b'{"inputs": [{"data": [1, 2, 3]}]}', JSON, 422),
        ("unknown input", "", b'{"inputs": [{"name": "x", "data": [1]}]}', JSON, 422),
        ("unknown type", "", b"%PDF", {"Content-Type": "application/pdf"}, 415),
        ("not acceptable", "", npy(zeros), {"Accept": "text/html"}, 406),
        ("unknown option", "&tracing=on", npy(zeros), {}, 422),
        ("unknown operand", "&capture=nothing", npy(zeros), {}, 422),
        ("empty", "", b"", {}, 400),
        ("too large", "", bytes(2_000_000), {}, 413),
        ("packed", "", b"x", {"Content-Encoding": "gzip"}, 415),
    ):
        yield infer(name, f"model=digits{query}", body, headers, status=status, model=DIGITS)
    yield infer("no model", "model=none", b"{}", JSON, status=404)
    yield infer("no version", "model=digits&version=9", b"{}", JSON, status=404)
    yield from _faulty_v2()


def _faulty_v2() -> Iterator[LoadCase]:
    rows = np.ones((2, 3), np.float32)
    sound = binary_input("0", rows)
    refused: dict[str, Any] = {"model": ("vector", "1"), "status": 400}
    for name, entry, array in (
        ("v2 wrong name", sound | {"name": "x"}, rows),
        ("v2 wrong shape", sound | {"shape": [2, 4]}, rows),
        ("v2 wrong datatype", sound | {"datatype": "INT64"}, rows),
        ("v2 no datatype", sound | {"datatype": "FP31"}, rows),
        ("v2 short data", sound, rows[:1]),
        ("v2 surplus data", sound, np.ones((3, 3), np.float32)),
        ("v2 overflow", sound | {"shape": [1 << 62, 1 << 62]}, rows),
    ):
        yield v2(name, "vector", {"inputs": [entry]}, array, **refused)
    yield v2("v2 no inputs", "vector", {}, **refused)
    yield v2("v2 header too long", "vector", {}, rows, headers={HEADER: "999999"}, **refused)
    yield v2("v2 not packed", "vector", {}, headers={"Content-Encoding": "gzip"}, **refused)
    yield v2("v2 br", "vector", {}, headers={"Content-Encoding": "br"}, model=("vector", "1"), status=501)
    wanted = {"inputs": [json_input("0", rows)], "outputs": [{"name": "x"}]}
    yield v2("v2 wrong output", "vector", wanted, **refused)
    yield v2("v2 no model", "none", {"inputs": []}, status=404)
