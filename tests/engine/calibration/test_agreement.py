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
