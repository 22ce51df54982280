"""Regions: a call whose kernel could touch a byte beside its arguments is not made."""

from itertools import product
from math import prod
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.compiler.contraction.shapes import ConvShape, ImageStrides
from engine.compiler.contraction.streamed_convolution import StreamedConvolution
from engine.compiler.contraction.tile import Tile
from engine.compiler.emit.target import host_target
from engine.compiler.kernels.elementwise import copy
from engine.compiler.memory.region import Region, RegionError, check_apart, check_region, line
from engine.compiler.memory.view import Buffer, BufferKind, View, whole
from engine.compiler.memory.weights import PackedStore
from engine.compiler.selection import Selector
from engine.compiler.selection import convolution as selection
from engine.errors import CompileError
from tests.engine.compiler.plans import compiled

SIZE = 400
ARENA = Buffer(BufferKind.ARENA, SIZE)


def elements(shape: tuple[int, ...], strides: tuple[int, ...], offset: int = 0) -> set[int]:
    return {
        offset + sum(i * s for i, s in zip(place, strides, strict=True))
        for place in product(*map(range, shape))
    }


@st.composite
def views(draw: st.DrawFn) -> View:
    """A part of a whole whose axes lie in any order, perhaps sliced, perhaps broadcast."""
    shape = tuple(draw(st.lists(st.integers(1, 4), min_size=1, max_size=4)))
    view = whole(ARENA, shape, draw(st.permutations(range(len(shape)))))
    for axis, extent in enumerate(shape):
        start, step = draw(st.integers(0, extent - 1)), draw(st.integers(1, 2))
        view = view.sliced(axis, start, draw(st.integers(1, -(-(extent - start) // step))), step)
    return view


@settings(max_examples=500, deadline=None)
@given(views(), st.data())
def test_a_region_that_is_taken_lies_in_the_view(view: View, data: st.DataObject) -> None:
    rank = data.draw(st.integers(1, 4))
    shape = tuple(data.draw(st.integers(1, 5)) for _ in range(rank))
    some = st.sampled_from([0, 1, *view.strides, *(2 * stride for stride in view.strides)])
    region = Region(shape, tuple(data.draw(some) for _ in range(rank)))
    try:
        check_region(region, view)
    except RegionError:
        return
    assert elements(region.shape, region.strides, view.offset) <= elements(
        view.shape, view.strides, view.offset
    )


@settings(max_examples=200, deadline=None)
@given(views())
def test_all_of_a_view_and_each_smaller_part_are_taken(view: View) -> None:
    check_region(Region(view.shape, view.strides), view)
    for axis, extent in enumerate(view.shape):
        shape = (*view.shape[:axis], max(1, extent - 1), *view.shape[axis + 1 :])
        check_region(Region(shape, view.strides), view)
        if extent > 1 and view.strides[axis]:
            beyond = (*view.shape[:axis], extent + prod(view.shape), *view.shape[axis + 1 :])
            with pytest.raises(RegionError):
                check_region(Region(beyond, view.strides), view)


@settings(max_examples=500, deadline=None)
@given(views(), views())
def test_regions_that_are_apart_share_no_element(one: View, other: View) -> None:
    regions = Region(one.shape, one.strides, is_written=True), Region(other.shape, other.strides)
    try:
        check_apart(regions, (one, other))
    except RegionError:
        return
    assert not elements(one.shape, one.strides, one.offset) & elements(
        other.shape, other.strides, other.offset
    )


def test_parts_of_a_concatenation_are_apart() -> None:
    together = whole(ARENA, (2, 10, 3, 4), (0, 2, 3, 1))
    parts = together.sliced(1, 0, 4), together.sliced(1, 4, 6)
    regions = (
        Region(parts[0].shape, parts[0].strides, is_written=True),
        Region(parts[1].shape, parts[1].strides),
    )
    check_apart(regions, parts)
    with pytest.raises(RegionError, match="where another of its arguments"):
        check_apart(regions, (parts[0], together.sliced(1, 3, 6)))


def test_even_and_odd_places_are_apart() -> None:
    whole_line = whole(ARENA, (4, 10))
    even, odd = whole_line.sliced(1, 0, 5, 2), whole_line.sliced(1, 1, 5, 2)
    check_apart(
        (Region(even.shape, even.strides, is_written=True), Region(odd.shape, odd.strides)), (even, odd)
    )


def test_a_slice_with_steps_is_apart_from_a_part_before_it() -> None:
    whole_line = whole(ARENA, (4, 30))
    part, steps = whole_line.sliced(1, 0, 7), whole_line.sliced(1, 9, 7, 2)
    check_apart(
        (Region(part.shape, part.strides, is_written=True), Region(steps.shape, steps.strides)), (part, steps)
    )


@pytest.mark.parametrize("kind", [BufferKind.CONSTANT, BufferKind.VALUE])
def test_what_runs_only_read_is_never_written(kind: BufferKind) -> None:
    with pytest.raises(RegionError, match="only read"):
        check_region(line(3, is_written=True), whole(Buffer(kind, 3), (3,)))


def streamed(rows: int, columns: int) -> StreamedConvolution:
    """A 3x3 convolution of an input that has its padding around it, for an output of so many rows and columns."""
    steps = ((rows + 2) * (columns + 2) * 4, (columns + 2) * 4, 4)
    size = (rows, columns)
    return StreamedConvolution(
        shape=ConvShape(images=1, size=size, channels=4, filters=4, kernel=(3, 3)),
        strides=ImageStrides(steps, (rows * columns * 4, columns * 4, 4)),
        tile=Tile(1, 1),
        lanes=host_target().lanes,
    )


@pytest.mark.parametrize(("rows", "columns"), [(6, 7), (8, 7), (6, 9)])
def test_a_kernel_that_wants_padding_gets_no_input_without(rows: int, columns: int) -> None:
    """What made ResNet18 wrong at batch 2: the input has as many rows and columns as the output."""
    kernel = streamed(6, 7)
    selector = Selector(host_target(), 1, PackedStore())
    weights, bias = (
        whole(Buffer(BufferKind.CONSTANT, size), (size,)) for size in kernel.packing.packed_sizes
    )
    x, out = (
        selector.temporary((1, 4, rows, columns), (0, 2, 3, 1)),
        selector.temporary((1, 4, 6, 7), (0, 2, 3, 1)),
    )
    with pytest.raises(RegionError, match="StreamedConvolution"):
        selector.call(kernel, x, weights, bias, out)
    assert not selector.calls
    selector.call(kernel, selector.temporary((1, 4, 8, 9), (0, 2, 3, 1)), weights, bias, out)
    assert len(selector.calls) == 1


def test_channels_that_lie_apart_are_refused() -> None:
    kernel = streamed(2, 2)
    selector = Selector(host_target(), 1, PackedStore())
    weights, bias = (
        whole(Buffer(BufferKind.CONSTANT, size), (size,)) for size in kernel.packing.packed_sizes
    )
    out = selector.temporary((1, 4, 2, 2), (0, 2, 3, 1))
    with pytest.raises(RegionError):
        selector.call(kernel, selector.temporary((1, 4, 4, 4)), weights, bias, out)


def test_a_call_with_an_argument_missing_is_refused() -> None:
    selector = Selector(host_target(), 1, PackedStore())
    with pytest.raises(RegionError, match="takes 2 arguments; got 1"):
        selector.call(copy((3,), (1,), (1,)), selector.temporary((3,)))


def test_a_rule_that_forgets_the_padding_makes_no_program(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(selection, "_padded", lambda _, work: work.x)
    monkeypatch.setattr(Selector, "choose", lambda *_: "direct")
    conv = (
        "nn.Conv2d conv 1 1 x y bias=False dilation=(1,1) groups=1 in_channels=3 kernel_size=(3,3) "
        "out_channels=4 padding=(1,1) padding_mode=zeros stride=(1,1) @weight=(4,3,3,3)f32"
    )
    with pytest.raises(
        CompileError, match=r"nn.Conv2d conv: cannot be compiled: .*Convolution: a kernel takes axes"
    ):
        compiled(tmp_path, "pnnx.Input in 0 1 x #x=(2,3,5,6)f32", conv, "pnnx.Output out 1 0 y")


def test_a_constant_that_is_shorter_than_its_kernel_reads_is_refused() -> None:
    selector = Selector(host_target(), 1, PackedStore())
    short = selector.constant(np.zeros(2, np.float32))
    with pytest.raises(RegionError):
        selector.call(copy((3,), (1,), (1,)), short, selector.temporary((3,)))
