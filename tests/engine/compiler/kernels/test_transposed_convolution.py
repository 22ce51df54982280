"""The transposed convolution kernel against the numpy routine, over shapes, windows, groups and epilogues."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from engine.compiler.contraction.epilogue import Broadcast, Epilogue, EpilogueOperand
from engine.compiler.contraction.shapes import ImageStrides
from engine.compiler.contraction.tile import Tile
from engine.compiler.emit.pointwise import Leaf, apply
from engine.compiler.emit.target import Target
from engine.compiler.kernels.transposed_convolution import TransposedConvolutionKernel
from engine.compiler.kernels.transposed_geometry import TransposedAxis, TransposedShape
from engine.dtypes import Array
from engine.layers.convolution import transposed_convolve
from tests.engine.compiler.harness import every_target, examples_of_kernels, run
from tests.engine.compiler.kernels.images import numbers, strides

Axes = tuple[TransposedAxis, TransposedAxis]


def reference(
    x: Array, weight: Array, bias: Array | None, axes: Axes, extra: tuple[int, int] = (0, 0), groups: int = 1
) -> Array:
    """Return the numpy routine's result, channels last."""
    step, cut, gap = ([getattr(axis, name) for axis in axes] for name in ("stride", "padding", "dilation"))
    y = transposed_convolve(x.transpose(0, 3, 1, 2), weight, bias, step, cut, extra, groups, gap)
    return np.ascontiguousarray(y.transpose(0, 2, 3, 1))


def kernel_for(
    target: Target, x: Array, size: tuple[int, int], weight: Array, axes: Axes, groups: int = 1,
    epilogue: Epilogue | None = None, is_dynamic: bool = False,
) -> tuple[TransposedConvolutionKernel, Array]:  # fmt: skip
    """Return the tuned kernel for an input that lies without gaps, and that input as the kernel wants it padded."""
    halos = [axis.halo(n, m) for axis, n, m in zip(axes, x.shape[1:3], size, strict=True)]
    padded = np.pad(x, ((0, 0), *halos, (0, 0)))
    filters = weight.shape[1]
    made = TransposedConvolutionKernel.tuned(
        target,
        shape=TransposedShape(
            images=x.shape[0],
            size=size,
            channels=x.shape[3] // groups,
            filters=filters,
            groups=groups,
            axes=axes,
        ),
        halo=(halos[0][0], halos[1][0]),
        strides=ImageStrides(strides(*padded.shape[1:]), strides(*size, filters * groups)),
        epilogue=epilogue or Epilogue(),
        is_dynamic=is_dynamic,
    )
    return made, padded


@st.composite
def geometries(draw: st.DrawFn) -> tuple[TransposedAxis, int, int]:
    """Draw an axis: its geometry, the input's size and what is added to the output."""
    kernel, stride, dilation = draw(st.integers(1, 4)), draw(st.integers(1, 5)), draw(st.integers(1, 4))
    x_size, extra = draw(st.integers(1, 9)), draw(st.integers(0, max(stride, dilation) - 1))
    whole = (x_size - 1) * stride + (kernel - 1) * dilation + 1 + extra
    return (
        TransposedAxis(kernel, stride, draw(st.integers(0, min(4, (whole - 1) // 2))), dilation),
        x_size,
        extra,
    )


@every_target
@examples_of_kernels
@given(down=geometries(), across=geometries(), data=st.data())
def test_any_shape(
    target: Target,
    down: tuple[TransposedAxis, int, int],
    across: tuple[TransposedAxis, int, int],
    data: st.DataObject,
) -> None:
    """Any kernel, stride, padding, output padding, dilation and groups, filters beside whole vectors."""
    axes, extra = (down[0], across[0]), (down[2], across[2])
    groups, channels = data.draw(st.integers(1, 2)), data.draw(st.integers(1, 5))
    filters = data.draw(st.sampled_from([1, 3, 8, 16, 21, 40]))
    x = numbers(data.draw(st.integers(1, 2)), down[1], across[1], channels * groups)
    weight = numbers(channels * groups, filters, axes[0].kernel, axes[1].kernel, seed=1)
    bias = numbers(filters * groups, seed=2)
    expected = reference(x, weight, bias, axes, extra, groups)
    size = (expected.shape[1], expected.shape[2])
    is_dynamic = data.draw(st.booleans())
    made, padded = kernel_for(target, x, size, weight, axes, groups, is_dynamic=is_dynamic)
    made = replace(
        made,
        tile=Tile(data.draw(st.integers(1, 4)), data.draw(st.integers(1, 2))),
        rows=data.draw(st.integers(1, made.rows)),
        blocks=data.draw(st.integers(1, 3)),
    )
    *_, out = run(made, target, padded, *made.pack(weight, bias), np.zeros_like(expected))
    np.testing.assert_allclose(out, expected, rtol=1e-4, atol=1e-4)


@every_target
@pytest.mark.parametrize(("kernel", "padding"), [(2, 0), (4, 1)])
def test_doubling_an_image(target: Target, kernel: int, padding: int) -> None:
    """The windows that decoders use; without overlap no padding is needed. NaN and infinity go on."""
    axis = TransposedAxis(kernel, 2, padding, 1)
    x, weight = np.abs(numbers(1, 9, 20, 18)) + 1, np.abs(numbers(18, 24, kernel, kernel, seed=1)) + 1
    x[0, 3, 4, 5], x[0, 7, 9, 11] = np.nan, np.inf
    full, bias = numbers(1, 18, 40, 24, seed=2), numbers(24, seed=3)
    operand = EpilogueOperand(Broadcast.FULL, strides(18, 40, 24))
    epilogue = Epilogue(apply("add", apply("relu", Leaf(0)), Leaf(1)), (operand,))
    made, padded = kernel_for(target, x, (18, 40), weight, (axis, axis), epilogue=epilogue)
    assert (padded.shape == x.shape) == (kernel == 2)
    out = run(made, target, padded, *made.pack(weight, bias), np.zeros_like(full), full)[3]
    expected = np.maximum(reference(x, weight, bias, (axis, axis)), 0) + full
    np.testing.assert_allclose(out, expected, rtol=1e-4, atol=1e-4)


@every_target
def test_writes_part_of_a_wider_tensor(target: Target) -> None:
    """Strides wider than the filters: what lies between stays as it was."""
    axis = TransposedAxis(2, 2, 0, 1)
    x, weight = numbers(1, 3, 4, 6), numbers(6, 5, 2, 2, seed=1)
    made, _ = kernel_for(target, x, (6, 8), weight, (axis, axis))
    made = replace(made, strides=replace(made.strides, out=strides(6, 8, 13)))
    *_, out = run(made, target, x, *made.pack(weight, None), np.full((1, 6, 8, 13), 7, np.float32))
    np.testing.assert_allclose(out[..., :5], reference(x, weight, None, (axis, axis)), rtol=1e-4, atol=1e-4)
    assert (out[..., 5:] == 7).all()


@every_target
@pytest.mark.parametrize(("stride", "dilation"), [(5, 2), (5, 3), (6, 4), (3, 3), (2, 3)])
def test_strides_and_dilations_with_any_divisor(target: Target, stride: int, dilation: int) -> None:
    """Which taps a position meets is a matter of arithmetic modulo the stride."""
    axis = TransposedAxis(4, stride, 2, dilation)
    x, weight = numbers(1, 4, 5, 3), numbers(3, 6, 4, 4, seed=1)
    expected = reference(x, weight, None, (axis, axis))
    made, padded = kernel_for(target, x, (expected.shape[1], expected.shape[2]), weight, (axis, axis))
    *_, out = run(made, target, padded, *made.pack(weight, None), np.zeros_like(expected))
    np.testing.assert_allclose(out, expected, rtol=1e-4, atol=1e-4)


def test_large_layers_have_chunks_for_threads() -> None:
    """Work is split where it is worth it."""
    target, axis = Target("avx512", 16, 32, True, "", ""), TransposedAxis(2, 2, 0, 1)
    x, weight = np.empty((1, 64, 64, 64), np.float32), np.empty((64, 32, 2, 2), np.float32)
    made, _ = kernel_for(target, x, (128, 128), weight, (axis, axis))
    assert 8 <= made.chunks <= 64


@given(
    kernel=st.integers(1, 4),
    stride=st.integers(1, 6),
    padding=st.integers(0, 4),
    dilation=st.integers(1, 5),
    size=st.integers(1, 30),
)
@example(kernel=2, stride=3, padding=0, dilation=1, size=4)
def test_reach_is_that_of_the_definition(
    kernel: int, stride: int, padding: int, dilation: int, size: int
) -> None:
    """An input place adds to the outputs at place * stride + tap * dilation - padding."""
    met = [
        place
        for place in range(-20, 40)
        for tap in range(kernel)
        if 0 <= place * stride + tap * dilation - padding < size
    ]
    assert TransposedAxis(kernel, stride, padding, dilation).reach(size) == (min([0, *met]), max([0, *met]))
