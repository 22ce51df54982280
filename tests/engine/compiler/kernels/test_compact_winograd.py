"""The Winograd kernel that transforms its own filters: against the numpy routine, and bit for bit against the other."""

from typing import Any

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
from engine.compiler.kernels.compact_winograd import CompactWinograd
from engine.compiler.kernels.winograd import Winograd
from engine.compiler.kernels.winograd_tiles import WinogradTiles
from engine.dtypes import Array
from tests.engine.compiler.harness import every_target, examples_of_kernels, run
from tests.engine.compiler.kernels.images import convolved, numbers, strides


def _result(
    made: Any, target: Target, x: Array, weight: Array, bias: Array | None, *operands: Array
) -> Array:
    out = np.zeros((len(x), *made.shape.size, made.shape.filters), np.float32)
    return run(made, target, x, *made.pack(weight, bias), out, *operands)[3]


def _fields(
    x: Array, filters: int, target: Target, pads: tuple[int, int] = (2, 2), **others: Any
) -> dict[str, Any]:
    """Return what both kernels take."""
    images, rows, columns, channels = x.shape
    size = rows + pads[0] - 2, columns + pads[1] - 2
    return {
        "shape": ConvShape(images=images, size=size, channels=channels, filters=filters, kernel=(3, 3)),
        "padding": ImplicitPadding((rows, columns), (pads[0] // 2, pads[1] // 2)),
        "strides": ImageStrides(strides(rows, columns, channels), strides(*size, filters)),
        "lanes": target.lanes,
    } | others


@every_target
@examples_of_kernels
@given(data=st.data())
def test_any_shape(target: Target, data: st.DataObject) -> None:
    """Whatever tiles, channels and filters there are, and however they are divided: the bits of the other kernel."""
    rows, columns = data.draw(st.integers(1, 11)), data.draw(st.integers(1, 11))
    pads = data.draw(st.tuples(st.integers(0, 4), st.integers(0, 4)))
    if min(rows + pads[0], columns + pads[1]) < 3:
        return
    channels, filters = (data.draw(st.sampled_from([1, 4, 7, 16, 18, 33])) for _ in range(2))
    x = numbers(data.draw(st.integers(1, 2)), rows, columns, channels)
    weight, bias = numbers(filters, channels, 3, 3, seed=1), numbers(filters, seed=2)
    tiles, is_dynamic = data.draw(st.integers(1, 9)), data.draw(st.booleans())
    fields = _fields(x, filters, target, pads, tiles=tiles, is_dynamic=is_dynamic)
    depth = -(-channels // target.lanes) * target.lanes
    made = CompactWinograd(
        **fields,
        tile=Tile(data.draw(st.integers(1, 5)), data.draw(st.integers(1, 2))),
        channels=data.draw(st.sampled_from([step for step in range(1, depth + 1) if depth % step == 0])),
        filter_parts=data.draw(st.integers(1, 5)),
    )
    out = _result(made, target, x, weight, bias)
    expected = convolved(x, weight, bias, padding=pads)
    np.testing.assert_allclose(out, expected, rtol=1e-4, atol=1e-4 * abs(expected).max())
    other = Winograd(**fields, tile=Tile(3, 2))
    np.testing.assert_array_equal(out, _result(other, target, x, weight, bias))


@pytest.mark.parametrize("filter_parts", [1, 2, 3])
@every_target
def test_epilogue(target: Target, filter_parts: int) -> None:
    x, weight, bias = numbers(1, 7, 6, 9), numbers(18, 9, 3, 3, seed=1), numbers(18, seed=2)
    expected = convolved(x, weight, bias, padding=(2, 2))
    other = numbers(*expected.shape, seed=3)
    epilogue = Epilogue(
        apply("relu", apply("add", Leaf(0), Leaf(1))), (EpilogueOperand(Broadcast.FULL, strides(7, 6, 18)),)
    )
    made = CompactWinograd(
        **_fields(x, 18, target, tiles=4),
        tile=Tile(4, 1),
        epilogue=epilogue,
        channels=target.lanes,
        filter_parts=filter_parts,
    )
    out = _result(made, target, x, weight, bias, other)
    np.testing.assert_allclose(out, np.maximum(expected + other, 0), rtol=1e-4, atol=1e-4)


def test_zeros_among_the_weights_change_no_bit() -> None:
    target = host_target()
    x, weight = numbers(1, 7, 7, 16), numbers(16, 16, 3, 3, seed=1)
    x[..., 3], weight[:, 5], weight[4] = 0.0, -0.0, 0.0
    fields = _fields(x, 16, target, tiles=4)
    compact = CompactWinograd(**fields, tile=Tile(4, 1), channels=16)
    one, other = (
        _result(made, target, x, weight, None) for made in (compact, Winograd(**fields, tile=Tile(4, 1)))
    )
    np.testing.assert_array_equal(one.view(np.uint32), other.view(np.uint32))


def test_batches_of_all_sizes_share_code() -> None:
    target = host_target()
    weight, bias = numbers(18, 9, 3, 3, seed=1), numbers(18, seed=2)
    kept = []
    for images, tiles in ((3, 5), (1, 4), (7, 28), (2, 1)):
        x = numbers(images, 7, 6, 9, seed=images)
        fields = _fields(x, 18, target, tiles=tiles)
        made = CompactWinograd(**fields, tile=Tile(4, 1), channels=target.lanes, filter_parts=2)
        kept.append(cache.compile(made, target))
        expected = convolved(x, weight, bias, padding=(2, 2))
        np.testing.assert_allclose(
            _result(made, target, x, weight, bias), expected, rtol=1e-4, atol=1e-4 * abs(expected).max()
        )
    assert len({code.address for code in kept}) == 1


def test_packed_weights_are_those_of_the_model() -> None:
    """Nothing is kept beside them, but for what fills the last vector."""
    target = host_target()
    fields = _fields(numbers(1, 7, 7, 32), 64, target, tiles=4)
    made = CompactWinograd(**fields, tile=Tile(4, 1), channels=32)
    transformed: WinogradTiles = Winograd(**fields, tile=Tile(4, 4))
    assert made.packed_sizes == (64 * 32 * 9, 64)
    assert transformed.packed_sizes == (64 * 32 * 36, 64)
    weight = numbers(64, 32, 3, 3)
    np.testing.assert_array_equal(np.sort(made.pack(weight, None)[0].ravel()), np.sort(weight.ravel()))
