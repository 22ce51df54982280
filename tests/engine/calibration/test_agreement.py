import numpy as np
import pytest

from engine.calibration.agreement import compare_runs

EXACT = np.array([[-np.inf, 3, 4, np.nan]], np.float32)


def test_what_is_not_finite_in_float32_does_not_count() -> None:
    ours = np.array([[-np.inf, 3, 4.5, 0]], np.float32)
    outcome = compare_runs([[ours]], [[EXACT]])
    assert outcome.error == pytest.approx(0.1)
    assert outcome.ratio == pytest.approx(20)
    assert compare_runs([[EXACT]], [[EXACT]]).error == 0


def test_what_is_finite_in_float32_alone_is_lost() -> None:
    outcome = compare_runs([[np.full((1, 4), np.nan, np.float32)]], [[EXACT]])
    assert outcome.error == np.inf
    assert outcome.ratio == -np.inf


def test_rows_of_nan_have_no_class() -> None:
    exact = np.array([[1, 2, 3], [np.nan, 5, 6], [3, 2, -np.inf], [0, 1, 0]], np.float32)
    ours = np.array([[1, 2, 3], [9, 5, 6], [3, 2, 1], [1, 0, 0]], np.float32)
    assert compare_runs([[ours]], [[exact]]).agreement == pytest.approx(2 / 3)
    assert compare_runs([[ours[1:2]]], [[exact[1:2]]]).agreement == 1
