import numpy as np
import pytest

from engine.check.closeness import is_close
from engine.dtypes import Array


def boxes() -> Array:
    """Two rows of pixels beside 80 of probabilities that are close to 0, as of a YOLO network: (1, 82, 50)."""
    random = np.random.default_rng(0)
    pixels = random.uniform(0, 640, (1, 2, 50))
    pixels[0, :, 0] = 0.5
    return np.concatenate([pixels, random.uniform(0, 1e-5, (1, 80, 50))], axis=1)


def test_small_elements_are_measured_by_the_largest() -> None:
    wanted = np.array([[100.0, 1e-3]])
    assert is_close(wanted + 0.05, wanted, 1e-3)
    assert not is_close(wanted + 0.5, wanted, 1e-3)


def test_an_outlier_does_not_hide_the_others() -> None:
    wanted = np.full((1, 1, 64), 1.0)
    wanted[..., :8] = -1e9
    assert not is_close(np.where(wanted == 1, 4, wanted), wanted, 1e-3)


@pytest.mark.parametrize("turned", [False, True])
def test_values_of_several_kinds_are_measured_by_their_own(turned: bool) -> None:
    wanted, ours = boxes(), boxes()
    ours[0, 0, 0] += 0.02  # of 640 pixels
    wrong = boxes()
    wrong[0, 7, 3] += 1e-3  # a probability a hundred times too large
    if turned:
        wanted, ours, wrong = (array.transpose(0, 2, 1) for array in (wanted, ours, wrong))
    assert is_close(ours, wanted, 1e-3)
    assert not is_close(wrong, wanted, 1e-3)


def test_zeros_are_measured_by_the_others_where_these_are_small() -> None:
    wanted = np.full((1, 4, 64), 1e-6)
    wanted[0, 2] = 0
    wrong = wanted.copy()
    wrong[0, 2, 5] = 5e-5
    assert is_close(wanted + 5e-11, wanted, 1e-4)
    assert not is_close(wrong, wanted, 1e-4)


def test_whole_numbers_agree_exactly() -> None:
    wanted = np.array([[1_000_000, 2]])
    assert is_close(wanted, wanted, 1e-3)
    assert not is_close(wanted + 1, wanted, 1e-3)
