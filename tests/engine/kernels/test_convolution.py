from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.dtypes import Array
from engine.errors import ArgumentError
from engine.kernels import blocks
from engine.kernels.convolution import convolution_shape, convolve
from tests.engine.kernels.cases import check_golden

Call = tuple[Any, ...]


def naive(
    tensor: Array,
    weight: Array,
    stride: list[int],
    padding: list[tuple[int, int]],
    dilation: list[int],
    groups: int,
) -> Array:
    padded = np.pad(tensor, [(0, 0), (0, 0), *padding])
    counts = [
        (size - d * (k - 1) - 1) // s + 1
        for size, k, s, d in zip(padded.shape[2:], weight.shape[2:], stride, dilation, strict=True)
    ]
    batch, channels, outputs = len(tensor), weight.shape[1], len(weight)
    result = np.zeros((batch, outputs, *counts))
    for item, out, *place in product(range(batch), range(outputs), *map(range, counts)):
        first = out // (outputs // groups) * channels
        for channel, *tap in product(range(channels), *map(range, weight.shape[2:])):
            at = [p * s + t * d for p, s, t, d in zip(place, stride, tap, dilation, strict=True)]
            result[(item, out, *place)] += padded[(item, first + channel, *at)] * weight[(out, channel, *tap)]
    return result


def test_matches_pytorch() -> None:
    def call(
        tensor: Array, weight: Array, bias: Array | None = None, *, padding: list[int], **arguments: Any
    ) -> Array:
        return convolve(tensor, weight, bias, padding=[(pad, pad) for pad in padding], **arguments)

    check_golden("convolve", call)


@st.composite
def convolutions(draw: st.DrawFn) -> Call:
    rank = draw(st.integers(1, 3))

    def several(low: int, high: int) -> list[int]:
        return [draw(st.integers(low, high)) for _ in range(rank)]

    groups, channels, outputs = (draw(st.integers(1, 3)) for _ in range(3))
    kernel, stride, dilation = several(1, 3), several(1, 3), several(1, 2)
    padding = list(zip(several(0, 2), several(0, 2), strict=True))
    rng = np.random.default_rng(draw(st.integers(0, 99)))
    spatial = [d * (k - 1) + 1 + extra for d, k, extra in zip(dilation, kernel, several(0, 3), strict=True)]
    tensor = rng.standard_normal((draw(st.integers(0, 2)), groups * channels, *spatial))
    weight = rng.standard_normal((groups * outputs, channels, *kernel))
    return tensor, weight, stride, padding, dilation, groups


@given(convolutions())
@settings(max_examples=60)
def test_sums_every_window(
    call: Call,
) -> None:
    tensor, weight, *rest = call
    np.testing.assert_allclose(convolve(tensor, weight, None, *rest), naive(*call), rtol=1e-9, atol=1e-9)


@given(convolutions(), st.integers(1, 400), st.integers(1, 5))
@settings(max_examples=60)
def test_blocks_of_any_size_give_the_same(call: Call, block: int, columns: int) -> None:
    tensor, weight, *rest = call
    bias = np.arange(len(weight)) / 2
    whole = convolve(tensor, weight, bias, *rest)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(blocks, "BLOCK_BYTES", block)
        patch.setattr(blocks, "MIN_COLUMNS", columns)
        np.testing.assert_allclose(convolve(tensor, weight, bias, *rest), whole, rtol=1e-9, atol=1e-9)


def test_pads_each_side_by_its_own() -> None:
    tensor, weight = np.arange(1.0, 5).reshape(1, 1, 4), np.ones((1, 1, 2))
    padded = convolve(tensor, weight, None, (1,), [(0, 1)], (1,))
    np.testing.assert_array_equal(padded, [[[3, 5, 7, 4]]])


def test_takes_views_it_may_not_write_to() -> None:
    rng = np.random.default_rng(0)
    tensor = rng.standard_normal((5, 6, 2, 1)).astype(np.float32).transpose(3, 2, 0, 1)
    weight = rng.standard_normal((3, 3, 4, 2)).astype(np.float32).transpose(2, 3, 0, 1)
    tensor.flags.writeable = weight.flags.writeable = False
    before = tensor.copy()
    arguments = ((1, 1), [(1, 1), (1, 1)], (1, 1))
    expected = convolve(tensor.copy(), weight.copy(), None, *arguments)
    np.testing.assert_array_equal(convolve(tensor, weight, None, *arguments), expected)
    np.testing.assert_array_equal(tensor, before)


def test_a_pointwise_convolution_leaves_its_input_alone() -> None:
    tensor = np.ones((1, 2, 3), np.float32)
    tensor.flags.writeable = False
    output = convolve(tensor, np.eye(2, dtype=np.float32)[..., None], None, (1,), [(0, 0)], (1,))
    assert not np.shares_memory(tensor, output)


@pytest.mark.parametrize(
    ("argument", "change"),
    [
        ("input", {"input_shape": (1, 4, 9)}),
        ("input", {"input_shape": (1, 3, 9, 9)}),
        ("stride", {"stride": (1,)}),
        ("stride", {"stride": (1, 0)}),
        ("padding", {"padding": ((1, 1),)}),
        ("padding", {"padding": ((1, 1), (-1, 0))}),
        ("dilation", {"dilation": (0, 1)}),
        ("kernel_size", {"dilation": (1, 6)}),
        ("kernel_size", {"weight_shape": (6, 2, 0, 3)}),
        ("groups", {"groups": 0}),
        ("groups", {"groups": 4}),
    ],
)
def test_refuses_what_does_not_fit(argument: str, change: dict[str, object]) -> None:
    fitting = {
        "input_shape": (1, 4, 9, 9),
        "weight_shape": (6, 2, 3, 3),
        "stride": (1, 2),
        "padding": ((1, 1), (0, 2)),
        "dilation": (1, 1),
        "groups": 2,
    }
    assert convolution_shape(**fitting) == (1, 6, 9, 5)  # type: ignore[arg-type]
    with pytest.raises(ArgumentError) as error:
        convolution_shape(**(fitting | change))  # type: ignore[arg-type]
    assert error.value.argument == argument


def test_refuses_a_bias_of_another_length() -> None:
    with pytest.raises(ArgumentError, match=r"bias: has shape \(3,\); expected \(2,\)"):
        convolve(np.zeros((1, 1, 4)), np.zeros((2, 1, 3)), np.zeros(3), (1,), [(0, 0)], (1,))
