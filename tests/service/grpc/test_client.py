"""Every call of Triton's client by gRPC, with the responses that it gets over HTTP."""

import json
from queue import Queue
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import tritonclient.grpc as triton
import tritonclient.http as triton_http
from google.protobuf.json_format import ParseDict
from tritonclient.grpc import service_pb2
from tritonclient.utils import InferenceServerException, np_to_triton_dtype

from engine import Array
from tests.service.grpc.servers import RawClient, refusal, same, tensor
from tests.service.server.process import SOON
from tests.service.v2 import calls
from tests.service.v2.calls import NUMPY, PAIR, SAMPLE
from tests.service.v2.models import DTYPES

IMAGES = np.array([SAMPLE.read_bytes()] * 2, object)


def check_infer(client: Any, http: Any, model: str, arrays: dict[str, Array], **options: Any) -> Any:
    """Check that gRPC answers what HTTP answers, in every bit; return the response."""
    response = client.infer(model, [tensor(name, array) for name, array in arrays.items()], **options)
    expected = http.infer(model, [calls.tensor(name, array) for name, array in arrays.items()], **options)
    found, wanted = response.get_response(), expected.get_response()
    assert (found.model_name, found.model_version) == (wanted["model_name"], wanted["model_version"])
    assert [output.name for output in found.outputs] == [output["name"] for output in wanted["outputs"]]
    for output, reported in zip(found.outputs, wanted["outputs"], strict=True):
        assert (output.datatype, list(output.shape)) == (reported["datatype"], reported["shape"])
        same(response.as_numpy(output.name), expected.as_numpy(output.name))
    return response


def pair() -> list[Any]:
    return [tensor(name, array) for name, array in zip("ab", PAIR, strict=True)]


def test_health(client: Any) -> None:
    assert client.is_server_live()
    assert client.is_server_ready()
    assert client.is_model_ready("pair")
    assert client.is_model_ready("pair", "1")
    assert not client.is_model_ready("pair", "2")
    assert not client.is_model_ready("none")


@pytest.mark.parametrize(
    "model", ["pair", "digits", "digit", "same_c64", "same_bf16", "undeclared", "versioned"]
)
def test_descriptions_are_those_of_http(client: Any, http: Any, model: str) -> None:
    def as_message(described: Any, kind: Any) -> Any:
        return ParseDict(described, kind(), ignore_unknown_fields=True)

    assert client.get_server_metadata() == as_message(
        http.get_server_metadata(), service_pb2.ServerMetadataResponse
    )
    for version in ("", "1"):
        expected = as_message(http.get_model_metadata(model, version), service_pb2.ModelMetadataResponse)
        assert client.get_model_metadata(model, version) == expected
        config = as_message(
            {"config": http.get_model_config(model, version)}, service_pb2.ModelConfigResponse
        )
        assert client.get_model_config(model, version) == config


def test_versions(client: Any, http: Any) -> None:
    ones = np.ones((1, 2), np.float32)
    for version, expected in (("", 3), ("1", 1), ("3", 3)):
        response = check_infer(client, http, "versioned", {"in": ones}, model_version=version)
        np.testing.assert_array_equal(response.as_numpy("out"), ones * expected)
    assert refusal(client, "versioned", [tensor("in", ones)], model_version="2")[0] == "NOT_FOUND"


def test_statistics(client: Any, http: Any) -> None:
    before = client.get_inference_statistics("twice", "1").model_stats[0]
    client.infer("twice", [tensor("in", np.ones((1, 2), np.float32))])
    refusal(client, "twice", [tensor("in", np.ones((1, 3), np.float32))])
    (after,) = client.get_inference_statistics("twice").model_stats
    assert after.inference_count - before.inference_count == 1
    for name, count in (("success", 1), ("fail", 1), ("queue", 1), ("compute_infer", 1), ("cache_hit", 0)):
        durations = getattr(after.inference_stats, name), getattr(before.inference_stats, name)
        assert durations[0].count - durations[1].count == count
    expected = ParseDict(http.get_inference_statistics("twice"), service_pb2.ModelStatisticsResponse())
    assert client.get_inference_statistics("twice") == expected
    every = client.get_inference_statistics().model_stats
    assert {"twice", "pair", "digits"} <= {model.name for model in every}


def test_repository_index(client: Any, http: Any) -> None:
    expected = ParseDict({"models": http.get_model_repository_index()}, service_pb2.RepositoryIndexResponse())
    assert client.get_model_repository_index() == expected
    assert [line.version for line in expected.models if line.name == "versioned"] == ["1", "3"]


def test_load_and_unload(client: Any, http: Any) -> None:
    ones = {"in": np.ones((1, 2), np.float32)}
    client.unload_model("reloaded")
    assert not client.is_model_ready("reloaded")
    assert not http.is_model_ready("reloaded")
    assert refusal(client, "reloaded", [tensor("in", ones["in"])])[0] == "UNAVAILABLE"
    client.load_model("reloaded")
    client.load_model("reloaded", config=json.dumps({"max_batch_size": 4}))
    config = client.get_model_config("reloaded").config
    assert (config.max_batch_size, list(config.input[0].dims)) == (4, [2])
    check_infer(client, http, "reloaded", ones)
    client.load_model("reloaded")


@pytest.mark.parametrize(
    ("call", "status"),
    [
        (lambda client: client.load_model("none"), "NOT_FOUND"),
        (lambda client: client.unload_model("none"), "NOT_FOUND"),
        (lambda client: client.load_model("pair", config="{"), "INVALID_ARGUMENT"),
        (lambda client: client.load_model("pair", files={"file:1/model.param": b"x"}), "INVALID_ARGUMENT"),
        (lambda client: client.get_model_metadata("none"), "NOT_FOUND"),
        (lambda client: client.get_model_metadata("pair", "7"), "NOT_FOUND"),
        (lambda client: client.get_model_config("none"), "NOT_FOUND"),
        (lambda client: client.get_inference_statistics("none"), "NOT_FOUND"),
        (lambda client: client.get_trace_settings("none"), "NOT_FOUND"),
        (lambda client: client.update_trace_settings(settings={"trace_rate": "x"}), "INVALID_ARGUMENT"),
        (lambda client: client.update_trace_settings(settings={"trace_file": "x"}), "INVALID_ARGUMENT"),
        (lambda client: client.update_log_settings({"log_file": "x"}), "INVALID_ARGUMENT"),
        (lambda client: client.get_system_shared_memory_status(), "UNIMPLEMENTED"),
        (lambda client: client.get_cuda_shared_memory_status(), "UNIMPLEMENTED"),
        (lambda client: client.unregister_system_shared_memory(), "UNIMPLEMENTED"),
    ],
)
def test_calls_that_are_refused(client: Any, call: Any, status: str) -> None:
    with pytest.raises(InferenceServerException) as caught:
        call(client)
    assert caught.value.status() == f"StatusCode.{status}"
    assert caught.value.message()


def test_trace_settings(client: Any, http: Any) -> None:
    def shown(model: str | None = None) -> dict[str, Any]:
        settings = client.get_trace_settings(model).settings
        reported = {name: list(entry.value) for name, entry in settings.items()}
        assert {name: [value] if isinstance(value, str) else value for name, value in over(model)} == reported
        return reported

    def over(model: str | None) -> Any:
        return http.get_trace_settings(model).items()

    start = shown()
    assert start["trace_level"] == ["TIMESTAMPS"]
    client.update_trace_settings("pair", {"trace_rate": "5", "trace_count": "7"})
    assert (shown("pair")["trace_rate"], shown("pair")["trace_count"]) == (["5"], ["7"])
    client.update_trace_settings(settings={"trace_level": ["OFF"]})
    assert shown()["trace_level"] == shown("pair")["trace_level"] == ["OFF"]
    client.update_trace_settings("pair", {"trace_rate": None, "trace_count": None})
    client.update_trace_settings(settings={"trace_level": None})
    assert shown("pair") == shown() == start


def test_log_settings(client: Any) -> None:
    start = client.get_log_settings()
    assert start.settings["log_info"].bool_param
    assert start.settings["log_verbose_level"].uint32_param == 0
    changed = client.update_log_settings({"log_verbose_level": 1})
    assert changed.settings["log_verbose_level"].uint32_param == 1
    changed = client.update_log_settings({"log_verbose_level": 0, "log_info": False})
    assert not changed.settings["log_info"].bool_param
    assert client.update_log_settings({"log_info": True}) == start


@pytest.mark.parametrize("dtype", [dtype for dtype in DTYPES if dtype in NUMPY])
def test_datatypes(client: Any, http: Any, dtype: str) -> None:
    array = np.array([[0, 1], [1, 1], [1, 0]], NUMPY[dtype])
    for _ in range(2):  # the second one as it is remembered
        response = check_infer(client, http, f"same_{dtype}", {"in": array})
        found = response.as_numpy("out")
        same(found.astype(array.dtype) if dtype == "bf16" else found, array)


FIELDS = {
    "f32": "fp32_contents",
    "f64": "fp64_contents",
    "i8": "int_contents",
    "i16": "int_contents",
    "i32": "int_contents",
    "i64": "int64_contents",
    "u8": "uint_contents",
    "bool": "bool_contents",
}


@pytest.mark.parametrize("dtype", FIELDS)
def test_contents_of_a_field_for_the_datatype(raw: RawClient, dtype: str) -> None:
    kind = np.dtype(NUMPY[dtype])
    info = np.iinfo(kind) if kind.kind in "iu" else None
    low, high = (info.min, info.max) if info else (0, 1)
    array = np.array([[low, high], [1, 0]], kind)
    entry = service_pb2.ModelInferRequest.InferInputTensor(
        name="in", datatype=np_to_triton_dtype(kind), shape=[2, 2]
    )
    getattr(entry.contents, FIELDS[dtype]).extend(array.ravel().tolist())
    for _ in range(2):
        response = raw.infer(model_name=f"same_{dtype}", inputs=[entry])
        assert response.raw_output_contents == [array.tobytes()]


def test_extreme_values_survive(client: Any, http: Any) -> None:
    wide = np.array([[-(2**63), 2**63 - 1]], np.int64)
    same(check_infer(client, http, "same_i64", {"in": wide}).as_numpy("out"), wide)
    floats = np.array([[np.nan, np.inf], [-np.inf, 1e-300]])
    same(check_infer(client, http, "same_f64", {"in": floats}).as_numpy("out"), floats)


def test_complex_numbers_are_pairs(client: Any, http: Any) -> None:
    pairs = np.array([[[1, 2], [3, 4]]], np.float32)
    for _ in range(2):
        same(check_infer(client, http, "same_c64", {"in": pairs}).as_numpy("out"), pairs)
    check_infer(client, http, "same_c128", {"in": pairs.astype(np.float64)})


def test_input_without_declared_type_takes_any(client: Any, http: Any) -> None:
    for array in (np.ones((1, 2, 2), np.int32), np.ones((2, 1), np.float64), np.ones((1, 1), np.bool_)):
        check_infer(client, http, "undeclared", {"in": array})


def test_all_outputs_come_where_none_is_named(client: Any, http: Any) -> None:
    arrays = dict(zip("ab", PAIR, strict=True))
    for own_id in ("mine", "", "another"):
        response = check_infer(client, http, "pair", arrays, request_id=own_id)
        assert response.get_response().id == own_id
        np.testing.assert_array_equal(response.as_numpy("s"), [2, -1])
        np.testing.assert_array_equal(response.as_numpy("t"), [2, 0])
        assert response.as_numpy("u") is None


def test_named_outputs_come_in_their_order(client: Any) -> None:
    for _ in range(2):
        outputs = [triton.InferRequestedOutput("t"), triton.InferRequestedOutput("s")]
        response = client.infer("pair", pair(), outputs=outputs)
        assert [found.name for found in response.get_response().outputs] == ["t", "s"]
        np.testing.assert_array_equal(response.as_numpy("s"), [2, -1])
        np.testing.assert_array_equal(response.as_numpy("t"), [2, 0])


def test_inputs_in_another_order_than_the_model_has_them(client: Any) -> None:
    for _ in range(2):
        swapped = [tensor("b", np.array([5, 7], np.float32)), tensor("a", np.array([-9, 1], np.float32))]
        np.testing.assert_array_equal(client.infer("pair", swapped).as_numpy("s"), [-4, 8])


def test_operators_names_are_taken_where_they_mean_one_tensor(client: Any) -> None:
    inputs = [tensor("left", PAIR[0]), tensor("right", PAIR[1])]
    response = client.infer("pair", inputs, outputs=[triton.InferRequestedOutput("second")])
    np.testing.assert_array_equal(response.as_numpy("second"), [2, 0])
    inputs = [tensor("in", np.array([[-1, 1]], np.float32))]
    outputs = [triton.InferRequestedOutput("pnnx_output_0")]
    status, message = refusal(client, "twice", inputs, outputs=outputs)
    assert (status, "2 tensors" in message) == ("INVALID_ARGUMENT", True)


def test_two_outputs_that_are_one_array_stay_two(client: Any, http: Any) -> None:
    for first in (1, -1, 1):
        check_infer(client, http, "twice", {"in": np.array([[first, 1]], np.float32)})


@pytest.mark.parametrize("shape", [(1,), (1, 1), (2,), (2, 1)])
def test_images_come_as_bytes(client: Any, http: Any, shape: tuple[int, ...]) -> None:
    images = IMAGES[: shape[0]].reshape(shape)
    found = check_infer(client, http, "digits", {"0": images}).as_numpy("31")
    assert (found.argmax(axis=1) == 7).all()


def test_steps_of_a_pipeline_take_the_images(client: Any, http: Any) -> None:
    name = http.get_model_metadata("two_looks")["inputs"][0]["name"]
    expected = http.infer("digits", [calls.tensor("0", IMAGES)]).as_numpy("31")
    response = client.infer("two_looks", [tensor(name, IMAGES)])
    found = [response.as_numpy(output.name) for output in response.get_response().outputs]
    assert len(found) == 2
    for one in found:
        same(one, expected)


def test_images_come_as_bytes_contents(raw: RawClient, http: Any) -> None:
    entry = service_pb2.ModelInferRequest.InferInputTensor(name="0", datatype="BYTES", shape=[2])
    entry.contents.bytes_contents.extend(IMAGES.tolist())
    response = raw.infer(model_name="digits", inputs=[entry])
    expected = http.infer("digits", [calls.tensor("0", IMAGES)]).as_numpy("31")
    same(np.frombuffer(response.raw_output_contents[0], np.float32).reshape(2, 10), expected)


def test_classes(client: Any, http: Any) -> None:
    for _ in range(2):
        response = client.infer(
            "digits", [tensor("0", IMAGES)], outputs=[triton.InferRequestedOutput("31", class_count=3)]
        )
        expected = http.infer(
            "digits",
            [calls.tensor("0", IMAGES)],
            outputs=[triton_http.InferRequestedOutput("31", class_count=3)],
        )
        same(response.as_numpy("31"), expected.as_numpy("31"))


def test_async_infer(client: Any) -> None:
    ended: Queue[tuple[Any, Any]] = Queue()
    for number in range(4):
        client.async_infer(
            "pair", pair(), lambda result, error: ended.put((result, error)), request_id=str(number)
        )
    responses = [ended.get(timeout=SOON)[0] for _ in range(4)]
    assert sorted(response.get_response().id for response in responses) == ["0", "1", "2", "3"]
    for response in responses:
        np.testing.assert_array_equal(response.as_numpy("s"), [2, -1])
    client.async_infer("pair", pair()[:1], lambda result, error: ended.put((result, error)))
    assert "missing" in ended.get(timeout=SOON)[1].message()


def test_trace_comes_in_the_parameters(client: Any) -> None:
    for _ in range(2):
        response = client.infer("pair", pair(), parameters={"trace": True}).get_response()
        layers = json.loads(response.parameters["trace"].string_param)["layers"]
        assert [layer["type"] for layer in layers if not layer["type"].startswith("pnnx.")] == ["nn.ReLU"]
        assert not client.infer("pair", pair()).get_response().parameters
        assert not client.infer("pair", pair(), parameters={"trace": False}).get_response().parameters


def test_parameters(client: Any) -> None:
    response = client.infer("pair", pair(), priority=2, timeout=10_000_000, parameters={"mine": "x"})
    np.testing.assert_array_equal(response.as_numpy("s"), [2, -1])
    status, message = refusal(client, "pair", pair(), sequence_id=5, sequence_start=True)
    assert (status, "sequence" in message) == ("INVALID_ARGUMENT", True)
    status, message = refusal(client, "pair", pair(), parameters={"trace": 3})
    assert (status, "trace" in message) == ("INVALID_ARGUMENT", True)


def test_timeout_is_in_microseconds(client: Any) -> None:
    blocked = [tensor("0", np.array([5], np.float32))]
    status, message = refusal(client, "blocking", blocked, timeout=50_000)
    assert status == "DEADLINE_EXCEEDED"
    assert "0.05" in message


def test_a_fault_of_the_server_shows_nothing_but_the_request(client: Any) -> None:
    status, message = refusal(
        client, "fault", [tensor("0", np.array([5], np.float32))], headers={"x-request-id": "f1"}
    )
    assert status in ("INVALID_ARGUMENT", "INTERNAL")
    assert "Traceback" not in message


def test_bf16_is_what_the_client_means(client: Any) -> None:
    array = np.array([[1.5, -2.25]], ml_dtypes.bfloat16)
    found = client.infer("same_bf16", [tensor("in", array, "BF16")]).as_numpy("out")
    np.testing.assert_array_equal(found.astype(np.float32), array.astype(np.float32))
