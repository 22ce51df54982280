"""What goes over the wire: heads, statuses, codings, and what no client of the protocol would send."""

import gzip
import json
import zlib
from typing import Any

import httpx
import numpy as np
import pytest
from httpx import AsyncClient

from tests.service.v2.bodies import binary_body, binary_input, json_input
from tests.service.v2.calls import SAMPLE

HEADER = "Inference-Header-Content-Length"
ONES = np.ones((1, 2), np.float32)
INFER = "/v2/models/same_f32/infer"
OUT_BINARY = {"parameters": {"binary_data_output": True}}


def check_error(response: httpx.Response, status: int, code: str) -> None:
    body = response.json()
    assert (response.status_code, body["code"]) == (status, code), body
    assert isinstance(body["error"], str)
    assert "content-encoding" not in response.headers


def large(rows: int = 1000) -> Any:
    return np.arange(2 * rows, dtype=np.float32).reshape(rows, 2)


@pytest.mark.parametrize("path", ["/v2/health/live", "/v2/health/ready", "/v2/models/pair/ready"])
def test_health_responses_head_and_get(http: httpx.Client, path: str) -> None:
    assert http.get(path).status_code == 200
    response = http.head(path)
    assert (response.status_code, response.content) == (200, b"")


@pytest.mark.parametrize("path", ["/v2", "/v2/"])
def test_server_metadata_is_at_both_paths(http: httpx.Client, path: str) -> None:
    assert http.get(path).json()["name"] == "kuiper-serve"


@pytest.mark.parametrize(
    ("method", "path", "status", "code"),
    [
        ("GET", "/v2/nowhere", 404, "not_found"),
        ("GET", INFER, 405, "method_not_allowed"),
        ("POST", "/v2/health/live", 405, "method_not_allowed"),
        ("GET", "/v2/repository/index", 405, "method_not_allowed"),
        ("POST", "/v2/models/a%2Fb/infer", 404, "not_found"),
        ("POST", "/v2/models/pair/versions/x/infer", 404, "version_not_found"),
        ("POST", INFER, 400, "invalid_json"),
        ("POST", "/v2/repository/models/none/load", 404, "model_not_found"),
    ],
)
def test_paths_and_methods(http: httpx.Client, method: str, path: str, status: int, code: str) -> None:
    check_error(http.request(method, path), status, code)


@pytest.mark.parametrize("content_type", [None, "application/octet-stream", "text/plain", "application/json"])
def test_content_type_does_not_matter(http: httpx.Client, content_type: str | None) -> None:
    body = json.dumps({"inputs": [json_input("in", ONES)]}).encode()
    request = http.build_request("POST", INFER, content=body)
    request.headers.pop("content-type", None)
    if content_type:
        request.headers["content-type"] = content_type
    assert http.send(request).json()["outputs"][0]["data"] == [1, 1]


def test_json_response_is_plain_and_flat(http: httpx.Client) -> None:
    body = {"id": "x", "inputs": [json_input("in", ONES)]}
    response = http.post(INFER, json=body)
    assert response.headers["content-type"] == "application/json"
    assert HEADER not in response.headers
    assert response.json() == {
        "id": "x",
        "model_name": "same_f32",
        "model_version": "1",
        "outputs": [{"name": "out", "datatype": "FP32", "shape": [1, 2], "data": [1, 1]}],
    }


def test_binary_response_says_where_its_json_ends(http: httpx.Client) -> None:
    body, length = binary_body({"inputs": [binary_input("in", ONES)], **OUT_BINARY}, ONES)
    response = http.post(INFER, content=body, headers={HEADER: str(length)})
    assert response.headers["content-type"] == "application/octet-stream"
    end = int(response.headers[HEADER])
    (output,) = json.loads(response.content[:end])["outputs"]
    assert (output["parameters"], "data" in output) == ({"binary_data_size": 8}, False)
    np.testing.assert_array_equal(np.frombuffer(response.content[end:], np.float32), [1, 1])


def test_outputs_own_wish_wins_over_the_requests(http: httpx.Client) -> None:
    inputs = [json_input("a", ONES[0]), json_input("b", ONES[0])]
    outputs = [{"name": "s", "parameters": {"binary_data": False}}, {"name": "t"}]
    response = http.post("/v2/models/pair/infer", json={"inputs": inputs, "outputs": outputs, **OUT_BINARY})
    first, second = json.loads(response.content[: int(response.headers[HEADER])])["outputs"]
    assert first["data"] == [2, 2]
    assert second["parameters"]["binary_data_size"] == 8


@pytest.mark.parametrize("data", [[1, 2, 3, 4], [[1, 2], [3, 4]]])
def test_data_is_flat_or_nested(http: httpx.Client, data: list[Any]) -> None:
    body = {"inputs": [{"name": "in", "shape": [2, 2], "datatype": "FP32", "data": data}]}
    assert http.post(INFER, json=body).json()["outputs"][0]["data"] == [1, 2, 3, 4]


def test_not_a_number_may_stand_bare_or_as_its_name(http: httpx.Client) -> None:
    head = '{"inputs": [{"name": "in", "shape": [1, 2], "datatype": "FP32", "data": '
    for data in ("[NaN, -Infinity]", '["NaN", "-Infinity"]'):
        response = http.post(INFER, content=f"{head}{data}}}]}}")
        assert response.json()["outputs"][0]["data"] == ["NaN", "-Infinity"]
    wide = head.replace("FP32", "INT64")
    check_error(
        http.post("/v2/models/same_i64/infer", content=f"{wide}[NaN, Infinity]}}]}}"), 400, "invalid_tensor"
    )


def test_half_of_a_surrogate_pair_is_not_json_beside_bare_names_either(http: httpx.Client) -> None:
    head = '{"inputs": [{"name": "in", "shape": [1, 2], "datatype": "FP32", "data": [NaN, 1]}], '
    response = http.post(INFER, content=head + '"id": "\\u00e4"}')
    assert response.json()["id"] == "ä"
    for rest in ('"outputs": [{"name": "\\ud800"}]}', '"id": "\\udfff"}', '"\\ud800": 1}'):
        check_error(http.post(INFER, content=head + rest), 400, "invalid_json")
    check_error(http.post("/v2/trace/setting", content='{"\\ud800": NaN}'), 400, "invalid_json")


def test_raw_body_is_the_only_input(http: httpx.Client) -> None:
    response = http.post(INFER, content=ONES.tobytes(), headers={HEADER: "0"})
    end = int(response.headers[HEADER])
    assert json.loads(response.content[:end])["outputs"][0]["shape"] == [1, 2]
    assert response.content[end:] == ONES.tobytes()


def test_raw_body_may_be_an_image(http: httpx.Client) -> None:
    response = http.post("/v2/models/digits/infer", content=SAMPLE.read_bytes(), headers={HEADER: "0"})
    scores = np.frombuffer(response.content[int(response.headers[HEADER]) :], np.float32)
    assert scores.argmax() == 7


@pytest.mark.parametrize(
    ("model", "body", "code"),
    [
        ("same_f32", b"1234567", "wrong_size"),
        ("same_f32", b"", "wrong_size"),
        ("pair", bytes(8), "invalid_request"),
        ("digits", b"x", "wrong_size"),
    ],
)
def test_raw_body_that_does_not_fit(http: httpx.Client, model: str, body: bytes, code: str) -> None:
    check_error(http.post(f"/v2/models/{model}/infer", content=body, headers={HEADER: "0"}), 400, code)


@pytest.mark.parametrize("value", ["-1", "x", "1000", "", "1.0", "9" * 30])
def test_header_that_makes_no_sense(http: httpx.Client, value: str) -> None:
    check_error(http.post(INFER, content=b"{}", headers={HEADER: value}), 400, "invalid_header")


@pytest.mark.parametrize(
    ("accept", "coding"),
    [
        ("gzip", "gzip"),
        ("deflate", "deflate"),
        ("gzip, deflate, br", "gzip"),
        ("br", None),
        ("identity", None),
    ],
)
def test_only_codings_that_are_asked_for_are_applied(
    http: httpx.Client, accept: str, coding: str | None
) -> None:
    body, length = binary_body({"inputs": [binary_input("in", large())], **OUT_BINARY}, large())
    request = http.build_request(
        "POST", INFER, content=body, headers={HEADER: str(length), "Accept-Encoding": accept}
    )
    response = http.send(request, stream=True)
    packed = b"".join(response.iter_raw())
    assert response.headers.get("content-encoding") == coding
    unpack: Any = {"gzip": gzip.decompress, "deflate": zlib.decompress, None: bytes}[coding]
    assert unpack(packed)[int(response.headers[HEADER]) :] == large().tobytes()
    assert response.headers["vary"].lower() == "accept-encoding"


def test_nothing_but_inference_is_compressed(http: httpx.Client) -> None:
    for path in ("/v2", "/v2/models/stats", "/v2/models/digits"):
        assert "content-encoding" not in http.get(path, headers={"Accept-Encoding": "gzip"}).headers
    check_error(
        http.post(INFER, content=b"x" * 5000, headers={"Accept-Encoding": "gzip"}), 400, "invalid_json"
    )


@pytest.mark.parametrize("coding", ["br", "zstd", "gzip, gzip"])
def test_coding_that_is_not_known(http: httpx.Client, coding: str) -> None:
    response = http.post(INFER, content=b"{}", headers={"Content-Encoding": coding})
    check_error(response, 501, "unsupported_encoding")
    assert response.headers["accept-encoding"] == "gzip, deflate"


@pytest.mark.parametrize("coding", ["gzip", "deflate"])
def test_bodies_that_do_not_unpack(http: httpx.Client, coding: str) -> None:
    headers = {"Content-Encoding": coding}
    check_error(http.post(INFER, content=b"{}", headers=headers), 400, "invalid_encoding")
    pack = gzip.compress if coding == "gzip" else zlib.compress
    check_error(http.post(INFER, content=pack(bytes(1_000_000)), headers=headers), 413, "body_too_large")


def test_priority_of_a_large_compressed_body_is_read(http: httpx.Client) -> None:
    array = large(8000)
    body = {"inputs": [json_input("in", array)], "parameters": {"priority": -1}}
    packed = gzip.compress(json.dumps(body).encode())
    check_error(
        http.post(INFER, content=packed, headers={"Content-Encoding": "gzip"}), 400, "invalid_request"
    )
    del body["parameters"]
    packed = gzip.compress(json.dumps(body).encode())
    response = http.post(INFER, content=packed, headers={"Content-Encoding": "gzip"})
    assert response.json()["outputs"][0]["shape"] == [8000, 2]


@pytest.mark.parametrize(
    "body",
    [
        b"[]",
        b"{",
        b"null",
        b"[" * 5000,
        b'{"inputs": {}}',
        b'{"inputs": [3]}',
        b'{"inputs": [], "id": 3}',
        b'{"inputs": [], "parameters": []}',
        b'{"inputs": [], "parameters": {"timeout": -1}}',
        b'{"inputs": [], "parameters": {"timeout": true}}',
        b'{"inputs": [], "parameters": {"priority": 1e99}}',
        b'{"inputs": [], "parameters": {"binary_data_output": 1}}',
        b'{"inputs": [], "outputs": [{}]}',
        b'{"inputs": [{"name": "in", "shape": [1], "datatype": "FP31", "data": [1]}]}',
        b'{"inputs": [{"name": "in", "shape": [1, 2], "datatype": "FP32"}]}',
        b'{"inputs": [{"name": "in", "shape": [1, 2], "datatype": "FP32", "data": [1]}]}',
        b'{"inputs": [{"name": "in", "shape": [1, 2], "datatype": "FP32", "data": [1, "x"]}]}',
        b'{"inputs": [{"name": "in", "shape": [1, 2], "datatype": "FP32", "data": null}]}',
        b'{"inputs": [{"name": "in", "shape": [1, 2], "datatype": "FP32", "data": [1, 1e39]}]}',
        b"\xff\xfe",
    ],
)
def test_bodies_that_make_no_sense(http: httpx.Client, body: bytes) -> None:
    response = http.post(INFER, content=body)
    assert response.status_code == 400, response.text
    assert response.json()["error"]


def test_index_may_leave_out_what_is_not_ready(http: httpx.Client) -> None:
    lines = http.post("/v2/repository/index", json={"ready": True}).json()
    assert {line["state"] for line in lines} == {"READY"}
    assert http.post("/v2/repository/index", json={"ready": 3}).status_code == 400
    assert http.post("/v2/repository/index", content=b"[").status_code == 400


def test_request_id_of_the_head_comes_back(http: httpx.Client) -> None:
    response = http.post(INFER, json={"inputs": [json_input("in", ONES)]}, headers={"X-Request-ID": "mine"})
    assert response.headers["x-request-id"] == "mine"
    assert "id" not in response.json()


@pytest.mark.anyio
async def test_models_are_not_loaded_by_request_unless_that_is_set(client: AsyncClient) -> None:
    for verb in ("load", "unload"):
        check_error(await client.post(f"/v2/repository/models/pair/{verb}"), 403, "model_control_off")
    assert (await client.get("/v2/models/pair/ready")).status_code == 200


@pytest.mark.anyio
async def test_every_v2_response_is_described(client: AsyncClient) -> None:
    paths = (await client.get("/openapi.json")).json()["paths"]
    assert "/v2/models/{name}/versions/{version}/infer" in paths
    operation = paths["/v2/models/{name}/infer"]["post"]
    assert set(operation["requestBody"]["content"]) == {"application/json", "application/octet-stream"}
    assert {"200", "400", "404", "413", "501", "503", "504"} <= set(operation["responses"])
