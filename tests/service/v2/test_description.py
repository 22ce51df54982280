"""Requests with the same JSON part: the second is read, and answered, from what the first has shown."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import orjson
import pytest

from engine import PNNX_COMPUTE, Array, widen
from service.codec.response import EncodedResponse
from service.config.limits import Limits
from service.errors import ServiceError
from service.repository.loaded_model import LoadedModel
from service.repository.version_loader import LoadOptions, load_version
from service.v2 import exchange as exchange_module
from service.v2.binary import padding_of
from service.v2.compression import IDENTITY
from service.v2.datatypes import WIRE_SIZES
from service.v2.description import describe
from service.v2.exchange import V2Exchange
from tests.service.models import PAIR, add_model
from tests.service.v2.models import DTYPES, SAME, TWICE

WIRE = {
    "f16": "FP16",
    "f32": "FP32",
    "f64": "FP64",
    "bf16": "BF16",
    "bool": "BOOL",
    "c64": "FP32",
    "c128": "FP64",
}
WIRE |= {f"{sign}{bits}": f"{'U' * (sign == 'u')}INT{bits}" for sign in "iu" for bits in (8, 16, 32, 64)}
READ_ANEW = frozenset({"bool", "bf16", "c64", "c128"})
BINARY = {"parameters": {"binary_data_output": True}}

MARKED = """
pnnx.Input      pnnx_input_0  0 1 in #in=(4)f32
nn.ReLU         relu          1 1 in a #in=(4)f32 #a=(4)f32
pnnx.Expression large         1 1 a m expr=gt(@0,5) #a=(4)f32 #m=(4)bool
aten::nonzero   where         1 1 m n #m=(4)bool #n=(?,1)i64
torch.flatten   flat          1 1 n i end_dim=-1 start_dim=0 #n=(?,1)i64 #i=(?)i64
pnnx.Expression axis          0 1 d expr=0
pnnx.Expression mark          0 1 v expr=-1.0
pnnx.Expression reduction     0 1 r expr=None
aten::scatter   marked        5 1 a d i v r b #a=(4)f32 #i=(?)i64 #b=(4)f32
pnnx.Output     pnnx_output_0 2 0 a b #a=(4)f32 #b=(4)f32
"""
"""Returns max(input, 0), and the same with -1 for what is above 5; one array where nothing is."""


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> dict[str, LoadedModel]:
    root = tmp_path_factory.mktemp("models")
    lines = {dtype: SAME.format(dtype=dtype) for dtype in DTYPES} | {"pair": PAIR, "twice": TWICE}
    folders = {name: add_model(root, name, text) for name, text in lines.items()}
    options = LoadOptions(limits=Limits(), warm_up=False)
    return {name: load_version(name, Path(folder), options) for name, folder in folders.items()}


def respond(
    model: LoadedModel, document: Mapping[str, object], data: bytes, padding: int | None = None
) -> EncodedResponse:
    text = orjson.dumps(document)
    padding = padding_of(len(text)) if padding is None else padding
    made = V2Exchange(model, bytes(padding) + text + data, IDENTITY, len(text), IDENTITY, Limits(), padding)
    made.scheduling()
    return made.encode(model.graph.run(made.decode().inputs))


def arrays(given: EncodedResponse) -> tuple[dict[str, object], bytes]:
    length = int(given.headers["Inference-Header-Content-Length"])
    return orjson.loads(given.body[:length]), given.body[length:]


def bits(dtype: str, seed: int) -> bytes:
    """Return the elements of a (3, 2) tensor in the form that they are sent in."""
    generator = np.random.default_rng(seed)
    if dtype == "bool":
        return generator.integers(0, 2, 6, np.uint8).tobytes()
    if dtype == "bf16":
        return (generator.normal(size=6).astype(np.float32).view(np.uint32) >> 16).astype(np.uint16).tobytes()
    values = generator.normal(size=12) * 50
    return values.astype(PNNX_COMPUTE[dtype]).tobytes()[: 6 * PNNX_COMPUTE[dtype].itemsize]


@pytest.mark.parametrize("dtype", DTYPES)
def test_each_request_is_answered_with_its_own_numbers(
    models: dict[str, LoadedModel], dtype: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    shape = [3, 2, 2] if dtype.startswith("c") else [3, 2]
    size = 6 * (2 if dtype == "bf16" else PNNX_COMPUTE[dtype].itemsize)
    tensor = {"name": "in", "shape": shape, "datatype": WIRE[dtype], "parameters": {"binary_data_size": size}}
    assert size == int(np.prod(shape)) * WIRE_SIZES[WIRE[dtype]]
    for seed in range(3):
        if seed == 1 and dtype not in READ_ANEW:
            monkeypatch.setattr(exchange_module, "read_inputs", None)
        data = bits(dtype, seed)
        head, sent = arrays(respond(models[dtype], {"inputs": [tensor], **BINARY}, data))
        assert sent == data
        assert head == {
            "model_name": dtype,
            "model_version": "1",
            "outputs": [
                {
                    "name": "out",
                    "datatype": WIRE[dtype],
                    "shape": shape,
                    "parameters": {"binary_data_size": size},
                }
            ],
        }


def pair(names: str, size: int = 2) -> list[dict[str, object]]:
    return [
        {"name": name, "shape": [size], "datatype": "FP32", "parameters": {"binary_data_size": 4 * size}}
        for name in names
    ]


def test_inputs_are_distinguished_by_their_names(models: dict[str, LoadedModel]) -> None:
    for seed in range(3):
        first, second = np.random.default_rng(seed).normal(size=(2, 2)).astype(np.float32)
        for names in ("ab", "ba"):
            document = {"inputs": pair(names), "outputs": [], **BINARY}
            _, sent = arrays(respond(models["pair"], document, first.tobytes() + second.tobytes()))
            given = dict(zip(names, (first, second), strict=True))
            outputs = models["pair"].graph.run({"a": given["a"], "b": given["b"]}).outputs
            assert sent == b"".join(output.tobytes() for output in outputs)
    assert not np.array_equal(first, second)


def test_outputs_come_in_the_order_that_is_asked_for(models: dict[str, LoadedModel]) -> None:
    tensor = {"name": "in", "shape": [1, 2], "datatype": "FP32", "parameters": {"binary_data_size": 8}}
    binary = {"binary_data": True}
    for asked in (["in", "out"], ["out", "in"], ["out"]):
        for value in (1.0, -2.0, 3.0):
            given = np.array([value, -value], np.float32)
            known = {"in": given.tobytes(), "out": np.maximum(given, 0).tobytes()}
            outputs = [{"name": name, "parameters": binary} for name in asked]
            head, sent = arrays(
                respond(models["twice"], {"inputs": [tensor], "outputs": outputs}, given.tobytes())
            )
            assert sent == b"".join(known[name] for name in asked)
            assert [output["name"] for output in head["outputs"]] == asked  # type: ignore[attr-defined]


def test_outputs_that_are_one_array_may_be_two_for_other_numbers(tmp_path: Path) -> None:
    options = LoadOptions(limits=Limits(), warm_up=False, backend="numpy")
    model = load_version("marked", Path(add_model(tmp_path, "marked", MARKED)), options)
    tensor = {"name": "in", "shape": [4], "datatype": "FP32", "parameters": {"binary_data_size": 16}}
    for given, marked in (([1, 2, 3, 4], [1, 2, 3, 4]), ([1, 2, 30, 40], [1, 2, -1, -1])):
        _, sent = arrays(
            respond(model, {"inputs": [tensor], **BINARY}, np.array(given, np.float32).tobytes())
        )
        assert np.frombuffer(sent, np.float32).tolist() == given + marked


def test_what_does_not_fit_is_refused_each_time(models: dict[str, LoadedModel]) -> None:
    tensor = {"name": "in", "shape": [1, 2], "datatype": "FP32", "parameters": {"binary_data_size": 8}}
    document: dict[str, object] = {"inputs": [tensor], **BINARY}
    for data, is_sound in (
        (bytes(8), True),
        (bytes(7), False),
        (bytes(12), False),
        (bytes(8), True),
        (b"", False),
    ):
        if is_sound:
            assert arrays(respond(models["f32"], document, data))[1] == data
        else:
            with pytest.raises(ServiceError, match="binary_data_size adds up to 8"):
                respond(models["f32"], document, data)
    wrong = {"inputs": [tensor | {"shape": [1, 3]}], **BINARY}
    for _ in range(3):
        with pytest.raises(ServiceError, match="has shape"):
            respond(models["f32"], wrong, bytes(8))


@pytest.mark.parametrize("padding", range(4))
def test_arrays_that_are_not_aligned_are_copied(models: dict[str, LoadedModel], padding: int) -> None:
    tensor = {"name": "in", "shape": [1, 2], "datatype": "FP32", "parameters": {"binary_data_size": 8}}
    for seed in range(3):
        data = np.random.default_rng(seed).normal(size=2).astype(np.float32).tobytes()
        assert arrays(respond(models["f32"], {"inputs": [tensor], **BINARY}, data, padding))[1] == data


def test_a_response_is_known_only_for_outputs_of_its_shape_and_type(models: dict[str, LoadedModel]) -> None:
    text = orjson.dumps({"inputs": [], **BINARY})
    description = describe(models["twice"], text)
    assert describe(models["twice"], text) is description
    assert describe(models["pair"], text) is not description
    outputs: list[Array] = [np.zeros((2, 3), np.float32), np.ones(2, np.float32)]
    sent = EncodedResponse(
        (b"{}", *(memoryview(output.tobytes()) for output in outputs)), "application/octet-stream"
    )
    description.remember_response(outputs, outputs, sent)
    known = description.respond([np.full((2, 3), 5, np.float32), np.ones(2, np.float32)])
    assert known is not None
    assert known.body == b"{}" + np.full(6, 5, np.float32).tobytes() + np.ones(2, np.float32).tobytes()
    assert description.respond([np.zeros((3, 2), np.float32), outputs[1]]) is None
    assert description.respond([np.zeros((2, 3), np.float64), outputs[1]]) is None
    assert description.respond(outputs[:1]) is None


def test_responses_as_text_or_classes_are_written_again(models: dict[str, LoadedModel]) -> None:
    tensor = {"name": "in", "shape": [1, 2], "datatype": "FP32", "parameters": {"binary_data_size": 8}}
    wanted = [{"name": "out"}, {"name": "out", "parameters": {"binary_data": True, "classification": 1}}]
    for output in wanted:
        for values, largest in (([3.0, 1.0], "3.0:0"), ([1.0, 7.0], "7.0:1")):
            data = np.array([values], np.float32).tobytes()
            given = respond(models["f32"], {"inputs": [tensor], "outputs": [output]}, data)
            if output is wanted[0]:
                assert orjson.loads(given.body)["outputs"][0]["data"] == values
            else:
                assert given.body.endswith(largest.encode())


def test_bfloat16_of_a_remembered_request_is_widened(models: dict[str, LoadedModel]) -> None:
    tensor = {"name": "in", "shape": [1, 2], "datatype": "BF16", "parameters": {"binary_data_size": 4}}
    text = orjson.dumps({"inputs": [tensor]})
    for seed in range(3):
        data = bits("bf16", seed)[:4]
        padding = padding_of(len(text))
        made = V2Exchange(
            models["bf16"], bytes(padding) + text + data, IDENTITY, len(text), IDENTITY, Limits(), padding
        )
        made.scheduling()
        expected = widen(np.frombuffer(data, np.uint16), "bf16")
        np.testing.assert_array_equal(made.decode().inputs["in"], expected[None])
