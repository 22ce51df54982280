import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.quantization.tensor_scale import TensorScale, scale_of


def test_numbers_are_rounded_half_to_even_and_saturated_as_pytorch_does() -> None:
    scale = TensorScale(0.5, 10)
    real = np.array([-9, -5, -0.25, 0, 0.25, 0.75, 1.25, 122.5, 200], np.float32)
    # torch.quantize_per_tensor(real, 0.5, 10, torch.quint8).int_repr()
    assert scale.integers(real).tolist() == [0, 0, 10, 10, 10, 12, 12, 255, 255]


def test_a_sum_with_the_zero_point_is_rounded_as_pytorch_does() -> None:
    real = np.array([-9, -5, -0.25, 0, 0.25, 0.75, 1.25, 122.5, 200], np.float32)
    # torch.quantize_per_tensor(real, 0.5, 11, torch.quint8).int_repr()
    assert TensorScale(0.5, 11, rounds_sum=True).integers(real).tolist() == [
        0,
        1,
        10,
        11,
        12,
        12,
        14,
        255,
        255,
    ]
    assert TensorScale(0.5, 11).integers(real).tolist() == [0, 1, 11, 11, 11, 13, 13, 255, 255]


@pytest.mark.parametrize(
    ("zero_point", "wanted"),
    [
        # torch.quantize_per_tensor(real, 1.0, zero_point, torch.qint8).int_repr()
        (0, [1, -1, 1, 2, 101, 127, -4, -128, 127]),
        (-5, [-4, -6, -4, -2, 96, 127, -8, -128, 127]),
        (-128, [-128, -128, -126, -126, -27, 127, -128, -128, 127]),
    ],
)
def test_signed_sums_close_to_ties_and_what_is_no_number_are_rounded_as_pytorch_does(
    zero_point: int, wanted: list[int]
) -> None:
    real = np.array(
        [0.5000001, -0.5000001, 1.4999999, 2.5, 100.50001, np.nan, -3.5, -np.inf, np.inf], np.float32
    )
    scale = TensorScale(1.0, zero_point + 128, rounds_sum=True, lowest=-128)
    assert (scale.integers(real).astype(int) - 128).tolist() == wanted


def test_what_is_no_number_has_an_integer_too() -> None:
    real = np.array([np.nan, np.inf, -np.inf, 3e38, -3e38], np.float32)
    with np.errstate(over="ignore"):
        assert TensorScale(1e-30, 7).integers(real).tolist() == [0, 255, 0, 255, 0]
    assert TensorScale(1e30, 7).integers(real).tolist() == [0, 255, 0, 255, 0]


@given(st.floats(2.0**-60, 2.0**60, width=32), st.integers(0, 255))
def test_integers_come_back_as_they_were(step: float, zero_point: int) -> None:
    scale = TensorScale(step, zero_point)
    integers = np.arange(256, dtype=np.uint8)
    assert (scale.integers(scale.real(integers)) == integers).all()


@pytest.mark.parametrize(
    ("low", "high"), [(-1.0, 3.0), (0.5, 2.0), (-3.0, -1.0), (0.0, 0.0), (-1e-38, 1e-38)]
)
def test_ranges_hold_their_ends_and_zero(low: float, high: float) -> None:
    scale = scale_of(low, high)
    least, greatest = scale.limits
    assert least <= low + scale.scale / 2
    assert greatest >= high - scale.scale / 2
    assert scale.rounded(np.zeros(1, np.float32))[0] == 0


def test_numbers_within_the_range_are_off_by_half_a_step_at_most() -> None:
    scale = scale_of(-2.0, 6.0)
    real = np.linspace(-2, 6, 10_001, dtype=np.float32)
    assert np.abs(scale.rounded(real) - real).max() <= scale.scale * 0.5001
