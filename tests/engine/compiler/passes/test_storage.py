"""Where tensors lie: parts in place, images channels last, results in arrays of their own."""

from pathlib import Path

import pytest

from engine.compiler.graph import Concatenation, Convolution, LoweredGraph, Node, Pool, Softmax
from engine.compiler.memory.view import BufferKind, View
from engine.compiler.passes.fusion import fuse
from engine.compiler.passes.storage import Copy, place
from tests.engine.compiler.plans import IMAGE, ROWS, conv, linear, lowered

POOL = (
    "nn.MaxPool2d p 1 1 {} {} ceil_mode=False dilation=(1,1) kernel_size=(2,2) padding=(0,0) "
    "return_indices=False stride=(2,2)"
)


def placed(folder: Path, *lines: str) -> LoweredGraph:
    graph = lowered(folder, *lines)
    fuse(graph)
    place(graph)
    return graph


def of_kind(graph: LoweredGraph, kind: type[Node]) -> list[Node]:
    return [node for node in graph.nodes if isinstance(node, kind)]


def view_of(node: Node) -> View:
    assert node.output.view is not None
    return node.output.view


def copies(graph: LoweredGraph) -> list[Copy]:
    return [node for node in graph.nodes if isinstance(node, Copy)]


def test_images_lie_channels_last(tmp_path: Path) -> None:
    graph = placed(tmp_path, IMAGE, conv("c", "x", "a"), POOL.format("a", "b"), "pnnx.Output out 1 0 b")
    for kind in (Convolution, Pool):
        ((node),) = of_kind(graph, kind)
        assert view_of(node).strides[1] == 1
    (copy,) = copies(graph)  # the caller gets it row by row
    assert copy.target.is_contiguous
    assert copy.target.buffer.kind is BufferKind.OUTPUT


def test_result_goes_straight_to_the_callers_array(tmp_path: Path) -> None:
    graph = placed(tmp_path, ROWS, linear("c", "x", "a"), "pnnx.Output out 1 0 a")
    assert copies(graph) == []
    assert graph.nodes[-1].output.view is not None
    assert graph.nodes[-1].output.view.buffer.kind is BufferKind.OUTPUT


def test_parts_are_made_where_they_belong(tmp_path: Path) -> None:
    graph = placed(
        tmp_path,
        IMAGE,
        conv("c", "x", "a"),
        conv("d", "x", "b"),
        "torch.cat k 2 1 a b y dim=1",
        "pnnx.Output o 1 0 y",
    )
    first, second = map(view_of, of_kind(graph, Convolution))
    (whole,) = map(view_of, of_kind(graph, Concatenation))
    assert first.buffer is second.buffer is whole.buffer
    assert (first.offset, second.offset) == (0, 4)
    assert first.strides == second.strides == whole.strides
    assert len(copies(graph)) == 1  # of the whole, for the caller


def test_parts_of_parts_are_made_where_they_belong(tmp_path: Path) -> None:
    graph = placed(
        tmp_path,
        IMAGE,
        conv("c", "x", "a"),
        conv("d", "x", "b"),
        "torch.cat k 2 1 a b y dim=1",
        conv("e", "x", "z"),
        "torch.cat l 2 1 z y w dim=1",
        "pnnx.Output o 1 0 w",
    )
    assert len({id(view_of(node).buffer) for node in of_kind(graph, Convolution)}) == 1
    assert [view_of(node).offset for node in of_kind(graph, Convolution)] == [4, 8, 0]


@pytest.mark.parametrize(
    ("lines", "count"),
    [
        (("torch.cat k 2 1 a a y dim=1",), 1),  # the second time it is a copy
        (("torch.cat k 2 1 a x y dim=1",), 1),  # an input lies where the caller put it
        (
            ("torch.cat k 2 1 a b y dim=0", "torch.cat l 2 1 a b z dim=1"),
            2,
        ),  # two wholes cannot share their parts
    ],
)
def test_parts_that_lie_elsewhere_are_copied(tmp_path: Path, lines: tuple[str, ...], count: int) -> None:
    square = "pnnx.Input in 0 1 x #x=(2,4,5,6)f32"
    ends = f"pnnx.Output o {len(lines)} 0 {' '.join('yz'[: len(lines)])}"
    work = ("F.relu r 1 1 x a $input=x", "F.tanh t 1 1 x b $input=x")
    graph = placed(tmp_path, square, *work, *lines, ends)
    parts = [copy for copy in copies(graph) if copy.target.buffer.kind is BufferKind.ARENA]
    assert len(parts) == count


def test_part_that_leaves_is_copied_out(tmp_path: Path) -> None:
    graph = placed(
        tmp_path, ROWS, "F.relu r 1 1 x a $input=x", "torch.cat k 2 1 a a y dim=1", "pnnx.Output o 2 0 a y"
    )
    assert {
        copy.target.buffer.slot for copy in copies(graph) if copy.target.buffer.kind is BufferKind.OUTPUT
    } == set(graph.leaving)


def test_vector_is_no_part_that_its_kernel_cannot_write(tmp_path: Path) -> None:
    """The channels of a pooled image lie side by side, but not in a whole whose columns do."""
    lines = (
        "pnnx.Input other 0 1 w #w=(1,4,1,5)f32",
        "pnnx.Input in 0 1 x #x=(1,3,1,1)f32",
        conv("c", "x", "a"),
        "Tensor.permute p 1 1 w v dims=(0,1,2,3) $input=w",
        "torch.cat k 2 1 v a y dim=3",
        "pnnx.Output o 1 0 y",
    )
    graph = placed(tmp_path, *lines)
    (node,) = of_kind(graph, Convolution)
    assert view_of(node).strides[1] == 1


def test_look_at_uneven_memory_copies(tmp_path: Path) -> None:
    lines = (
        "Tensor.permute p 1 1 x a dims=(0,2,1) $input=x",
        "Tensor.reshape s 1 1 a b shape=(2,12) $input=a",
        "F.relu r 1 1 b y $input=b",
    )
    graph = placed(tmp_path, ROWS, *lines, "pnnx.Output o 1 0 y")
    (copy,) = copies(graph)
    assert (copy.source.shape, copy.steps) == ((2, 4, 3), [2])
    looks = ("Tensor.reshape s 1 1 x a shape=(6,4) $input=x", "F.relu r 1 1 a y $input=a")
    assert copies(placed(tmp_path, ROWS, *looks, "pnnx.Output o 1 0 y")) == []


def test_what_kernels_do_not_make_is_not_copied_out(tmp_path: Path) -> None:
    lines = (
        "pnnx.Attribute w 0 1 k @data=(4)f32",
        "pnnx.Expression e 2 1 x k y expr=mul(@0,@1)",
        "pnnx.Output o 3 0 y k x",
    )
    assert copies(placed(tmp_path, ROWS, *lines)) == []


def test_softmax_lies_as_its_input_does_after_a_look(tmp_path: Path) -> None:
    """Boxes' distances of a detector: the softmax goes over what lies side by side, and leaves it there."""
    graph = placed(
        tmp_path,
        IMAGE,
        conv("c", "x", "a"),
        "Tensor.reshape r 1 1 a b shape=(2,2,2,30) $input=a",
        "torch.transpose t 1 1 b d dim0=1 dim1=2 $input=b",
        "F.softmax s 1 1 d y dim=1 $input=d",
        "F.relu q 1 1 y z $input=y",
        "pnnx.Output out 1 0 z",
    )
    ((softmax),) = of_kind(graph, Softmax)
    assert view_of(softmax).strides == (120, 1, 2, 4)


def test_channels_dealt_out_by_looks_stay_last(tmp_path: Path) -> None:
    """An exporter of dynamic sizes writes a shuffle of channels so."""
    graph = placed(
        tmp_path,
        IMAGE,
        conv("c", "x", "a"),
        "Tensor.reshape r 1 1 a b shape=(2,2,2,5,6) $input=a",
        "torch.transpose t 1 1 b d dim0=1 dim1=2 $input=b",
        "Tensor.reshape s 1 1 d y shape=(2,4,5,6) $input=d",
        POOL.format("y", "z"),
        "pnnx.Output out 1 0 z",
    )
    first, last = copies(graph)
    assert first.target.strides == (120, 2, 1, 24, 4)
    assert last.target.buffer.kind is BufferKind.OUTPUT
    ((pool),) = of_kind(graph, Pool)
    assert pool.inputs[0].view is not None
    assert pool.inputs[0].view.strides == (120, 1, 24, 4)
