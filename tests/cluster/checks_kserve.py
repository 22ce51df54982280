"""Every call of KServe's own clients, over HTTP and by gRPC, with the responses that plain HTTP gets."""

import asyncio
import base64
import json
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import grpc
import httpx
import kserve
import numpy as np
import pytest
from kserve.inference_client import InferenceGRPCClient, InferenceRESTClient, RESTConfig
from kserve.protocol.infer_type import RequestedOutput

from engine.dtypes import Array
from tests.golden.digits import pictures, probabilities
from tests.service.server.process import ROOT, SOON, ServerProcess
from tests.service.v2.models import add_v2_models

PAIR = {"a": np.array([1, -2], np.float32), "b": np.array([1, 1], np.float32)}
DTYPES: dict[str, np.dtype[Any]] = {
    "FP16": np.dtype(np.float16),
    "FP32": np.dtype(np.float32),
    "FP64": np.dtype(np.float64),
    "INT8": np.dtype(np.int8),
    "INT16": np.dtype(np.int16),
    "INT32": np.dtype(np.int32),
    "INT64": np.dtype(np.int64),
    "UINT8": np.dtype(np.uint8),
    "BOOL": np.dtype(np.bool_),
}
"""Datatypes that the clients have and models may; BF16 the clients have not."""
OF_DTYPE = {dtype: name for name, dtype in DTYPES.items()}
IMAGE = (ROOT / "models/digits/samples/7.png").read_bytes()
KEY = "key-of-the-checks"
_LISTENING = re.compile(r"gRPC is listening on ([0-9.]+:\d+)")

Output = tuple[str, str, list[int], bytes]
"""Name, datatype, shape and little-endian bytes."""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    models = add_v2_models(tmp_path_factory.mktemp("kserve"))
    flags = ("--grpc-port", "0", "--model-control", "explicit", "--workers", "2", "--no-warm-up")
    with ServerProcess("--models", str(models), *flags) as started:
        yield started


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    models = add_v2_models(tmp_path_factory.mktemp("guarded"))
    flags = ("--models", str(models), "--grpc-port", "0", "--no-warm-up")
    with ServerProcess(*flags, environment={"KUIPER_API_KEYS": KEY}) as started:
        yield started


def by_rest(server: ServerProcess, call: str, *args: Any, **options: Any) -> Any:
    """Return what a call of the client over HTTP returns."""

    async def run() -> Any:
        async with InferenceRESTClient(RESTConfig(protocol="v2", timeout=SOON)) as client:
            return await getattr(client, call)(server.url, *args, **options)

    return asyncio.run(run())


def by_grpc(server: ServerProcess, call: str, *args: Any, **options: Any) -> Any:
    """Return what a call of the client by gRPC returns."""
    address = next(found[1] for line in server.lines if (found := _LISTENING.search(line)))

    async def run() -> Any:
        async with InferenceGRPCClient(address, timeout=SOON) as client:
            return await getattr(client, call)(*args, **options)

    return asyncio.run(run())


def request(
    model: str, arrays: dict[str, Array], binary: bool, outputs: Sequence[str] = (), **options: Any
) -> kserve.InferRequest:
    """Return a request; the clients change it, so that each needs one of its own."""
    inputs = []
    for name, array in arrays.items():
        datatype = "BYTES" if array.dtype == object else OF_DTYPE[array.dtype]
        entry = kserve.InferInput(name, list(array.shape), datatype)
        entry.set_data_from_numpy(array, binary_data=binary)
        inputs.append(entry)
    wanted = [RequestedOutput(name, {"binary_data": binary}) for name in outputs]
    parameters = {"binary_data_output": binary}
    return kserve.InferRequest(model, inputs, request_outputs=wanted, parameters=parameters, **options)


def infer_all(server: ServerProcess, make: Callable[[bool], kserve.InferRequest]) -> list[Any]:
    """Return the responses by both clients, each with binary data and without; twice by gRPC, which remembers forms."""
    responses = []
    for binary in (True, False):
        asked = make(binary)
        if binary or all(
            entry.datatype != "FP16" for entry in asked.inputs
        ):  # in JSON the client has no FP16
            responses.append(by_rest(server, "infer", asked, model_name=asked.model_name))
            responses += [by_grpc(server, "infer", make(binary)) for _ in range(2)]
    return responses


def outputs_of(response: Any) -> list[Output]:
    return [
        (entry.name, entry.datatype, list(entry.shape), entry.as_numpy().tobytes())
        for entry in response.outputs
    ]


def plain(
    server: ServerProcess, model: str, arrays: dict[str, Array], names: Sequence[str] = ()
) -> list[Output]:
    """Return the outputs of a request that no client but HTTP's has made, binary both ways."""
    parts = [array.tobytes() for array in arrays.values()]
    inputs = [
        {
            "name": name,
            "datatype": OF_DTYPE[array.dtype],
            "shape": list(array.shape),
            "parameters": {"binary_data_size": array.nbytes},
        }
        for name, array in arrays.items()
    ]
    document = {
        "inputs": inputs,
        "outputs": [{"name": name} for name in names],
        "parameters": {"binary_data_output": True},
    }
    head = json.dumps(document).encode()
    response = httpx.post(
        f"{server.url}/v2/models/{model}/infer",
        content=b"".join((head, *parts)),
        headers={
            "Content-Type": "application/octet-stream",
            "Inference-Header-Content-Length": str(len(head)),
        },
        timeout=SOON,
    )
    assert response.status_code == 200, response.text
    start = int(response.headers["Inference-Header-Content-Length"])
    found = []
    for entry in json.loads(response.content[:start])["outputs"]:
        end = start + entry["parameters"]["binary_data_size"]
        found.append((entry["name"], entry["datatype"], entry["shape"], response.content[start:end]))
        start = end
    assert start == len(response.content)
    return found


@pytest.mark.parametrize("ask", [by_rest, by_grpc])
def test_health(server: ServerProcess, ask: Callable[..., Any]) -> None:
    assert ask(server, "is_server_live") is True
    assert ask(server, "is_server_ready") is True
    assert ask(server, "is_model_ready", "pair") is True
    assert ask(server, "is_model_ready", "none") is False


@pytest.mark.parametrize("ask", [by_rest, by_grpc])
def test_an_unloaded_model_is_not_ready(server: ServerProcess, ask: Callable[..., Any]) -> None:
    for action, ready in (("unload", False), ("load", True)):
        httpx.post(
            f"{server.url}/v2/repository/models/reloaded/{action}", json={}, timeout=SOON
        ).raise_for_status()
        assert ask(server, "is_model_ready", "reloaded") is ready
        assert ask(server, "is_server_ready") is True


@pytest.mark.parametrize("datatype", DTYPES)
def test_datatypes(server: ServerProcess, datatype: str) -> None:
    dtype = DTYPES[datatype]
    model = "same_bool" if datatype == "BOOL" else f"same_{dtype.kind}{dtype.itemsize * 8}"
    low, high = (np.iinfo(dtype).min, np.iinfo(dtype).max) if dtype.kind in "iu" else (0, 1)
    if dtype.kind == "f":
        low, high = (-np.finfo(dtype).max, np.finfo(dtype).tiny)
    array = np.array([[low, high], [1, 0], [high, low]], dtype)
    wanted = plain(server, model, {"in": array})
    assert wanted == [("out", datatype, [3, 2], array.tobytes())]
    responses = infer_all(server, lambda binary: request(model, {"in": array}, binary))
    assert len(responses) == (3 if datatype == "FP16" else 6)
    for response in responses:
        assert outputs_of(response) == wanted


def test_pictures_are_read_as_pytorch_reads_them(server: ServerProcess) -> None:
    wanted = plain(server, "digits", {"0": pictures()})
    for response in infer_all(server, lambda binary: request("digits", {"0": pictures()}, binary)):
        assert outputs_of(response) == wanted
        found = response.outputs[0].as_numpy()
        np.testing.assert_allclose(found, probabilities(), rtol=1e-4, atol=1e-6)


def test_encoded_images(server: ServerProcess) -> None:
    def encoded(data: list[Any]) -> kserve.InferRequest:
        return kserve.InferRequest("digits", [kserve.InferInput("0", [len(data)], "BYTES", data)])

    images = np.array([IMAGE, IMAGE], object)
    texts = [base64.b64encode(IMAGE).decode()] * 2  # as JSON has them
    responses = [
        by_rest(server, "infer", request("digits", {"0": images}, True), model_name="digits"),
        by_rest(server, "infer", encoded(texts), model_name="digits"),
        by_grpc(server, "infer", request("digits", {"0": images}, True)),
        by_grpc(server, "infer", encoded([IMAGE, IMAGE])),
    ]
    response = httpx.post(
        f"{server.url}/v2/models/digits/infer",
        json={"inputs": [{"name": "0", "shape": [2], "datatype": "BYTES", "data": texts}]},
        timeout=SOON,
    ).json()
    (output,) = response["outputs"]
    wanted = np.array(output["data"], np.float32).reshape(2, 10)
    assert wanted.argmax(axis=1).tolist() == [7, 7]
    for found in responses:
        assert outputs_of(found) == [("31", "FP32", [2, 10], wanted.tobytes())]


SWAPPED = {name: PAIR[name] for name in ("b", "a")}


@pytest.mark.parametrize(
    ("arrays", "names"), [(PAIR, ()), (SWAPPED, ()), (SWAPPED, ("t", "s")), (PAIR, ("t",))]
)
def test_inputs_and_outputs_by_their_names(
    server: ServerProcess, arrays: dict[str, Array], names: tuple[str, ...]
) -> None:
    wanted = plain(server, "pair", arrays, names)
    assert [name for name, *_ in wanted] == list(names or ("s", "t"))
    sums = {"s": np.array([2, -1], np.float32), "t": np.array([2, 0], np.float32)}
    assert all(data == sums[name].tobytes() for name, *_, data in wanted)
    for response in infer_all(
        server, lambda binary: request("pair", arrays, binary, names, request_id="mine")
    ):
        assert outputs_of(response) == wanted
        assert (response.id, response.model_name) == ("mine", "pair")


def test_classes(server: ServerProcess) -> None:
    for ask, options in ((by_rest, {"model_name": "digits"}), (by_grpc, {})):
        asked = request("digits", {"0": pictures()}, True)
        asked.request_outputs = [RequestedOutput("31", {"classification": 2, "binary_data": True})]
        (output,) = ask(server, "infer", asked, **options).outputs
        best = [
            text.decode() if isinstance(text, bytes) else text for text in output.as_numpy()[:, 0].tolist()
        ]
        assert (output.datatype, list(output.shape)) == ("BYTES", [len(probabilities()), 2])
        found = [int(text.split(":")[1]) for text in best]
        assert found == probabilities().argmax(axis=1).tolist()


def test_versions_by_grpc(server: ServerProcess) -> None:
    ones = {"in": np.ones((1, 2), np.float32)}
    for version, factor in (("1", 1), ("3", 3), (None, 3)):
        response = by_grpc(server, "infer", request("versioned", ones, True, model_version=version))
        assert response.model_version == (version or "3")
        assert outputs_of(response) == [("out", "FP32", [1, 2], (ones["in"] * factor).tobytes())]
        over_http = f"versioned/versions/{version}" if version else "versioned"
        assert outputs_of(response) == plain(server, over_http, ones)


def test_a_request_that_is_json_already_and_its_headers(server: ServerProcess) -> None:
    entries = [
        {"name": name, "shape": [2], "datatype": "FP32", "data": array.tolist()}
        for name, array in PAIR.items()
    ]
    reported: dict[str, str] = {}
    headers = {"X-Request-ID": "sent-by-me"}
    response = by_rest(
        server, "infer", {"inputs": entries}, model_name="pair", headers=headers, response_headers=reported
    )
    assert reported["x-request-id"] == "sent-by-me"
    assert outputs_of(response) == plain(server, "pair", PAIR)


FLOATS = {"in": np.ones((1, 2), np.float32)}
REFUSED = {
    "no such model": ("none", FLOATS, (), 404, "NOT_FOUND"),
    "no such input": ("same_f32", {"x": FLOATS["in"]}, (), 400, "INVALID_ARGUMENT"),
    "no such output": ("same_f32", FLOATS, ("x",), 400, "INVALID_ARGUMENT"),
    "an input is missing": ("pair", {"a": PAIR["a"]}, (), 400, "INVALID_ARGUMENT"),
    "another datatype": ("same_i64", FLOATS, (), 400, "INVALID_ARGUMENT"),
    "another shape": ("same_f32", {"in": np.ones((1, 3), np.float32)}, (), 400, "INVALID_ARGUMENT"),
    "no images": ("same_f32", {"in": np.array([b"x"], object)}, (), 400, "INVALID_ARGUMENT"),
}


@pytest.mark.parametrize("binary", [True, False])
@pytest.mark.parametrize("case", REFUSED)
def test_refusals_say_why(server: ServerProcess, case: str, binary: bool) -> None:
    model, arrays, names, status, code = REFUSED[case]
    with pytest.raises(httpx.HTTPStatusError) as over_http:
        by_rest(server, "infer", request(model, arrays, binary, names), model_name=model)
    with pytest.raises(grpc.aio.AioRpcError) as refused:
        by_grpc(server, "infer", request(model, arrays, binary, names))
    assert over_http.value.response.status_code == status
    assert refused.value.code().name == code
    sentence = over_http.value.response.json()["error"]
    assert sentence in str(over_http.value)
    assert refused.value.details() == sentence


def test_a_deadline_by_grpc(server: ServerProcess) -> None:
    blocked = request("blocking", {"0": np.array([9], np.float32)}, True)
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        by_grpc(server, "infer", blocked, timeout=0.5)
    assert caught.value.code() is grpc.StatusCode.DEADLINE_EXCEEDED
    server.gate.give()
    assert by_grpc(server, "is_server_ready") is True


def test_keys_are_headers(guarded: ServerProcess) -> None:
    wanted = [("out", "FP32", [1, 2], FLOATS["in"].tobytes())]
    for given in ({}, {"authorization": "Bearer no-key-of-the-checks"}):
        with pytest.raises(httpx.HTTPStatusError, match="401"):
            by_rest(
                guarded,
                "infer",
                request("same_f32", FLOATS, True),
                model_name="same_f32",
                headers=dict(given),
            )
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            by_grpc(guarded, "infer", request("same_f32", FLOATS, True), headers=tuple(given.items()))
        assert caught.value.code() is grpc.StatusCode.UNAUTHENTICATED
    known = {"authorization": f"Bearer {KEY}"}
    over_http = by_rest(
        guarded, "infer", request("same_f32", FLOATS, True), model_name="same_f32", headers=dict(known)
    )
    answered = by_grpc(guarded, "infer", request("same_f32", FLOATS, True), headers=tuple(known.items()))
    assert outputs_of(over_http) == outputs_of(answered) == wanted
    assert by_rest(guarded, "is_model_ready", "same_f32", headers=dict(known)) is True
    assert by_grpc(guarded, "is_model_ready", "same_f32", headers=tuple(known.items())) is True
    assert by_rest(guarded, "is_server_live") is by_grpc(guarded, "is_server_live") is True  # for probes
