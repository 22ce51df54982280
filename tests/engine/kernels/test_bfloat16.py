"""Rounding to bfloat16, bit by bit and against PyTorch."""

import numpy as np
import pytest

from engine.kernels import matrix
from engine.kernels.bfloat16 import (
    LARGEST,
    UNIT_ROUNDOFF,
    bfloat16_bits,
    operands_rounded,
    rounded_to_bfloat16,
)
from engine.kernels.matrix import matmul

CASES = [
    (0x3F800000, 0x3F80),  # 1
    (0x3F808000, 0x3F80),  # halfway: the even one is below
    (0x3F808001, 0x3F81),
    (0x3F818000, 0x3F82),  # halfway: the even one is above
    (0xBF818000, 0xBF82),
    (0x3FFFFFFF, 0x4000),  # the exponent grows
    (0x00000000, 0x0000),
    (0x80000000, 0x8000),
    (0x00008001, 0x0001),  # a subnormal number
    (0x7F7F0000, 0x7F7F),  # the largest
    (0x7F7F7FFF, 0x7F7F),
    (0x7F7FFFFF, 0x7F7F),  # the largest float32 would become an infinity
    (0xFF7FFFFF, 0xFF7F),
    (0x7F800000, 0x7F80),  # infinities
    (0xFF800000, 0xFF80),
    (0x7F800001, 0x7FC0),  # a NaN that only the lower half distinguishes from an infinity
    (0xFFC00000, 0xFFC0),
]


@pytest.mark.parametrize(("bits", "wanted"), CASES)
def test_bits(bits: int, wanted: int) -> None:
    number = np.array([bits], np.uint32).view(np.float32)
    assert hex(bfloat16_bits(number)[0]) == hex(wanted)
    assert rounded_to_bfloat16(number).view(np.uint32)[0] == wanted << 16


def test_errors_are_at_most_half_a_unit() -> None:
    numbers = np.random.default_rng(0).standard_normal((100, 50)).astype(np.float32)
    rounded = rounded_to_bfloat16(numbers)
    assert rounded.shape == numbers.shape
    assert np.abs(rounded / numbers - 1).max() <= UNIT_ROUNDOFF
    np.testing.assert_array_equal(rounded_to_bfloat16(rounded), rounded)
    assert rounded_to_bfloat16(np.array([3.4e38], np.float32))[0] == LARGEST


def test_it_is_as_pytorch_rounds() -> None:
    torch = pytest.importorskip("torch")
    bits = np.random.default_rng(1).integers(0, 1 << 32, 100_000, np.uint32)
    numbers = bits.view(np.float32)
    numbers = numbers[np.isfinite(numbers) & (np.abs(numbers) < LARGEST)]
    wanted = torch.from_numpy(numbers).to(torch.bfloat16).to(torch.float32).numpy()
    np.testing.assert_array_equal(rounded_to_bfloat16(numbers), wanted)


def test_products_round_their_operands_only_where_that_is_asked_for() -> None:
    a, b = np.array([[1.00390625]], np.float32), np.array([[3.0]], np.float32)
    exact = matmul(a, b)
    with operands_rounded():
        assert matmul(a, b)[0, 0] == 3.0
        with operands_rounded(False):
            np.testing.assert_array_equal(matmul(a, b), exact)
    np.testing.assert_array_equal(matmul(a, b), exact)
    assert exact[0, 0] == np.float32(3.01171875)


@pytest.mark.parametrize("shape", [(), (0,), (70_001,), (3, 5), (300, 400), (2, 3, 4)])
def test_arrays_of_any_shape_and_order(shape: tuple[int, ...]) -> None:
    """Also what is rounded in parts, and what lies otherwise in memory."""
    numbers = np.random.default_rng(3).standard_normal(shape).astype(np.float32)
    bits = bfloat16_bits(numbers).astype(np.uint32) << np.uint32(16)
    rounded = rounded_to_bfloat16(numbers)
    np.testing.assert_array_equal(rounded.view(np.uint32), bits)
    np.testing.assert_array_equal(rounded_to_bfloat16(numbers.T).T, rounded)


def test_layers_round_their_weights_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(4)
    x, weight, bias = (
        random.standard_normal(shape).astype(np.float32) for shape in ((2, 3, 40), (33, 40), 33)
    )
    wanted = rounded_to_bfloat16(x) @ rounded_to_bfloat16(weight).T + bias
    monkeypatch.setattr(matrix, "_PART", 100)
    with operands_rounded():
        np.testing.assert_allclose(matrix.linear(x, weight, bias), wanted, rtol=1e-5, atol=1e-5)
        np.testing.assert_allclose(
            matrix.linear(x, weight[0], None), (wanted - bias)[..., 0], rtol=1e-5, atol=1e-5
        )
