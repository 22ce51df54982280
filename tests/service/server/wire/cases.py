"""Requests of every kind, good and bad, and how each is answered."""

import base64
import json
from typing import NamedTuple

import numpy as np

from tests.service.codec.payloads import npy, npz
from tests.service.server.process import ROOT
from tests.service.server.wire.wire import Ask
from tests.service.v2.bodies import binary_body, binary_input, json_input

LIMIT = 200_000
"""Most bytes of a body."""
SAMPLE = (ROOT / "models/digits/samples/7.png").read_bytes()
JSON = ("Content-Type", "application/json")
VECTOR, DIGITS = "/infer?model=vector", "/infer?model=digits"
V2, V2_DIGITS = "/v2/models/same_f32/infer", "/v2/models/digits/infer"
ROW = np.array([[-1, 0, 1]], np.float32)
FEW, MANY = np.array([[1, -2]], np.float32), np.ones((5000, 2), np.float32)
DIGIT = np.zeros((1, 1, 28, 28), np.float32)
CLASSES = [{"name": "31", "parameters": {"classification": 3}}]
IN_BINARY = {"binary_data_output": True}
GOOD = json.dumps({"inputs": [{"data": ROW.tolist()}]}).encode()


class Case(NamedTuple):
    """A request and what is expected of its answer.

    Attributes:
        request: what is sent.
        status: of the answer.
        code: the error's `code`; None where the answer is no error.
    """

    request: Ask
    status: int = 200
    code: str | None = None


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
    "json": Case(_json(VECTOR, {"inputs": [{"data": ROW.tolist()}]})),
    "json without its type": Case(Ask(VECTOR, GOOD)),
    "npy": Case(_raw("application/x-npy", npy(ROW))),
    "npz": Case(_raw("application/x-npz", npz(left=FEW[0], right=FEW[0]), "/infer?model=pair")),
    "csv": Case(_raw("text/csv", b"-1,0.5,2\n1,1,1\n")),
    "picture": Case(_raw("image/png", SAMPLE, DIGITS)),
    "picture of no type": Case(Ask(DIGITS, SAMPLE)),
    "form": Case(_raw("multipart/form-data; boundary=x", FORM, DIGITS)),
    "base64": Case(_json(DIGITS, {"image": base64.b64encode(SAMPLE).decode()})),
    "version": Case(Ask("/infer?model=versioned&version=1", npy(FEW))),
    "fault": Case(
        _json("/infer?model=fault", {"inputs": [{"data": [1]}]}, ("X-Request-ID", "f1")),
        500,
        "internal_error",
    ),
    "trace off": Case(Ask(f"{VECTOR}&trace=off", GOOD)),
    "trace on": Case(Ask(f"{VECTOR}&trace=on", GOOD)),
    "trace stats": Case(Ask(f"{VECTOR}&trace=stats", GOOD)),
    "trace of no level": Case(Ask(f"{VECTOR}&trace=statistics", GOOD), 422, "invalid_parameter"),
    "capture": Case(Ask(f"{VECTOR}&capture=0,1", GOOD)),
    "capture twice": Case(Ask(f"{VECTOR}&capture=0&capture=1", GOOD)),
    "capture what is not": Case(Ask(f"{VECTOR}&capture=nothing", GOOD), 422, "unknown_operand"),
    "capture of a batch": Case(Ask(f"{VECTOR}&trace=stats&capture=0", npy(np.ones((3, 3), np.float32)))),
    "top_k": Case(Ask(f"{DIGITS}&top_k=2", SAMPLE)),
    "wrong top_k": Case(Ask(f"{DIGITS}&top_k=-2", SAMPLE), 422, "invalid_parameter"),
    "unknown option": Case(Ask(f"{VECTOR}&x=1", GOOD), 422, "invalid_parameter"),
    "model in escapes": Case(Ask("/infer?model=v%65ctor", GOOD)),
    "npz answer": Case(Ask(VECTOR, GOOD, (("Accept", "application/x-npz"),))),
    "no acceptable answer": Case(Ask(VECTOR, GOOD, (("Accept", "text/html"),)), 406, "not_acceptable"),
    "empty accept": Case(Ask(VECTOR, GOOD, (("Accept", ""),))),
    "empty type": Case(Ask(VECTOR, GOOD, (("Content-Type", ""),))),
    "wrong type": Case(_raw("application/pdf", b"%PDF-1.7"), 415, "unsupported_media_type"),
    "type that is none": Case(_raw("\xe9;;=", GOOD)),
    "broken json": Case(_raw("application/json", b"{"), 400, "invalid_json"),
    "deep json": Case(_raw("application/json", b"[" * 100_000), 400, "invalid_json"),
    "other shape than exported": Case(_json(VECTOR, {"inputs": [{"data": [[1, 2]]}]})),
    "wrong rank": Case(_json(DIGITS, {"inputs": [{"data": [[1, 2]]}]}), 422, "wrong_rank"),
    "shape that a layer refuses": Case(
        _json(DIGITS, {"inputs": [{"data": DIGIT[..., 1:].tolist()}]}), 422, "layer_failed"
    ),
    "ragged": Case(_json(VECTOR, {"inputs": [{"data": [[1, 2], [3]]}]}), 400, "invalid_tensor"),
    "wrong name": Case(
        _json(VECTOR, {"inputs": [{"name": "x", "data": ROW.tolist()}]}), 422, "unknown_input"
    ),
    "broken picture": Case(_raw("image/png", b"\x89PNG\r\n\x1a\nno more", DIGITS), 400, "invalid_image"),
    "empty": Case(Ask(VECTOR), 400, "empty_body"),
    "no model": Case(Ask("/infer", GOOD), 422, "model_required"),
    "unknown model": Case(Ask("/infer?model=none", GOOD), 404, "model_not_found"),
    "unknown version": Case(Ask("/infer?model=versioned&version=2", npy(FEW)), 404, "version_not_found"),
    "too large": Case(Ask(VECTOR, bytes(LIMIT + 1)), 413, "body_too_large"),
    "as large as may be": Case(Ask(VECTOR, bytes(LIMIT)), 415, "unsupported_media_type"),
    "id": Case(Ask(VECTOR, GOOD, (("X-Request-ID", "mine"),))),
    "last": Case(Ask(VECTOR, GOOD, (("Connection", "close"),))),
    "last and wrong": Case(Ask(VECTOR, b"{", (("Connection", "Close"),)), 400, "invalid_json"),
    "kept": Case(Ask(VECTOR, GOOD, (("Connection", "keep-alive"),))),
    "HTTP/1.0": Case(Ask(VECTOR, GOOD, version="1.0")),
}

PROTOCOL = {
    "json": Case(_json(V2, V2_GOOD)),
    "json and an id": Case(_json(V2, {"id": "7", **V2_GOOD})),
    "binary": Case(_binary(FEW)),
    "binary answer": Case(_binary(FEW, parameters=IN_BINARY)),
    "version": Case(_json("/v2/models/versioned/versions/3/infer", V2_GOOD)),
    "raw": Case(Ask(V2, MANY[0].tobytes(), (("Inference-Header-Content-Length", "0"),))),
    "trace": Case(_json(V2, {**V2_GOOD, "parameters": {"trace": "on"}})),
    "large json, packed": Case(_json(V2, {"inputs": [json_input("in", MANY)]}, ("Accept-Encoding", "gzip"))),
    "large binary, packed": Case(_binary(MANY, ("Accept-Encoding", "deflate"), parameters=IN_BINARY)),
    "small, not packed": Case(_binary(FEW, ("Accept-Encoding", "gzip"))),
    "classes": Case(_json(V2_DIGITS, {"inputs": [json_input("pnnx_input_0", DIGIT)], "outputs": CLASSES})),
    "fault": Case(
        _json("/v2/models/fault/infer", {"inputs": [json_input("0", FEW[0, :1])]}, ("X-Request-ID", "f")),
        500,
        "internal_error",
    ),
    "priority": Case(_json(V2, {**V2_GOOD, "parameters": {"priority": 1, "timeout": 10_000_000}})),
    "wrong priority": Case(_json(V2, {**V2_GOOD, "parameters": {"priority": "x"}}), 400, "invalid_request"),
    "broken json": Case(Ask(V2, b"{"), 400, "invalid_json"),
    "deep json": Case(Ask(V2, b"[" * 50_000), 400, "invalid_json"),
    "no object": Case(Ask(V2, b"[]"), 400, "invalid_json"),
    "no text": Case(Ask(V2, b'{"id": "\xff"}'), 400, "invalid_json"),
    "no inputs": Case(Ask(V2, b"{}"), 400, "invalid_request"),
    "missing input": Case(Ask(V2_DIGITS, b'{"inputs": []}'), 400, "missing_input"),
    "empty": Case(Ask(V2), 400, "invalid_json"),
    "empty of a length": Case(_split_at("5", b""), 400, "invalid_header"),
    "wrong name": Case(_json(V2, {"inputs": [json_input("x", FEW)]}), 400, "unknown_input"),
    "wrong shape": Case(_json(V2, {"inputs": [json_input("in", ROW)]}), 400, "wrong_shape"),
    "wrong type": Case(_json(V2, {"inputs": [json_input("in", FEW.astype(np.int8))]}), 400, "wrong_datatype"),
    "wrong output": Case(_json(V2, {**V2_GOOD, "outputs": [{"name": "x"}]}), 400, "unknown_output"),
    "too few bytes": Case(_binary(FEW, inputs=[binary_input("in", MANY)]), 400, "wrong_size"),
    "part of an incomplete object": Case(_split_at("1"), 400, "invalid_json"),
    "part of no inputs": Case(_split_at("2"), 400, "invalid_request"),
    **{
        f"part of length {length}": Case(_split_at(length), 400, "invalid_header")
        for length in ("3", "x", "-1", "", "9" * 19)
    },
    "unknown model": Case(_json("/v2/models/none/infer", V2_GOOD), 404, "model_not_found"),
    "unknown version": Case(
        _json("/v2/models/versioned/versions/2/infer", V2_GOOD), 404, "version_not_found"
    ),
    "no name": Case(_json("/v2/models//infer", V2_GOOD), 404, "not_found"),
    "no model": Case(_json("/v2/models/infer", V2_GOOD), 405, "method_not_allowed"),
    "no version": Case(_json("/v2/models/versioned/versions//infer", V2_GOOD), 404, "not_found"),
    "more of a path": Case(_json("/v2/models/versioned/other/3/infer", V2_GOOD), 404, "not_found"),
    "slash at the end": Case(_json("/v2/models/same_f32/infer/", V2_GOOD), 404, "not_found"),
    "query": Case(_json(f"{V2}?trace=x", V2_GOOD)),
    "too large": Case(Ask(V2, bytes(LIMIT + 1)), 413, "body_too_large"),
    "last": Case(_json(V2, V2_GOOD, ("Connection", "close"))),
    "last and wrong": Case(Ask(V2, b"{", (("Connection", "close"),)), 400, "invalid_json"),
}
