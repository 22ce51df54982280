"""An inference request from its bytes to the graph's inputs: views where they can be, and never but a ServiceError."""

import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from starlette.requests import Request

from engine import PNNX_COMPUTE, Array, RunResult, TraceLevel
from service.codec import Decoded
from service.codec.json_document import LARGE_BYTES
from service.codec.response import EncodedResponse
from service.config.limits import Limits
from service.context import open_context
from service.decoding import DECODERS, NeedsDecoderError, leaving_large_bodies
from service.errors import ServiceError
from service.repository.loaded_model import LoadedModel
from service.repository.version_loader import LoadOptions, load_version
from service.v2.binary import padding_of
from service.v2.compression import IDENTITY
from service.v2.exchange import RAW, V2Exchange, _mentions
from service.v2.request import MAX_TENSORS
from tests.service.models import DIGIT, DIGIT_CONFIG, PAIR, add_model
from tests.service.v2.bodies import binary_body, binary_input, json_input, strings
from tests.service.v2.models import DTYPES, SAME

LIMITS = Limits(body_bytes=1 << 20, json_bytes=1 << 19, image_pixels=1000, tensor_elements=10_000)
FLOATS = np.array([[1, 2], [3, 4]], np.float32)


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> dict[str, LoadedModel]:
    root = tmp_path_factory.mktemp("models")
    lines = {f"same_{dtype}": SAME.format(dtype=dtype) for dtype in DTYPES} | {"pair": PAIR}
    folders = {name: add_model(root, name, text) for name, text in lines.items()}
    folders["digit"] = add_model(root, "digit", DIGIT, DIGIT_CONFIG)
    options = LoadOptions(limits=LIMITS, warm_up=False)
    return {name: load_version(name, Path(folder), options) for name, folder in folders.items()}


def exchange(model: LoadedModel, body: bytes, length: int | None = None) -> V2Exchange:
    padding = padding_of(length)
    return V2Exchange(model, bytes(padding) + body, IDENTITY, length, IDENTITY, LIMITS, padding)


def read(model: LoadedModel, body: bytes, length: int | None = None) -> Decoded:
    return exchange(model, body, length).decode()


def respond(model: LoadedModel, document: dict[str, Any]) -> EncodedResponse:
    made = exchange(model, orjson.dumps(document))
    result: RunResult = model.graph.run(made.decode().inputs, trace=TraceLevel.ON)
    return made.encode(result)


@pytest.mark.parametrize("spaces", range(17))
def test_binary_input_is_an_aligned_view_of_the_body(models: dict[str, LoadedModel], spaces: int) -> None:
    body, length = binary_body({"inputs": [binary_input("in", FLOATS)]}, FLOATS)
    body, length = body[:1] + b" " * spaces + body[1:], length + spaces
    padding = padding_of(length)
    whole = bytes(padding) + body
    array = (
        V2Exchange(models["same_f32"], whole, IDENTITY, length, IDENTITY, LIMITS, padding)
        .decode()
        .inputs["in"]
    )
    np.testing.assert_array_equal(array, FLOATS)
    assert array.flags.aligned
    assert np.shares_memory(array, np.frombuffer(whole, np.uint8))


def test_inputs_behind_one_of_odd_size_are_aligned_too(models: dict[str, LoadedModel]) -> None:
    body, length = binary_body(
        {"inputs": [json_input("a", FLOATS[0]), binary_input("b", FLOATS[1])]}, FLOATS[1]
    )
    inputs = exchange(models["pair"], body, length)
    inputs.padding = 0
    inputs._body = inputs._body[padding_of(length) :]
    for array in inputs.decode().inputs.values():
        assert array.flags.aligned


@pytest.mark.parametrize("value", [0, 1, 2, 255])
def test_bytes_are_booleans(models: dict[str, LoadedModel], value: int) -> None:
    array = np.array([[0, value]], np.uint8)
    entry = binary_input("in", array) | {"datatype": "BOOL"}
    body, length = binary_body({"inputs": [entry]}, array)
    found = read(models["same_bool"], body, length).inputs["in"]
    assert found.dtype == np.bool_
    assert found.view(np.uint8).tolist() == [[0, int(value > 0)]]


def test_bfloat16_is_widened(models: dict[str, LoadedModel]) -> None:
    bits = np.array([[0x3F80, 0xC000]], np.uint16)
    entry = binary_input("in", bits) | {"datatype": "BF16"}
    body, length = binary_body({"inputs": [entry]}, bits)
    array = read(models["same_bf16"], body, length).inputs["in"]
    assert array.dtype == np.float32
    assert array.tolist() == [[1.0, -2.0]]


def test_complex_inputs_are_pairs_of_floats(models: dict[str, LoadedModel]) -> None:
    pairs = np.array([[[1, 2], [3, 4]]], np.float32)
    body, length = binary_body({"inputs": [binary_input("in", pairs)]}, pairs)
    for decoded in (
        read(models["same_c64"], body, length),
        read(models["same_c64"], orjson.dumps({"inputs": [json_input("in", pairs)]})),
    ):
        assert decoded.inputs["in"].dtype == np.complex64
        assert decoded.inputs["in"].tolist() == [[1 + 2j, 3 + 4j]]


def test_scheduling_is_read_of_any_body(models: dict[str, LoadedModel]) -> None:
    document = {"parameters": {"timeout": 1500, "priority": 3}, "inputs": [json_input("in", FLOATS)]}
    parameters = exchange(models["same_f32"], orjson.dumps(document)).scheduling()
    assert (parameters.timeout, parameters.priority) == (0.0015, 3)
    document["parameters"] = {"my_custom_parameter": 42}  # Triton's parameters extension allows any
    respond(models["same_f32"], document)
    large = json_input("in", np.zeros((5000, 2), np.float32)) | {"data": [0.25] * 40_000}
    late = b'{"inputs": [%b], "parameters": {"priority": 2}}' % orjson.dumps(large)
    assert exchange(models["same_f32"], late).scheduling().priority == 2
    unsaid = orjson.dumps({"inputs": [large]})
    assert exchange(models["same_f32"], unsaid).scheduling().priority == 0
    quotes = b'{"inputs": [], "x": [%b], "parameters": {"priority": 7}}' % b",".join([b'"12345678"'] * 9000)
    assert exchange(models["same_f32"], quotes).scheduling().priority == 7
    assert exchange(models["same_f32"], FLOATS.tobytes(), RAW).scheduling().priority == 0


@pytest.mark.parametrize(
    ("headers", "size", "is_unpacked_first"),
    [
        ({}, 1 << 16, False),
        ({}, (1 << 16) + 1, True),
        ({"content-encoding": "gzip"}, 10, True),
        ({"inference-header-content-length": "100"}, 1 << 20, False),
        ({"inference-header-content-length": "100000"}, 1 << 20, True),
        ({"inference-header-content-length": "0"}, 1 << 20, False),
    ],
)
def test_only_what_is_quickly_parsed_is_left_to_the_event_loop(
    models: dict[str, LoadedModel], headers: dict[str, str], size: int, is_unpacked_first: bool
) -> None:
    pairs = [(name.encode(), value.encode()) for name, value in headers.items()]
    scope = {"type": "http", "method": "POST", "path": "/", "headers": pairs}
    open_context(scope)
    exchange = V2Exchange.from_request(Request(scope), models["pair"], LIMITS)
    assert exchange.is_unpacked_first(size) is is_unpacked_first


@pytest.mark.parametrize("start", [0, 1, 6, 7, 8, 15, 16, 17])
def test_words_are_found_wherever_they_lie(start: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("service.v2.exchange._WINDOW", 16)
    for quotes in (1000, 0):
        monkeypatch.setattr("service.v2.exchange._MAX_QUOTES", quotes)
        text = bytes(start) + b'"a" "priority" '
        assert _mentions(text, (b'"timeout"', b'"priority"'))
        assert not _mentions(text, (b'"timeout"', b'"x"'))


@pytest.mark.parametrize("key", ["inputs", "outputs"])
def test_requests_that_name_too_many_tensors_are_refused(models: dict[str, LoadedModel], key: str) -> None:
    entry = json_input("in", FLOATS) if key == "inputs" else {"name": "out"}
    others = {"inputs": [json_input("in", FLOATS)]}
    with pytest.raises(ServiceError) as caught:
        read(models["same_f32"], orjson.dumps(others | {key: [entry] * (MAX_TENSORS + 1)}))
    assert (caught.value.status, caught.value.code) == (413, "too_many_values")
    assert caught.value.details == {"limit": MAX_TENSORS, "unit": key}


def test_an_input_that_comes_twice_is_refused_before_its_data_is_read(
    models: dict[str, LoadedModel], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("service.v2.inputs.parse_data", lambda *_: pytest.fail("read"))
    with pytest.raises(ServiceError) as caught:
        read(models["same_f32"], orjson.dumps({"inputs": [json_input("in", FLOATS)] * 2}))
    assert caught.value.code == "duplicate_input"


def test_large_arrays_in_json_are_left_to_a_decoder(models: dict[str, LoadedModel]) -> None:
    values = np.random.default_rng(3).standard_normal((4999, 2)).astype(np.float32)
    body = orjson.dumps({"inputs": [json_input("in", values)]}) + b" " * LARGE_BYTES
    bare = body.replace(b"[", b"[ NaN,", 2).replace(b"[ NaN,", b"[", 1)
    assert b"[ NaN," in bare
    left = exchange(models["same_f32"], body)
    with leaving_large_bodies(), pytest.raises(NeedsDecoderError):
        left.decode()
    decoded = DECODERS.call(left.decode)
    np.testing.assert_array_equal(decoded.inputs["in"], values)
    with pytest.raises(ServiceError, match="shape is"):
        DECODERS.call(lambda: read(models["same_f32"], bare))
    DECODERS.close()


def test_json_has_a_bound_of_its_own(models: dict[str, LoadedModel]) -> None:
    body = orjson.dumps({"inputs": [json_input("in", FLOATS)]}) + b" " * LIMITS.json_bytes
    for text in (body, gzip.compress(body)):
        made = V2Exchange(
            models["same_f32"], text, "identity" if text is body else "gzip", None, "identity", LIMITS
        )
        with pytest.raises(ServiceError, match="binary tensor data") as caught:
            made.scheduling()
        assert (caught.value.status, caught.value.code) == (413, "body_too_large")


@pytest.mark.parametrize(("value", "level"), [(True, 1), (False, 0), ("on", 1), ("stats", 2), ("off", 0)])
def test_trace_is_a_parameter(models: dict[str, LoadedModel], value: object, level: int) -> None:
    document = {"inputs": [json_input("in", FLOATS)], "parameters": {"trace": value}}
    assert read(models["same_f32"], orjson.dumps(document)).options.trace == list(TraceLevel)[level]


def test_trace_is_reported_only_where_it_was_asked_for(models: dict[str, LoadedModel]) -> None:
    document: dict[str, Any] = {"inputs": [json_input("in", FLOATS)]}
    assert "parameters" not in json.loads(respond(models["same_f32"], document).body)
    document["parameters"] = {"trace": True}
    reported = json.loads(respond(models["same_f32"], document).body)["parameters"]["trace"]
    assert [layer["type"] for layer in reported["layers"]] == ["pnnx.Input", "torch.flatten", "pnnx.Output"]


def test_outputs_that_only_a_run_shows_are_numbered(models: dict[str, LoadedModel]) -> None:
    made = exchange(models["same_f32"], orjson.dumps({"inputs": [json_input("in", FLOATS)]}))
    made.decode()
    found = json.loads(made.encode(RunResult([FLOATS, FLOATS[0]])).body)
    assert [output["name"] for output in found["outputs"]] == ["output_0", "output_1"]


@pytest.mark.parametrize(("name", "is_there"), [("output_1", True), ("output_2", False)])
def test_numbered_outputs_may_be_asked_for(models: dict[str, LoadedModel], name: str, is_there: bool) -> None:
    document = {"inputs": [json_input("in", FLOATS)], "outputs": [{"name": name}]}
    made = exchange(models["same_f32"], orjson.dumps(document))
    made.decode()
    result = RunResult([FLOATS, FLOATS[0]])
    if is_there:
        assert json.loads(made.encode(result).body)["outputs"][0]["data"] == [1, 2]
    else:
        with pytest.raises(ServiceError, match="output_0, output_1"):
            made.encode(result)


_NAMES = st.sampled_from(["in", "a", "b", "0", "left", "pnnx_input_0", "x", ""])
_DIMS = st.integers(-1, 6) | st.sampled_from([1 << 31, 1 << 62, 1 << 63])
_ANY = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 300) | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
_INPUTS = st.fixed_dictionaries(
    {
        "name": _NAMES,
        "shape": st.lists(_DIMS, max_size=3),
        "datatype": st.sampled_from(["FP32", "FP16", "BF16", "BOOL", "INT64", "UINT8", "FP64", "BYTES", "?"]),
    },
    optional={
        "data": _ANY,
        "parameters": st.fixed_dictionaries({}, optional={"binary_data_size": st.integers(-1, 40) | _ANY}),
    },
)
_DOCUMENTS = st.fixed_dictionaries(
    {"inputs": st.lists(_INPUTS | _ANY, max_size=3) | _ANY},
    optional={
        "id": _ANY,
        "parameters": st.dictionaries(
            st.sampled_from(["timeout", "priority", "trace", "sequence_id", "binary_data_output"]), _ANY
        )
        | _ANY,
        "outputs": st.lists(st.fixed_dictionaries({"name": _NAMES | st.just("out")}) | _ANY, max_size=3),
    },
)


def _check_sound(model: LoadedModel, body: bytes, length: int | None) -> None:
    """Whatever a body says, it is read or refused with a status of the client's."""
    made = exchange(model, body, length)
    refusal: ServiceError | None = None
    try:
        made.scheduling()
        decoded = made.decode()
    except ServiceError as error:
        refusal = error
    if refusal is not None:
        assert refusal.status in (400, 413, 422), refusal.code
        return
    for port in model.graph.inputs:
        array: Array = decoded.inputs[port.operand]
        assert array.flags.aligned


@settings(max_examples=150, deadline=None)
@given(
    st.sampled_from(["same_f32", "same_bool", "same_bf16", "same_c64", "pair", "digit"]),
    _DOCUMENTS,
    st.binary(max_size=40),
    st.integers(-3, 3) | st.none(),
)
def test_documents_of_every_kind(
    models: dict[str, LoadedModel], name: str, document: Any, data: bytes, change: int | None
) -> None:
    text = json.dumps(document).encode()
    length = None if change is None else max(0, len(text) + change)
    _check_sound(models[name], text + (b"" if change is None else data), length)


@settings(max_examples=100, deadline=None)
@given(st.sampled_from(["same_f32", "pair", "digit"]), st.binary(max_size=80), st.integers(0, 90) | st.none())
def test_bytes_of_every_kind(
    models: dict[str, LoadedModel], name: str, body: bytes, length: int | None
) -> None:
    _check_sound(models[name], body, length)


@settings(max_examples=150, deadline=None)
@given(
    st.sampled_from(["f16", "f32", "f64", "i8", "i16", "i32", "i64", "u8", "bool"]),
    st.integers(0, 5),
    st.integers(-9, 9),
    st.integers(-9, 9),
    st.randoms(use_true_random=False),
)
def test_sizes_of_every_kind(
    models: dict[str, LoadedModel], dtype: str, rows: int, declared: int, sent: int, random: Any
) -> None:
    """Only what has exactly its size is read, and then element for element."""
    plain = PNNX_COMPUTE[dtype]
    raw = bytes(random.randrange(2) for _ in range(rows * 2 * plain.itemsize))
    array = np.frombuffer(raw, plain).reshape(rows, 2)
    entry = binary_input("in", array)
    entry["parameters"]["binary_data_size"] += declared
    body, length = binary_body({"inputs": [entry]})
    padded = raw[: len(raw) + sent] if sent < 0 else raw + bytes(sent)
    if declared == 0 and len(padded) == len(raw):
        np.testing.assert_array_equal(
            read(models[f"same_{dtype}"], body + padded, length).inputs["in"], array
        )
        return
    with pytest.raises(ServiceError) as caught:
        read(models[f"same_{dtype}"], body + padded, length)
    assert caught.value.status == 400


@settings(max_examples=100, deadline=None)
@given(st.lists(st.binary(max_size=6), max_size=4), st.integers(0, 5), st.binary(max_size=5))
def test_strings_of_every_kind(
    models: dict[str, LoadedModel], elements: list[bytes], count: int, tail: bytes
) -> None:
    data = strings(*elements) + tail
    entry = {
        "name": "0",
        "shape": [count],
        "datatype": "BYTES",
        "parameters": {"binary_data_size": len(data)},
    }
    body, length = binary_body({"inputs": [entry]})
    with pytest.raises(ServiceError) as caught:  # none of them is an image
        read(models["digit"], body + data, length)
    sound = count == len(elements) and not tail
    assert (caught.value.code != "wrong_size") == sound
