"""Every call of the real client."""

import base64
import json
from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np
import pytest
import tritonclient.http as triton
from tritonclient.utils import InferenceServerException

from service.version import kuiper_version
from tests.cases import check_each
from tests.service.v2.calls import NUMPY, PAIR, SAMPLE, output, pair, refusal, tensor
from tests.service.v2.models import DTYPES


@pytest.fixture
def client(address: str) -> Iterator[Any]:
    created = triton.InferenceServerClient(address, concurrency=2)
    yield created
    created.close()


def test_health(client: Any) -> None:
    assert client.is_server_live()
    assert client.is_server_ready()
    assert client.is_model_ready("pair")
    assert client.is_model_ready("pair", "1")
    assert not client.is_model_ready("pair", "2")
    assert not client.is_model_ready("none")


def test_server_metadata(client: Any) -> None:
    metadata = client.get_server_metadata()
    assert (metadata["name"], metadata["version"]) == ("kuiper-serve", kuiper_version())
    assert {"binary_tensor_data", "model_repository", "statistics", "trace"} <= set(metadata["extensions"])


@pytest.mark.parametrize("version", ["", "1"])
def test_model_metadata(client: Any, version: str) -> None:
    assert client.get_model_metadata("pair", version) == {
        "name": "pair",
        "versions": ["1"],
        "platform": "kuiper_pnnx",
        "inputs": [{"name": name, "datatype": "FP32", "shape": [2]} for name in "ab"],
        "outputs": [
            {"name": "s", "datatype": "FP32", "shape": [2]},
            {"name": "t", "datatype": "FP32", "shape": [2]},
        ],
    }


def test_dynamic_dimensions_and_images_are_reported(client: Any) -> None:
    (digits,) = client.get_model_metadata("digits")["inputs"]
    assert (digits["datatype"], digits["shape"]) == ("FP32", [-1, 1, 28, 28])
    assert digits["parameters"]["image"]["datatype"] == "BYTES"
    assert digits["parameters"]["image"]["shape"] == [-1]
    (digit,) = client.get_model_metadata("digit")["inputs"]
    assert digit["parameters"]["image"]["shape"] == [1]
    complex_pairs = client.get_model_metadata("same_c64")["inputs"][0]
    assert (complex_pairs["datatype"], complex_pairs["shape"]) == ("FP32", [-1, 2, 2])


@pytest.mark.parametrize("version", ["", "1"])
def test_model_config(client: Any, version: str) -> None:
    config = client.get_model_config("same_i64", version)
    assert (config["name"], config["max_batch_size"]) == ("same_i64", 0)
    assert config["input"] == [{"name": "in", "data_type": "TYPE_INT64", "dims": [-1, 2]}]
    assert config["output"] == [{"name": "out", "data_type": "TYPE_INT64", "dims": [-1, 2]}]
    assert config["instance_group"][0]["count"] == 2


def test_versions(client: Any) -> None:
    assert client.get_model_metadata("versioned")["versions"] == ["1", "3"]
    ones = np.ones((1, 2), np.float32)
    for version, expected in (("", 3), ("1", 1), ("3", 3)):
        response = client.infer("versioned", [tensor("in", ones)], model_version=version)
        np.testing.assert_array_equal(response.as_numpy("out"), ones * expected)
        assert response.get_response()["model_version"] == (version or "3")
    assert refusal(client, "versioned", [tensor("in", ones)], model_version="2")[0] == "404"


def test_statistics(client: Any) -> None:
    before = client.get_inference_statistics("twice", "1")["model_stats"][0]
    client.infer("twice", [tensor("in", np.ones((1, 2), np.float32))])
    refusal(client, "twice", [tensor("in", np.ones((1, 3), np.float32))])
    (after,) = client.get_inference_statistics("twice")["model_stats"]
    assert (after["name"], after["version"]) == ("twice", "1")
    assert after["inference_count"] - before["inference_count"] == 1
    for name, count in (("success", 1), ("fail", 1), ("queue", 1), ("compute_infer", 1), ("cache_hit", 0)):
        assert after["inference_stats"][name]["count"] - before["inference_stats"][name]["count"] == count
    assert after["last_inference"] > 1_700_000_000_000
    assert after["batch_stats"][0]["batch_size"] == 1
    every = client.get_inference_statistics()["model_stats"]
    assert {"twice", "pair", "digits"} <= {model["name"] for model in every}


def test_repository_index(client: Any) -> None:
    index = client.get_model_repository_index()
    assert {"name": "pair", "version": "1", "state": "READY", "reason": ""} in index
    assert [line["version"] for line in index if line["name"] == "versioned"] == ["1", "3"]


def test_load_and_unload(client: Any) -> None:
    ones = tensor("in", np.ones((1, 2), np.float32))
    client.unload_model("reloaded")
    assert not client.is_model_ready("reloaded")
    assert refusal(client, "reloaded", [ones])[0] == "503"
    assert [line["state"] for line in client.get_model_repository_index() if line["name"] == "reloaded"] == [
        "UNAVAILABLE"
    ]
    client.load_model("reloaded")
    assert client.is_model_ready("reloaded")
    client.load_model("reloaded", config=json.dumps({"max_batch_size": 4}))
    config = client.get_model_config("reloaded")
    assert config["max_batch_size"] == 4
    assert config["input"][0]["dims"] == [2]
    assert config["dynamic_batching"]["max_queue_delay_microseconds"] >= 0
    np.testing.assert_array_equal(client.infer("reloaded", [ones]).as_numpy("out"), np.ones((1, 2)))
    client.load_model("reloaded")


def test_batched_model_returns_each_request_with_its_own_rows(client: Any) -> None:
    batching = {"max_batch_size": 8, "dynamic_batching": {"max_queue_delay_microseconds": 50_000}}
    start = client.get_model_config("digits")
    client.load_model("digits", config=json.dumps(batching))
    config = client.get_model_config("digits")
    assert (config["max_batch_size"], config["input"][0]["dims"]) == (8, [1, 28, 28])
    assert config["dynamic_batching"]["max_queue_delay_microseconds"] == 50_000
    assert client.get_model_metadata("digits")["inputs"][0]["shape"] == [-1, 1, 28, 28]
    paths = [SAMPLE.with_name(f"{digit}.png") for digit in range(4)]
    inputs = [
        [tensor("0", np.array([path.read_bytes()] * (1 + digit % 2), object))]
        for digit, path in enumerate(paths)
    ]
    waiting = [client.async_infer("digits", one) for one in inputs]
    for digit, request in enumerate(waiting):
        scores = request.get_result().as_numpy("31")
        assert scores.argmax(axis=1).tolist() == [digit] * (1 + digit % 2)
    client.load_model("digits")
    assert client.get_model_config("digits") == start


@pytest.mark.parametrize(
    ("call", "status"),
    [
        (lambda client: client.load_model("none"), "404"),
        (lambda client: client.unload_model("none"), "404"),
        (lambda client: client.load_model("pair", config="{"), "400"),
        (lambda client: client.load_model("pair", files={"file:1/model.param": b"x"}), "400"),
        (lambda client: client.get_model_metadata("none"), "404"),
        (lambda client: client.get_model_metadata("pair", "7"), "404"),
        (lambda client: client.get_model_metadata("a/b"), "404"),
        (lambda client: client.get_model_config("none"), "404"),
        (lambda client: client.get_inference_statistics("none"), "404"),
        (lambda client: client.get_trace_settings("none"), "404"),
        (lambda client: client.update_trace_settings(settings={"trace_rate": "x"}), "400"),
        (lambda client: client.update_trace_settings(settings={"trace_file": "/tmp/x"}), "400"),
        (lambda client: client.update_log_settings({"log_file": "/tmp/x"}), "400"),
        (lambda client: client.get_system_shared_memory_status(), "404"),
    ],
)
def test_calls_that_are_refused(client: Any, call: Any, status: str) -> None:
    with pytest.raises(InferenceServerException) as caught:
        call(client)
    assert caught.value.status() == status
    assert caught.value.message()


def test_trace_settings(client: Any) -> None:
    start = client.get_trace_settings()
    assert start["trace_level"] == ["TIMESTAMPS"]
    assert client.update_trace_settings("pair", {"trace_rate": "5", "trace_count": "7"})["trace_rate"] == "5"
    assert client.get_trace_settings("pair")["trace_count"] == "7"
    assert client.update_trace_settings(settings={"trace_level": ["OFF"]})["trace_level"] == ["OFF"]
    assert client.get_trace_settings("pair")["trace_level"] == ["OFF"]
    client.update_trace_settings("pair", {"trace_rate": None, "trace_count": None})
    client.update_trace_settings(settings={"trace_level": None})
    assert client.get_trace_settings("pair") == client.get_trace_settings() == start


def test_log_settings(client: Any) -> None:
    start = client.get_log_settings()
    assert (start["log_info"], start["log_verbose_level"]) == (True, 0)
    assert client.update_log_settings({"log_verbose_level": 1})["log_verbose_level"] == 1
    assert client.update_log_settings({"log_verbose_level": 0, "log_info": False})["log_info"] is False
    assert client.update_log_settings({"log_info": True}) == start


def test_datatypes(client: Any) -> None:
    def check(case: tuple[str, bool, bool]) -> None:
        dtype, binary_in, binary_out = case
        array = np.array([[0, 1], [1, 1], [1, 0]], NUMPY[dtype])
        if dtype == "bf16" and not binary_in:
            return  # the client itself refuses that
        response = client.infer(
            f"same_{dtype}", [tensor("in", array, binary_in)], outputs=[output("out", binary_out)]
        )
        found = response.as_numpy("out")
        assert found.dtype == array.dtype
        np.testing.assert_array_equal(found, array)

    dtypes = [dtype for dtype in DTYPES if dtype in NUMPY]
    check_each(product(dtypes, [True, False], [True, False]), check)


@pytest.mark.parametrize("binary", [True, False])
def test_extreme_values_survive(client: Any, binary: bool) -> None:
    wide = np.array([[-(2**63), 2**63 - 1]], np.int64)
    response = client.infer("same_i64", [tensor("in", wide, binary)], outputs=[output("out", binary)])
    np.testing.assert_array_equal(response.as_numpy("out"), wide)
    floats = np.array([[np.nan, np.inf], [-np.inf, 1e-300]])
    response = client.infer("same_f64", [tensor("in", floats, binary)], outputs=[output("out", binary)])
    np.testing.assert_array_equal(response.as_numpy("out"), floats)


def test_complex_numbers_are_pairs(client: Any) -> None:
    pairs = np.array([[[1, 2], [3, 4]]], np.float32)
    np.testing.assert_array_equal(client.infer("same_c64", [tensor("in", pairs)]).as_numpy("out"), pairs)
    pairs = pairs.astype(np.float64)
    response = client.infer("same_c128", [tensor("in", pairs, False)], outputs=[output("out", False)])
    np.testing.assert_array_equal(response.as_numpy("out"), pairs)


def test_input_without_declared_type_takes_any(client: Any) -> None:
    for array in (np.ones((1, 2, 2), np.int32), np.ones((2, 1), np.float64), np.ones((1, 1), np.bool_)):
        found = client.infer("undeclared", [tensor("in", array)]).as_numpy("out")
        np.testing.assert_array_equal(found, array.reshape(len(array), -1))


@pytest.mark.parametrize("binary", [True, False])
def test_all_outputs_come_where_none_is_named(client: Any, binary: bool) -> None:
    response = client.infer("pair", pair(binary), request_id="mine")
    np.testing.assert_array_equal(response.as_numpy("s"), [2, -1])
    np.testing.assert_array_equal(response.as_numpy("t"), [2, 0])
    assert response.as_numpy("u") is None
    response = response.get_response()
    assert (response["id"], response["model_name"], response["model_version"]) == ("mine", "pair", "1")


def test_named_outputs_come_in_their_order(client: Any) -> None:
    response = client.infer("pair", pair(), outputs=[output("t", False), output("s")])
    assert [found["name"] for found in response.get_response()["outputs"]] == ["t", "s"]
    assert response.get_output("t")["data"] == [2, 0]
    assert response.get_output("s")["parameters"] == {"binary_data_size": 8}
    np.testing.assert_array_equal(response.as_numpy("s"), [2, -1])
    (found,) = client.infer("pair", pair(), outputs=[output("t")]).get_response()["outputs"]
    assert found["name"] == "t"


def test_operators_names_are_taken_where_they_mean_one_tensor(client: Any) -> None:
    inputs = [tensor("left", PAIR[0]), tensor("right", PAIR[1])]
    response = client.infer("pair", inputs, outputs=[output("second")])
    np.testing.assert_array_equal(response.as_numpy("second"), [2, 0])
    inputs = [tensor("in", np.array([[-1, 1]], np.float32))]
    status, message = refusal(client, "twice", inputs, outputs=[output("pnnx_output_0")])
    assert (status, "2 tensors" in message) == ("400", True)


@pytest.mark.parametrize("mixed", [(True, False), (False, True)])
def test_binary_and_json_inputs_may_be_mixed(client: Any, mixed: tuple[bool, bool]) -> None:
    inputs = [tensor(name, array, binary) for name, array, binary in zip("ab", PAIR, mixed, strict=True)]
    np.testing.assert_array_equal(client.infer("pair", inputs).as_numpy("s"), [2, -1])


@pytest.mark.parametrize("shape", [(1,), (1, 1), (3,), (3, 1)])
def test_images_come_as_bytes(client: Any, shape: tuple[int, ...]) -> None:
    images = np.array([SAMPLE.read_bytes()] * shape[0], object).reshape(shape)
    found = client.infer("digits", [tensor("0", images)]).as_numpy("31")
    assert found.shape == (shape[0], 10)
    assert (found.argmax(axis=1) == 7).all()


@pytest.mark.parametrize("binary", [True, False])
def test_steps_of_a_pipeline_take_the_images(client: Any, binary: bool) -> None:
    (port,) = client.get_model_metadata("two_looks")["inputs"]
    assert port["parameters"]["image"]["datatype"] == "BYTES"
    picture = SAMPLE.read_bytes() if binary else base64.b64encode(SAMPLE.read_bytes())
    image = tensor(port["name"], np.array([picture], object), binary=binary)
    expected = client.infer("digits", [tensor("0", np.array([SAMPLE.read_bytes()], object))]).as_numpy("31")
    for _ in range(2):  # the second one's description is known
        response = client.infer("two_looks", [image])
        found = [response.as_numpy(one["name"]) for one in response.get_response()["outputs"]]
        assert len(found) == 2
        assert all(np.array_equal(one, expected) for one in found)
    numbers = tensor(port["name"], np.zeros((1, 1, 28, 28), np.float32))
    status, text = refusal(client, "two_looks", [numbers])
    assert status == "400"
    assert "takes a picture" in text


def test_images_come_as_base64(client: Any) -> None:
    images = np.array([base64.b64encode(SAMPLE.read_bytes())], object)
    found = client.infer("digits", [tensor("0", images, binary=False)], outputs=[output("31", False)])
    assert found.as_numpy("31").argmax() == 7


@pytest.mark.parametrize("binary", [True, False])
def test_classes(client: Any, binary: bool) -> None:
    images = np.array([SAMPLE.read_bytes()] * 2, object)
    response = client.infer("digits", [tensor("0", images)], outputs=[output("31", binary, classes=3)])
    found = response.as_numpy("31")
    assert found.shape == (2, 3)
    first = found[0, 0].decode() if binary else found[0, 0]
    value, index, label = first.split(":")
    assert (index, label) == ("7", "7")
    assert 0.5 < float(value) <= 1


@pytest.mark.parametrize("request_coding", [None, "gzip", "deflate"])
@pytest.mark.parametrize("response_coding", [None, "gzip", "deflate"])
@pytest.mark.parametrize("binary", [True, False])
def test_compression(
    client: Any, request_coding: str | None, response_coding: str | None, binary: bool
) -> None:
    array = np.arange(2000, dtype=np.float32).reshape(1000, 2)
    response = client.infer(
        "same_f32",
        [tensor("in", array, binary)],
        outputs=[output("out", binary)],
        request_compression_algorithm=request_coding,
        response_compression_algorithm=response_coding,
    )
    np.testing.assert_array_equal(response.as_numpy("out"), array)


def test_errors_are_not_compressed(client: Any) -> None:
    message = refusal(client, "pair", pair()[:1], response_compression_algorithm="gzip")[1]
    assert "missing" in message


def test_async_infer(client: Any) -> None:
    waiting = [client.async_infer("pair", pair(), request_id=str(number)) for number in range(4)]
    for number, request in enumerate(waiting):
        response = request.get_result()
        assert response.get_response()["id"] == str(number)
        np.testing.assert_array_equal(response.as_numpy("s"), [2, -1])
    with pytest.raises(InferenceServerException, match="missing"):
        client.async_infer("pair", pair()[:1]).get_result()


def test_trace_comes_in_the_parameters(client: Any) -> None:
    response = client.infer("pair", pair(), parameters={"trace": True}).get_response()
    layers = response["parameters"]["trace"]["layers"]
    assert [layer["type"] for layer in layers if not layer["type"].startswith("pnnx.")] == ["nn.ReLU"]
    assert "parameters" not in client.infer("pair", pair()).get_response()
    assert "parameters" not in client.infer("pair", pair(), parameters={"trace": False}).get_response()


def test_parameters(client: Any) -> None:
    response = client.infer("pair", pair(), priority=2, timeout=10_000_000, parameters={"mine": "x"})
    np.testing.assert_array_equal(response.as_numpy("s"), [2, -1])
    status, message = refusal(client, "pair", pair(), sequence_id=5, sequence_start=True)
    assert (status, "sequence" in message) == ("400", True)
    status, message = refusal(client, "pair", pair(), parameters={"trace": 3})
    assert (status, "trace" in message) == ("400", True)


def test_timeout_is_in_microseconds(client: Any) -> None:
    blocked = [tensor("0", np.array([5], np.float32))]
    status, message = refusal(client, "blocking", blocked, timeout=50_000)
    assert status == "504"
    assert "0.05" in message
