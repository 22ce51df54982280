"""Requests of every kind, good and bad."""

import base64
import json

import numpy as np

from tests.service.codec.payloads import npy, npz
from tests.service.direct.wire import Ask
from tests.service.server.process import ROOT
from tests.service.v2.bodies import binary_body, binary_input, json_input

LIMIT = 200_000
"""Most bytes of a body."""
SAMPLE = (ROOT / "models/digits/samples/7.png").read_bytes()
JSON = ("Content-Type", "application/json")
VECTOR, V2 = "/infer?model=vector", "/v2/models/same_f32/infer"
ROW = np.array([[-1, 0, 1]], np.float32)
FEW, MANY = np.array([[1, -2]], np.float32), np.ones((5000, 2), np.float32)
GOOD = json.dumps({"inputs": [{"data": ROW.tolist()}]}).encode()


def _json(target: str, document: object, *headers: tuple[str, str]) -> Ask:
    return Ask(target, json.dumps(document).encode(), (JSON, *headers))


def _raw(kind: str, body: bytes, target: str = VECTOR, *headers: tuple[str, str]) -> Ask:
    return Ask(target, body, (("Content-Type", kind), *headers))


def _binary(array: np.ndarray, *headers: tuple[str, str], **others: object) -> Ask:
    body, length = binary_body({"inputs": [binary_input("in", array)], **others}, array)
    return Ask(V2, body, (("Inference-Header-Content-Length", str(length)), *headers))


def _split_at(length: str, body: bytes = b"{}") -> Ask:
    return Ask(V2, body, (("Inference-Header-Content-Length", length),))


FORM = (
    b'--x\r\nContent-Disposition: form-data; name="file"; filename="7.png"\r\n\r\n'
    + SAMPLE
    + b"\r\n--x--\r\n"
)
V2_GOOD = {"inputs": [json_input("in", FEW)]}

INFER = {
    "json": _json(VECTOR, {"inputs": [{"data": ROW.tolist()}]}),
    "json without its type": Ask(VECTOR, GOOD),
    "npy": _raw("application/x-npy", npy(ROW)),
    "npz": _raw("application/x-npz", npz(left=FEW[0], right=FEW[0]), "/infer?model=pair"),
    "csv": _raw("text/csv", b"-1,0.5,2\n1,1,1\n"),
    "picture": _raw("image/png", SAMPLE, "/infer?model=digits"),
    "picture of no type": Ask("/infer?model=digits", SAMPLE),
    "form": _raw("multipart/form-data; boundary=x", FORM, "/infer?model=digits"),
    "base64": _json("/infer?model=digits", {"image": base64.b64encode(SAMPLE).decode()}),
    "version": Ask("/infer?model=versioned&version=1", npy(FEW)),
    "fault": _json("/infer?model=fault", {"inputs": [{"data": [1]}]}, ("X-Request-ID", "f1")),
    **{f"trace {level}": Ask(f"{VECTOR}&trace={level}", GOOD) for level in ("off", "on", "statistics", "x")},
    "capture": Ask(f"{VECTOR}&capture=0,1", GOOD),
    "capture twice": Ask(f"{VECTOR}&capture=0&capture=1", GOOD),
    "capture what is not": Ask(f"{VECTOR}&capture=nothing", GOOD),
    "capture of a batch": Ask(f"{VECTOR}&trace=statistics&capture=0", npy(np.ones((3, 3), np.float32))),
    "top_k": Ask("/infer?model=digits&top_k=2", SAMPLE),
    "wrong top_k": Ask("/infer?model=digits&top_k=-2", SAMPLE),
    "unknown option": Ask(f"{VECTOR}&x=1", GOOD),
    "model in escapes": Ask("/infer?model=v%65ctor", GOOD),
    "npz answer": Ask(VECTOR, GOOD, (("Accept", "application/x-npz"),)),
    "no acceptable answer": Ask(VECTOR, GOOD, (("Accept", "text/html"),)),
    "empty accept": Ask(VECTOR, GOOD, (("Accept", ""),)),
    "empty type": Ask(VECTOR, GOOD, (("Content-Type", ""),)),
    "wrong type": _raw("application/pdf", b"%PDF-1.7"),
    "type of no sense": _raw("\xe9;;=", GOOD),
    "broken json": _raw("application/json", b"{"),
    "deep json": _raw("application/json", b"[" * 100_000),
    "wrong shape": _json(VECTOR, {"inputs": [{"data": [[1, 2]]}]}),
    "ragged": _json(VECTOR, {"inputs": [{"data": [[1, 2], [3]]}]}),
    "wrong name": _json(VECTOR, {"inputs": [{"name": "x", "data": ROW.tolist()}]}),
    "broken picture": _raw("image/png", b"\x89PNG\r\n\x1a\nno more", "/infer?model=digits"),
    "empty": Ask(VECTOR),
    "no model": Ask("/infer", GOOD),
    "unknown model": Ask("/infer?model=none", GOOD),
    "unknown version": Ask("/infer?model=versioned&version=2", npy(FEW)),
    "too large": Ask(VECTOR, bytes(LIMIT + 1)),
    "as large as may be": Ask(VECTOR, bytes(LIMIT)),
    "id": Ask(VECTOR, GOOD, (("X-Request-ID", "mine"),)),
    "last": Ask(VECTOR, GOOD, (("Connection", "close"),)),
    "last and wrong": Ask(VECTOR, b"{", (("Connection", "Close"),)),
    "kept": Ask(VECTOR, GOOD, (("Connection", "keep-alive"),)),
    "HTTP/1.0": Ask(VECTOR, GOOD, version="1.0"),
}

PROTOCOL = {
    "json": _json(V2, V2_GOOD),
    "json and an id": _json(V2, {"id": "7", **V2_GOOD}),
    "binary": _binary(FEW),
    "binary answer": _binary(FEW, parameters={"binary_data_output": True}),
    "version": _json("/v2/models/versioned/versions/3/infer", V2_GOOD),
    "raw": Ask(V2, MANY[0].tobytes(), (("Inference-Header-Content-Length", "0"),)),
    "trace": _json(V2, {**V2_GOOD, "parameters": {"trace": "on"}}),
    "large json, packed": _json(V2, {"inputs": [json_input("in", MANY)]}, ("Accept-Encoding", "gzip")),
    "large binary, packed": _binary(
        MANY, ("Accept-Encoding", "deflate"), parameters={"binary_data_output": True}
    ),
    "small, not packed": _binary(FEW, ("Accept-Encoding", "gzip")),
    "classes": Ask("/v2/models/digits/infer", b'{"inputs": []}'),
    "fault": _json(
        "/v2/models/fault/infer", {"inputs": [json_input("0", FEW[0, :1])]}, ("X-Request-ID", "f")
    ),
    "priority": _json(V2, {**V2_GOOD, "parameters": {"priority": 1, "timeout": 10_000_000}}),
    "wrong priority": _json(V2, {**V2_GOOD, "parameters": {"priority": "x"}}),
    "broken json": Ask(V2, b"{"),
    "deep json": Ask(V2, b"[" * 50_000),
    "no object": Ask(V2, b"[]"),
    "no text": Ask(V2, b'{"id": "\xff"}'),
    "no inputs": Ask(V2, b"{}"),
    "empty": Ask(V2),
    "empty of a length": _split_at("5", b""),
    "wrong name": _json(V2, {"inputs": [json_input("x", FEW)]}),
    "wrong shape": _json(V2, {"inputs": [json_input("in", ROW)]}),
    "wrong type": _json(V2, {"inputs": [json_input("in", FEW.astype(np.int8))]}),
    "wrong output": _json(V2, {**V2_GOOD, "outputs": [{"name": "x"}]}),
    "too few bytes": _binary(FEW, inputs=[binary_input("in", MANY)]),
    **{f"part of length {length}": _split_at(length) for length in ("1", "2", "3", "x", "-1", "", "9" * 19)},
    "unknown model": _json("/v2/models/none/infer", V2_GOOD),
    "unknown version": _json("/v2/models/versioned/versions/2/infer", V2_GOOD),
    "no name": _json("/v2/models//infer", V2_GOOD),
    "no model": _json("/v2/models/infer", V2_GOOD),
    "no version": _json("/v2/models/versioned/versions//infer", V2_GOOD),
    "more of a path": _json("/v2/models/versioned/other/3/infer", V2_GOOD),
    "slash at the end": _json("/v2/models/same_f32/infer/", V2_GOOD),
    "query": _json(f"{V2}?trace=x", V2_GOOD),
    "too large": Ask(V2, bytes(LIMIT + 1)),
    "last": _json(V2, V2_GOOD, ("Connection", "close")),
    "last and wrong": Ask(V2, b"{", (("Connection", "close"),)),
}
