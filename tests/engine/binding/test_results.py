"""Which of a layer's results an operator's outputs are."""

import numpy as np
import pytest

from engine.binding.results import declared_specs, kept_results
from engine.pnnx import TensorType
from engine.spec import UNKNOWN, TensorSpec

F32, I64 = np.dtype(np.float32), np.dtype(np.int64)
SEQUENCE, HIDDEN, CELL = TensorSpec((5, 2, 4), F32), TensorSpec((1, 2, 3), F32), TensorSpec((1, 2, 4), F32)
RESULTS = [SEQUENCE, HIDDEN, CELL]


def declared(spec: TensorSpec) -> TensorType:
    return TensorType(spec.shape, "f32")


@pytest.mark.parametrize(
    "kept",
    [(0, 1, 2), (0,), (1,), (2,), (0, 2), (1, 2), (1, 2, 0), (2, 1, 0)],
    ids=lambda kept: "".join(map(str, kept)),
)
def test_outputs_are_matched_by_shape_whatever_is_dropped_and_in_any_order(kept: tuple[int, ...]) -> None:
    assert kept_results(RESULTS, [declared(RESULTS[place]) for place in kept]) == kept


def test_dtypes_show_as_well() -> None:
    results = [TensorSpec((2,), F32), TensorSpec((2,), I64)]
    assert kept_results(results, [TensorType((2,), "i64")]) == (1,)
    assert kept_results(results, [TensorType((2,), "null")]) == (0,)


def test_equal_results_come_in_order() -> None:
    assert kept_results([SEQUENCE, CELL, CELL], [declared(CELL), declared(CELL)]) == (1, 2)
    assert kept_results([CELL, CELL, CELL], [declared(CELL)]) == (0,)


def test_open_extents_fit_any() -> None:
    assert kept_results(RESULTS, [TensorType((1, None, 4), "f32")]) == (2,)


@pytest.mark.parametrize("output", [TensorType((9,), "f32"), TensorType((5, 2, 4), "f64"), None])
def test_the_first_results_are_taken_where_nothing_shows(output: TensorType | None) -> None:
    assert kept_results(RESULTS, [output]) == (0,)


def test_results_that_depend_on_the_data_fit_anything() -> None:
    assert kept_results([UNKNOWN, UNKNOWN], [declared(CELL)]) == (0,)


def test_declared_types_become_specs_or_nothing() -> None:
    types = {"x": TensorType((2, None), "f32"), "y": None, "z": TensorType((2,), "null")}
    (spec,) = declared_specs(["x"], types) or []
    assert (spec.shape[0], spec.dtype) == (2, F32)
    assert declared_specs(["x", "y"], types) is None
    assert declared_specs(["x", "z"], types) is None
    assert declared_specs(["x", "unheard of"], types) is None
