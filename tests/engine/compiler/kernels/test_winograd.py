"""The Winograd kernel against the numpy routine."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.compiler.contraction.epilogue import Broadcast, Epilogue, EpilogueOperand
from engine.compiler.contraction.shapes import ConvShape, ImageStrides, ImplicitPadding
from engine.compiler.contraction.tile import Tile
from engine.compiler.emit.jit import cache
from engine.compiler.emit.pointwise import Leaf, apply
from engine.compiler.emit.target import Target, host_target
from engine.compiler.kernels.winograd import Winograd
from engine.compiler.kernels.winograd_transforms import FILTER, PATCH, RESULT, SIDE
from tests.engine.compiler.harness import every_target, examples_of_kernels, run
from tests.engine.compiler.kernels.images import ACTIVATIONS, convolved, numbers, strides


def test_matrices_convolve() -> None:
    """A^T [ (G g G^T) * (B^T d B) ] A is the convolution of a patch, in double precision."""
    b, g, a = (np.asarray(matrix) for matrix in (PATCH, FILTER, RESULT))
    generator = np.random.default_rng(0)
    patch, taps = generator.standard_normal((SIDE, SIDE)), generator.standard_normal((3, 3))
    result = a @ ((g @ taps @ g.T) * (b @ patch @ b.T)) @ a.T
    windows = np.lib.stride_tricks.sliding_window_view(patch, (3, 3))
    np.testing.assert_allclose(result, np.einsum("ijkl,kl->ij", windows, taps), atol=1e-12)


@every_target
@examples_of_kernels
@given(data=st.data())
def test_any_shape(target: Target, data: st.DataObject) -> None:
    """Images that tiles do not divide, channels and filters beside whole vectors, any padding and partition."""
    rows, columns = data.draw(st.integers(1, 11)), data.draw(st.integers(1, 11))
    pads = data.draw(st.tuples(st.integers(0, 4), st.integers(0, 4)))
    size = rows + pads[0] - 2, columns + pads[1] - 2
    if min(size) < 1:
        return
    channels, filters = (data.draw(st.sampled_from([1, 4, 7, 16, 18, 33])) for _ in range(2))
    x = numbers(data.draw(st.integers(1, 2)), rows, columns, channels)
    weight, bias = numbers(filters, channels, 3, 3, seed=1), numbers(filters, seed=2)
    made = Winograd(
        shape=ConvShape(images=len(x), size=size, channels=channels, filters=filters, kernel=(3, 3)),
        padding=ImplicitPadding((rows, columns), (pads[0] // 2, pads[1] // 2)),
        strides=ImageStrides(strides(rows, columns, channels), strides(*size, filters)),
        tiles=data.draw(st.integers(1, 9)),
        tile=Tile(data.draw(st.integers(1, 5)), data.draw(st.integers(1, 2))),
        lanes=target.lanes,
        prefetches_weights=data.draw(st.booleans()),
        is_dynamic=data.draw(st.booleans()),
    )
    expected = convolved(x, weight, bias, padding=pads)
    *_, out = run(made, target, x, *made.pack(weight, bias), np.zeros_like(expected))
    np.testing.assert_allclose(out, expected, rtol=1e-4, atol=1e-4 * abs(expected).max())


@every_target
def test_rows_beyond_the_last_tile_have_room(target: Target) -> None:
    """A register tile computes more rows than a chunk has; they take more than the border has of scratch memory."""
    filters = 8 * target.lanes
    x, weight = numbers(1, 1, 1, 1), numbers(filters, 1, 3, 3, seed=1)
    made = Winograd(
        shape=ConvShape(images=1, size=(1, 1), channels=1, filters=filters, kernel=(3, 3)),
        padding=ImplicitPadding((1, 1), (1, 1)),
        strides=ImageStrides(strides(1, 1, 1), strides(1, 1, filters)),
        tiles=1,
        tile=Tile(4, 2),
        lanes=target.lanes,
    )
    expected = convolved(x, weight, None, padding=(2, 2))
    *_, out = run(made, target, x, *made.pack(weight, None), np.zeros_like(expected))
    np.testing.assert_allclose(out, expected, rtol=1e-4, atol=1e-4 * abs(expected).max())


@every_target
def test_relative_error(target: Target) -> None:
    """The additions of the transforms cost accuracy: below 1e-5 of the largest result, at 64 channels."""
    x, weight = numbers(1, 12, 12, 64), numbers(32, 64, 3, 3, seed=1)
    expected = convolved(x, weight.astype(np.float64).astype(np.float32), None, padding=(2, 2))
    made = Winograd(
        shape=ConvShape(images=1, size=(12, 12), channels=64, filters=32, kernel=(3, 3)),
        padding=ImplicitPadding((12, 12), (1, 1)),
        strides=ImageStrides(strides(12, 12, 64), strides(12, 12, 32)),
        tiles=9,
        tile=Tile(3, 1),
        lanes=target.lanes,
    )
    *_, out = run(made, target, x, *made.pack(weight, None), np.zeros_like(expected))
    assert abs(out - expected).max() < 1e-5 * abs(expected).max()


@every_target
@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_epilogue(target: Target, activation: str) -> None:
    x, weight, bias = numbers(1, 7, 6, 9), numbers(18, 9, 3, 3, seed=1), numbers(18, seed=2)
    expected = convolved(x, weight, bias, padding=(2, 2))
    other = numbers(*expected.shape, seed=3)
    epilogue = Epilogue(
        apply(activation, apply("add", Leaf(0), Leaf(1))),
        (EpilogueOperand(Broadcast.FULL, strides(7, 6, 18)),),
    )
    made = Winograd(
        shape=ConvShape(images=1, size=(7, 6), channels=9, filters=18, kernel=(3, 3)),
        padding=ImplicitPadding((7, 6), (1, 1)),
        strides=ImageStrides(strides(7, 6, 9), strides(7, 6, 18)),
        tiles=2,
        tile=Tile(2, 1),
        lanes=target.lanes,
        epilogue=epilogue,
    )
    out = run(made, target, x, *made.pack(weight, bias), np.zeros_like(expected), other)[3]
    np.testing.assert_allclose(out, ACTIVATIONS[activation](expected + other), rtol=1e-4, atol=1e-4)


def _of(
    images: int, tiles: int, *, prefetches_weights: bool = False, size: tuple[int, int] = (7, 6)
) -> Winograd:
    """Return a kernel of so many images, which are partitioned into chunks of so many tiles."""
    return Winograd(
        shape=ConvShape(images=images, size=size, channels=9, filters=18, kernel=(3, 3)),
        padding=ImplicitPadding(size, (1, 1)),
        strides=ImageStrides(strides(*size, 9), strides(*size, 18)),
        tiles=tiles,
        tile=Tile(3, 1),
        lanes=host_target().lanes,
        prefetches_weights=prefetches_weights,
    )


def test_batches_of_all_sizes_share_code() -> None:
    weight, bias = numbers(18, 9, 3, 3, seed=1), numbers(18, seed=2)
    addresses = set()
    kept = []
    for images, tiles in ((3, 5), (1, 4), (7, 28), (2, 1)):
        made = _of(images, tiles)
        x = numbers(images, 7, 6, 9, seed=images)
        expected = convolved(x, weight, bias, padding=(2, 2))
        kept.append(cache.compile(made, host_target()))
        addresses.add(kept[-1].address)
        *_, out = run(made, host_target(), x, *made.pack(weight, bias), np.zeros_like(expected))
        np.testing.assert_allclose(out, expected, rtol=1e-4, atol=1e-4 * abs(expected).max())
    assert len(addresses) == 1


def test_code_is_shared_by_nothing_else() -> None:
    """What a strip prefetches depends on the number of strips; where a pixel lies, on the size of images."""
    others = (
        _of(1, 4, prefetches_weights=True),
        _of(1, 7, prefetches_weights=True),
        _of(1, 4, size=(6, 7)),
        _of(1, 4),
    )
    codes = [cache.compile(made, host_target()) for made in others]
    assert len({code.address for code in codes}) == len(codes)
    assert _of(5, 7, prefetches_weights=True).general == others[1].general
