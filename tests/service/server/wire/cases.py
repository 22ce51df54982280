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
"""Maximum bytes of a body."""
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


class Exchange(NamedTuple):
    """A request and what is expected of its response.

    Attributes:
        request: what is sent.
        status: of the response.
        code: the error's `code`; None where the response is no error.
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
    "json": Exchange(_json(VECTOR, {"inputs": [{"data": ROW.tolist()}]})),
    "json without its type": Exchange(Ask(VECTOR, GOOD)),
    "npy": Exchange(_raw("application/x-npy", npy(ROW))),
    "npz": Exchange(_raw("application/x-npz", npz(left=FEW[0], right=FEW[0]), "/infer?model=pair")),
    "csv": Exchange(_raw("text/csv", b"-1,0.5,2\n1,1,1\n")),
    "picture": Exchange(_raw("image/png", SAMPLE, DIGITS)),
    "picture of no type": Exchange(Ask(DIGITS, SAMPLE)),
    "form": Exchange(_raw("multipart/form-data; boundary=x", FORM, DIGITS)),
    "base64": Exchange(_json(DIGITS, {"image": base64.b64encode(SAMPLE).decode()})),
    "version": Exchange(Ask("/infer?model=versioned&version=1", npy(FEW))),
    "fault": Exchange(
        _json("/infer?model=fault", {"inputs": [{"data": [1]}]}, ("X-Request-ID", "f1")),
        500,
        "internal_error",
    ),
    "trace off": Exchange(Ask(f"{VECTOR}&trace=off", GOOD)),
    "trace on": Exchange(Ask(f"{VECTOR}&trace=on", GOOD)),
    "trace stats": Exchange(Ask(f"{VECTOR}&trace=stats", GOOD)),
    "trace of no level": Exchange(Ask(f"{VECTOR}&trace=statistics", GOOD), 422, "invalid_parameter"),
    "capture": Exchange(Ask(f"{VECTOR}&capture=0,1", GOOD)),
    "capture twice": Exchange(Ask(f"{VECTOR}&capture=0&capture=1", GOOD)),
    "capture what is not": Exchange(Ask(f"{VECTOR}&capture=nothing", GOOD), 422, "unknown_operand"),
    "capture of a batch": Exchange(Ask(f"{VECTOR}&trace=stats&capture=0", npy(np.ones((3, 3), np.float32)))),
    "top_k": Exchange(Ask(f"{DIGITS}&top_k=2", SAMPLE)),
    "wrong top_k": Exchange(Ask(f"{DIGITS}&top_k=-2", SAMPLE), 422, "invalid_parameter"),
    "unknown option": Exchange(Ask(f"{VECTOR}&x=1", GOOD), 422, "invalid_parameter"),
    "model in escapes": Exchange(Ask("/infer?model=v%65ctor", GOOD)),
    "npz response": Exchange(Ask(VECTOR, GOOD, (("Accept", "application/x-npz"),))),
    "no acceptable response": Exchange(Ask(VECTOR, GOOD, (("Accept", "text/html"),)), 406, "not_acceptable"),
    "empty accept": Exchange(Ask(VECTOR, GOOD, (("Accept", ""),))),
    "empty type": Exchange(Ask(VECTOR, GOOD, (("Content-Type", ""),))),
    "wrong type": Exchange(_raw("application/pdf", b"%PDF-1.7"), 415, "unsupported_media_type"),
    "type that is none": Exchange(_raw("\xe9;;=", GOOD)),
    "broken json": Exchange(_raw("application/json", b"{"), 400, "invalid_json"),
    "deep json": Exchange(_raw("application/json", b"[" * 100_000), 400, "invalid_json"),
    "other shape than exported": Exchange(_json(VECTOR, {"inputs": [{"data": [[1, 2]]}]})),
    "wrong rank": Exchange(_json(DIGITS, {"inputs": [{"data": [[1, 2]]}]}), 422, "wrong_rank"),
    "shape that a layer refuses": Exchange(
        _json(DIGITS, {"inputs": [{"data": DIGIT[..., 1:].tolist()}]}), 422, "layer_failed"
    ),
    "ragged": Exchange(_json(VECTOR, {"inputs": [{"data": [[1, 2], [3]]}]}), 400, "invalid_tensor"),
    "wrong name": Exchange(
        _json(VECTOR, {"inputs": [{"name": "x", "data": ROW.tolist()}]}), 422, "unknown_input"
    ),
    "broken picture": Exchange(_raw("image/png", b"\x89PNG\r\n\x1a\nno more", DIGITS), 400, "invalid_image"),
    "empty": Exchange(Ask(VECTOR), 400, "empty_body"),
    "no model": Exchange(Ask("/infer", GOOD), 422, "model_required"),
    "unknown model": Exchange(Ask("/infer?model=none", GOOD), 404, "model_not_found"),
    "unknown version": Exchange(Ask("/infer?model=versioned&version=2", npy(FEW)), 404, "version_not_found"),
    "too large": Exchange(Ask(VECTOR, bytes(LIMIT + 1)), 413, "body_too_large"),
    "as large as may be": Exchange(Ask(VECTOR, bytes(LIMIT)), 415, "unsupported_media_type"),
    "id": Exchange(Ask(VECTOR, GOOD, (("X-Request-ID", "mine"),))),
    "last": Exchange(Ask(VECTOR, GOOD, (("Connection", "close"),))),
    "last and wrong": Exchange(Ask(VECTOR, b"{", (("Connection", "Close"),)), 400, "invalid_json"),
    "kept": Exchange(Ask(VECTOR, GOOD, (("Connection", "keep-alive"),))),
    "HTTP/1.0": Exchange(Ask(VECTOR, GOOD, version="1.0")),
}

PROTOCOL = {
    "json": Exchange(_json(V2, V2_GOOD)),
    "json and an id": Exchange(_json(V2, {"id": "7", **V2_GOOD})),
    "binary": Exchange(_binary(FEW)),
    "binary response": Exchange(_binary(FEW, parameters=IN_BINARY)),
    "version": Exchange(_json("/v2/models/versioned/versions/3/infer", V2_GOOD)),
    "raw": Exchange(Ask(V2, MANY[0].tobytes(), (("Inference-Header-Content-Length", "0"),))),
    "trace": Exchange(_json(V2, {**V2_GOOD, "parameters": {"trace": "on"}})),
    "large json, packed": Exchange(
        _json(V2, {"inputs": [json_input("in", MANY)]}, ("Accept-Encoding", "gzip"))
    ),
    "large binary, packed": Exchange(_binary(MANY, ("Accept-Encoding", "deflate"), parameters=IN_BINARY)),
    "small, not packed": Exchange(_binary(FEW, ("Accept-Encoding", "gzip"))),
    "classes": Exchange(
        _json(V2_DIGITS, {"inputs": [json_input("pnnx_input_0", DIGIT)], "outputs": CLASSES})
    ),
    "fault": Exchange(
        _json("/v2/models/fault/infer", {"inputs": [json_input("0", FEW[0, :1])]}, ("X-Request-ID", "f")),
        500,
        "internal_error",
    ),
    "priority": Exchange(_json(V2, {**V2_GOOD, "parameters": {"priority": 1, "timeout": 10_000_000}})),
    "wrong priority": Exchange(
        _json(V2, {**V2_GOOD, "parameters": {"priority": "x"}}), 400, "invalid_request"
    ),
    "broken json": Exchange(Ask(V2, b"{"), 400, "invalid_json"),
    "deep json": Exchange(Ask(V2, b"[" * 50_000), 400, "invalid_json"),
    "no object": Exchange(Ask(V2, b"[]"), 400, "invalid_json"),
    "no text": Exchange(Ask(V2, b'{"id": "\xff"}'), 400, "invalid_json"),
    "no inputs": Exchange(Ask(V2, b"{}"), 400, "invalid_request"),
    "missing input": Exchange(Ask(V2_DIGITS, b'{"inputs": []}'), 400, "missing_input"),
    "empty": Exchange(Ask(V2), 400, "invalid_json"),
    "empty of a length": Exchange(_split_at("5", b""), 400, "invalid_header"),
    "wrong name": Exchange(_json(V2, {"inputs": [json_input("x", FEW)]}), 400, "unknown_input"),
    "wrong shape": Exchange(_json(V2, {"inputs": [json_input("in", ROW)]}), 400, "wrong_shape"),
    "wrong type": Exchange(
        _json(V2, {"inputs": [json_input("in", FEW.astype(np.int8))]}), 400, "wrong_datatype"
    ),
    "wrong output": Exchange(_json(V2, {**V2_GOOD, "outputs": [{"name": "x"}]}), 400, "unknown_output"),
    "too few bytes": Exchange(_binary(FEW, inputs=[binary_input("in", MANY)]), 400, "wrong_size"),
    "part of an incomplete object": Exchange(_split_at("1"), 400, "invalid_json"),
    "part of no inputs": Exchange(_split_at("2"), 400, "invalid_request"),
    **{
        f"part of length {length}": Exchange(_split_at(length), 400, "invalid_header")
        for length in ("3", "x", "-1", "", "9" * 19)
    },
    "unknown model": Exchange(_json("/v2/models/none/infer", V2_GOOD), 404, "model_not_found"),
    "unknown version": Exchange(
        _json("/v2/models/versioned/versions/2/infer", V2_GOOD), 404, "version_not_found"
    ),
    "no name": Exchange(_json("/v2/models//infer", V2_GOOD), 404, "not_found"),
    "no model": Exchange(_json("/v2/models/infer", V2_GOOD), 405, "method_not_allowed"),
    "no version": Exchange(_json("/v2/models/versioned/versions//infer", V2_GOOD), 404, "not_found"),
    "more of a path": Exchange(_json("/v2/models/versioned/other/3/infer", V2_GOOD), 404, "not_found"),
    "slash at the end": Exchange(_json("/v2/models/same_f32/infer/", V2_GOOD), 404, "not_found"),
    "query": Exchange(_json(f"{V2}?trace=x", V2_GOOD)),
    "too large": Exchange(Ask(V2, bytes(LIMIT + 1)), 413, "body_too_large"),
    "last": Exchange(_json(V2, V2_GOOD, ("Connection", "close"))),
    "last and wrong": Exchange(Ask(V2, b"{", (("Connection", "close"),)), 400, "invalid_json"),
}
