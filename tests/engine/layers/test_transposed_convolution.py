from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.dtypes import Array
from engine.errors import ArgumentError
from engine.kernels import blocks
from engine.layers.convolution import transposed_convolve, transposed_shape
from tests.engine.kernels.cases import check_golden

Call = tuple[Any, ...]


def naive(
    tensor: Array,
    weight: Array,
    stride: list[int],
    padding: list[int],
    output_padding: list[int],
    groups: int,
    dilation: list[int],
) -> Array:
    axes = zip(tensor.shape[2:], weight.shape[2:], stride, padding, output_padding, dilation, strict=True)
    sizes = [(n - 1) * s - 2 * p + d * (k - 1) + o + 1 for n, k, s, p, o, d in axes]
    result = np.zeros((len(tensor), weight.shape[1] * groups, *sizes))
    for item, channel, *place in np.ndindex(tensor.shape):
        group = channel // (len(weight) // groups)
        for out, *tap in product(range(weight.shape[1]), *map(range, weight.shape[2:])):
            at = [
                q * s + t * d - p for q, s, t, d, p in zip(place, stride, tap, dilation, padding, strict=True)
            ]
            if all(0 <= position < size for position, size in zip(at, sizes, strict=True)):
                product_ = tensor[(item, channel, *place)] * weight[(channel, out, *tap)]
                result[(item, group * weight.shape[1] + out, *at)] += product_
    return result


def test_matches_pytorch() -> None:
    def call(tensor: Array, weight: Array, bias: Array | None = None, **arguments: object) -> Array:
        return transposed_convolve(tensor, weight, bias, **arguments)  # type: ignore[arg-type]

    check_golden("transposed_convolve", call)


@st.composite
def convolutions(draw: st.DrawFn) -> Call:
    rank = draw(st.integers(1, 2))

    def several(low: int, high: int) -> list[int]:
        return [draw(st.integers(low, high)) for _ in range(rank)]

    groups, channels, outputs = (draw(st.integers(1, 3)) for _ in range(3))
    kernel, stride, dilation = several(1, 3), several(1, 3), several(1, 2)
    padding = [draw(st.integers(0, d * (k - 1) // 2)) for d, k in zip(dilation, kernel, strict=True)]
    output_padding = [draw(st.integers(0, max(s, d) - 1)) for s, d in zip(stride, dilation, strict=True)]
    rng = np.random.default_rng(draw(st.integers(0, 99)))
    tensor = rng.standard_normal((draw(st.integers(0, 2)), groups * channels, *several(1, 4)))
    weight = rng.standard_normal((groups * channels, outputs, *kernel))
    return tensor, weight, stride, padding, output_padding, groups, dilation


@given(convolutions(), st.integers(1, 200), st.integers(1, 5))
@settings(max_examples=80)
def test_spreads_every_element_in_blocks_of_any_size(call: Call, block: int, columns: int) -> None:
    tensor, weight, *rest = call
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(blocks, "BLOCK_BYTES", block)
        patch.setattr(blocks, "MIN_COLUMNS", columns)
        result = transposed_convolve(tensor, weight, None, *rest)
    np.testing.assert_allclose(result, naive(*call), rtol=1e-9, atol=1e-9)


def test_takes_views_it_may_not_write_to() -> None:
    rng = np.random.default_rng(0)
    tensor = rng.standard_normal((5, 6, 2, 1)).astype(np.float32).transpose(3, 2, 0, 1)
    weight = rng.standard_normal((3, 3, 4, 2)).astype(np.float32).transpose(3, 2, 0, 1)
    tensor.flags.writeable = weight.flags.writeable = False
    arguments = ((2, 2), (1, 1), (0, 1), 1, (1, 1))
    expected = transposed_convolve(tensor.copy(), weight.copy(), None, *arguments)
    np.testing.assert_array_equal(transposed_convolve(tensor, weight, None, *arguments), expected)


@pytest.mark.parametrize(
    ("argument", "change"),
    [
        ("input", {"input_shape": (1, 6, 9)}),
        ("input", {"input_shape": (1, 5, 9, 9)}),
        ("input", {"padding": (10, 0)}),
        ("stride", {"stride": (2,)}),
        ("stride", {"stride": (2, 0)}),
        ("padding", {"padding": (-1, 0)}),
        ("output_padding", {"output_padding": (2, 0)}),
        ("output_padding", {"output_padding": (-1, 0)}),
        ("dilation", {"dilation": (1, 0)}),
        ("kernel_size", {"weight_shape": (6, 2, 0, 3)}),
        ("groups", {"groups": 0}),
        ("groups", {"groups": 4}),
    ],
)
def test_refuses_what_does_not_fit(argument: str, change: dict[str, object]) -> None:
    fitting = {
        "input_shape": (1, 6, 9, 9),
        "weight_shape": (6, 2, 3, 3),
        "stride": (2, 1),
        "padding": (1, 0),
        "output_padding": (1, 0),
        "groups": 3,
        "dilation": (1, 1),
    }
    assert transposed_shape(**fitting) == (1, 6, 18, 11)  # type: ignore[arg-type]
    with pytest.raises(ArgumentError) as error:
        transposed_shape(**(fitting | change))  # type: ignore[arg-type]
    assert error.value.argument == argument


def test_refuses_a_bias_of_another_length() -> None:
    with pytest.raises(ArgumentError, match=r"bias: has shape \(3,\); expected \(2,\)"):
        transposed_convolve(np.zeros((1, 1, 4)), np.zeros((1, 2, 3)), np.zeros(3), (1,), (0,), (0,), 1, (1,))
