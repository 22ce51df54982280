from collections.abc import Iterator
from io import BytesIO
from itertools import product
from time import perf_counter_ns
from typing import Any

import numpy as np
import orjson
import pytest

from engine import PNNX_STORAGE, Array, LayerTrace, OperandTrace, Port, RunResult, RunTrace, Statistics
from service.codec import JSON_TYPE, NPZ_TYPE, build_response
from service.codec import encode as encode_pieces
from service.tasks.classification import ClassPrediction
from tests.cases import check_each

PORTS = (Port("pnnx_output_0", "9", (1, 2), "f32"),)
TIMING = {"decode_ms": 1.0, "queue_ms": 0.5, "forward_ms": 2.123456}
STATISTICS = Statistics(minimum=0.0, maximum=float("inf"), mean=None, std=0.5, nan=1, inf=2)
TRACE = RunTrace(
    1234.5678,
    (
        LayerTrace(
            index=0,
            name="relu",
            type="nn.ReLU",
            inputs=(OperandTrace("1", (1, 2), "f32"),),
            outputs=(OperandTrace("9", (1, 2), "f32", STATISTICS),),
            start_us=100.0,
            duration_us=1000.0,
            share=1 / 3,
            multiply_adds=7,
            bytes_moved=16,
            backend="native",
            fused=("act",),
        ),
    ),
)


def clock(*milliseconds: float) -> Any:
    times: Iterator[int] = iter([int(value * 1e6) for value in milliseconds])
    return lambda: next(times)


def response_of(*arrays: Array, **rest: Any) -> dict[str, Any]:
    ports = [Port(f"out{index}", str(index), None, None) for index in range(len(arrays))]
    return build_response("m", "1", "r", ports, RunResult(list(arrays), **rest), None, TIMING)


def encode(
    response: dict[str, Any], media_type: str, received_ns: int, clock: Any = perf_counter_ns
) -> bytes:
    return b"".join(encode_pieces(response, media_type, received_ns, clock))


def data_of(array: Array) -> Any:
    return orjson.loads(encode(response_of(array), JSON_TYPE, 0))["outputs"][0]["data"]


def test_whole_json_response() -> None:
    result = RunResult([np.array([[0.25, 0.75]], np.float32)], TRACE, {"5": np.array([1, 2])})
    predictions = [[ClassPrediction("seven", 1, 0.75), ClassPrediction("one", 0, float("nan"))]]
    response = build_response("digits", "2", "abc", PORTS, result, predictions, TIMING)
    body = encode(response, JSON_TYPE, received_ns=2_000_000, clock=clock(10, 10.5))
    assert list(orjson.loads(body)) == list(response)
    assert orjson.loads(body) == {
        "model": "digits",
        "version": "2",
        "request_id": "abc",
        "predictions": [
            [
                {"label": "seven", "index": 1, "probability": 0.75},
                {"label": "one", "index": 0, "probability": "NaN"},
            ]
        ],
        "outputs": [{"name": "9", "shape": [1, 2], "dtype": "f32", "data": [[0.25, 0.75]]}],
        "timing": {"decode_ms": 1, "queue_ms": 0.5, "forward_ms": 2.1235, "encode_ms": 0.5, "total_ms": 8.5},
        "captured": [{"name": "5", "shape": [2], "dtype": "i64", "data": [1, 2]}],
        "trace": {
            "total_ms": 1.2346,
            "layers": [
                {
                    "index": 0,
                    "name": "relu",
                    "type": "nn.ReLU",
                    "inputs": [{"name": "1", "shape": [1, 2], "dtype": "f32"}],
                    "outputs": [
                        {
                            "name": "9",
                            "shape": [1, 2],
                            "dtype": "f32",
                            "statistics": {
                                "min": 0.0,
                                "max": "Infinity",
                                "mean": None,
                                "std": 0.5,
                                "nan": 1,
                                "inf": 2,
                            },
                        }
                    ],
                    "start_ms": 0.1,
                    "duration_ms": 1.0,
                    "share": 0.333333,
                    "multiply_adds": 7,
                    "bytes": 16,
                    "backend": "native",
                    "fused": ["act"],
                    "fused_into": None,
                    "precision": "f32",
                }
            ],
        },
    }


def test_parts_that_there_are_not() -> None:
    assert list(response_of(np.ones(1))) == ["model", "version", "request_id", "outputs", "timing"]


def test_every_dtype() -> None:
    codes = [code for code in PNNX_STORAGE if code not in ("c32", "bf16")]
    shapes: list[tuple[int, ...]] = [(), (0,), (2, 0), (3,), (2, 2)]

    def check(case: tuple[str, tuple[int, ...]]) -> None:
        code, shape = case
        array = np.arange(np.prod(shape, dtype=int)).reshape(shape).astype(PNNX_STORAGE[code])
        if array.dtype.kind == "c":
            array = array * np.array(1 + 0.5j, array.dtype)
        data = data_of(array)
        if array.dtype.kind == "c":
            pairs = np.array(data).reshape((*shape, 2))
            np.testing.assert_array_equal(pairs[..., 0] + 1j * pairs[..., 1], array)
        else:
            assert data == array.tolist()

    check_each(product(codes, shapes), check)


def test_orders_that_the_serialiser_does_not_take() -> None:
    array = np.arange(6, dtype=np.float32).reshape(2, 3)
    assert data_of(array.T) == array.T.tolist()
    assert data_of(array[:, ::2]) == array[:, ::2].tolist()
    assert data_of(array.astype(">f4")) == array.tolist()


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_not_finite(dtype: type) -> None:
    assert data_of(np.array([[np.nan, np.inf], [-np.inf, 0.5]], dtype)) == [
        ["NaN", "Infinity"],
        ["-Infinity", 0.5],
    ]
    assert data_of(np.array(np.nan, dtype)) == "NaN"


def test_not_finite_complex() -> None:
    assert data_of(np.array([complex(1, float("inf"))])) == [[1.0, "Infinity"]]


def test_shortest_digits() -> None:
    assert b'"data":[0.1]' in encode(response_of(np.array([0.1], np.float32)), JSON_TYPE, 0)


def test_captured_values_that_are_no_tensors() -> None:
    captured = {"t": (np.ones(1), 2, [True]), "f": float("inf"), "c": 1 - 2j, "n": None, "s": "text"}
    body = orjson.loads(encode(response_of(captured=captured), JSON_TYPE, 0))
    assert body["captured"] == [
        {
            "name": "t",
            "shape": None,
            "dtype": "tuple",
            "data": [
                {"shape": [1], "dtype": "f64", "data": [1.0]},
                {"shape": None, "dtype": "int", "data": 2},
                {"shape": None, "dtype": "list", "data": [{"shape": None, "dtype": "bool", "data": True}]},
            ],
        },
        {"name": "f", "shape": None, "dtype": "float", "data": "Infinity"},
        {"name": "c", "shape": None, "dtype": "complex", "data": [1.0, -2.0]},
        {"name": "n", "shape": None, "dtype": "NoneType", "data": None},
        {"name": "s", "shape": None, "dtype": "str", "data": "text"},
    ]


def test_npz() -> None:
    first, second = np.array([[np.nan, 0.5]], np.float32), np.array([1 + 2j])
    captured = {"5": np.arange(3), "t": (np.ones(2), 7)}
    response = response_of(first, second, trace=TRACE, captured=captured)
    body = encode(response, NPZ_TYPE, 0, clock(10, 10.5))
    with np.load(BytesIO(body)) as archive:
        assert set(archive.files) == {"0", "1", "captured/5", "captured/t/0", "meta"}
        np.testing.assert_array_equal(archive["0"], first, strict=True)
        np.testing.assert_array_equal(archive["1"], second, strict=True)
        np.testing.assert_array_equal(archive["captured/5"], captured["5"])
        np.testing.assert_array_equal(archive["captured/t/0"], np.ones(2))
        meta = orjson.loads(archive["meta"])
    assert meta["outputs"][0] == {"name": "0", "shape": [1, 2], "dtype": "f32"}
    assert meta["captured"][1]["data"] == [
        {"shape": [2], "dtype": "f64"},
        {"shape": None, "dtype": "int", "data": 7},
    ]
    assert meta["timing"]["encode_ms"] == 0.5
    assert meta["trace"]["layers"][0]["name"] == "relu"


def test_npz_with_names_of_numpys_own_arguments() -> None:
    ports = [Port("a", "file", None, None), Port("b", "meta", None, None)]
    response = build_response("m", "1", "r", ports, RunResult([np.ones(1), np.zeros(1)]), None, TIMING)
    with np.load(BytesIO(encode(response, NPZ_TYPE, 0))) as archive:
        assert archive["file"] == 1
        assert archive["meta.npy"] == 0
        assert orjson.loads(archive["meta"])["model"] == "m"


def test_outputs_that_only_the_run_could_count_are_numbered() -> None:
    response = build_response("m", "1", "r", PORTS[:1], RunResult([np.ones(1), np.zeros(1)]), None, TIMING)
    assert [output["name"] for output in response["outputs"]] == ["output_0", "output_1"]


def test_rows_that_were_run_in_parts_are_said() -> None:
    trace = RunTrace(1000.0, TRACE.layers, pieces=(8, 8, 1))
    body = build_response("m", "1", "r", PORTS, RunResult([np.ones(1)], trace), None, TIMING)
    assert body["trace"]["pieces"] == [8, 8, 1]
    whole = build_response("m", "1", "r", PORTS, RunResult([np.ones(1)], TRACE), None, TIMING)
    assert "pieces" not in whole["trace"]


def test_what_computed_a_value_and_whose_times_these_are() -> None:
    """Where a run was looked into, its response says so, and by which backend each value was computed."""
    operand = OperandTrace("9", (1, 2), "f32", STATISTICS, "native")
    layers = (TRACE.layers[0]._replace(outputs=(operand,)),)
    trace = RunTrace(1000.0, layers, is_observed=True)
    captured: dict[str, Any] = {"5": np.ones(1), "6": 2}
    result = RunResult([np.ones(1)], trace, captured, {"5": "native", "6": "numpy"})
    response = build_response("m", "1", "r", PORTS, result, None, TIMING, is_observed=True)
    body = orjson.loads(encode(response, JSON_TYPE, 0))
    assert [(one["name"], one["backend"]) for one in body["captured"]] == [("5", "native"), ("6", "numpy")]
    assert body["timing"]["observed"] is True
    assert body["trace"]["observed"] is True
    assert body["trace"]["layers"][0]["outputs"][0]["backend"] == "native"
    with np.load(BytesIO(encode(response, NPZ_TYPE, 0))) as archive:
        meta = orjson.loads(archive["meta"])
    assert meta["captured"][0] == {"name": "5", "backend": "native", "shape": [1], "dtype": "f64"}
    plain = orjson.loads(encode(response_of(np.ones(1), trace=TRACE), JSON_TYPE, 0))
    assert "observed" not in plain["timing"]
    assert "observed" not in plain["trace"]
