"""Pointwise work moves into what it works on, wherever nobody else needs that."""

import gc
import weakref
from pathlib import Path

import numpy as np
import pytest

from engine.compiler.emit.pointwise import MAX_NODES, Leaf, Literal, apply, size
from engine.compiler.graph import Convolution, EpilogueNode, Linear, LoweredGraph
from engine.compiler.passes.fusion import MAX_OPERANDS, fuse, spreads
from tests.engine import models
from tests.engine.compiler.plans import (
    IMAGE,
    ROWS,
    batch_norm,
    conv,
    kinds_of,
    linear,
    lowered,
    weights_of,
    work_of,
)

RELU = "F.relu {0} 1 1 {1} {2} $input={1}"


def fused(folder: Path, *lines: str) -> LoweredGraph:
    graph = lowered(folder, *lines)
    fuse(graph)
    return graph


def relu(name: str, x: str, y: str) -> str:
    return RELU.format(name, x, y)


def add(name: str, x: str, other: str, y: str) -> str:
    return f"pnnx.Expression {name} 2 1 {x} {other} {y} expr=add(@0,@1)"


def out(*names: str) -> str:
    return f"pnnx.Output out {len(names)} 0 {' '.join(names)}"


def test_activation_moves_into_convolution(tmp_path: Path) -> None:
    graph = fused(tmp_path, IMAGE, conv("c", "x", "a"), relu("r", "a", "b"), out("b"))
    (node,) = work_of(graph)
    assert isinstance(node, Convolution)
    assert node.steps == [1, 2]
    assert node.epilogue == apply("relu", Leaf(0))
    assert graph.tensors[graph.leaving[0]] is node.output


def test_residual_addition_moves_into_the_later_convolution(tmp_path: Path) -> None:
    graph = fused(
        tmp_path,
        IMAGE,
        IMAGE.replace("in 0 1 x #x", "other 0 1 w #w"),
        conv("c", "x", "a"),
        conv("d", "w", "b"),
        add("s", "a", "b", "y"),
        relu("r", "y", "z"),
        out("z"),
    )
    first, last = work_of(graph)
    assert isinstance(last, Convolution)
    assert (first.steps, last.steps) == ([2], [3, 4, 5])
    assert last.inputs[1] is first.output
    assert last.epilogue == apply("relu", apply("add", Leaf(1), Leaf(0)))


PAD = "nn.ZeroPad2d p 1 1 x a padding=(0,1,2,3)"


def test_zeros_become_the_padding_of_all_convolutions_that_read_them(tmp_path: Path) -> None:
    graph = fused(tmp_path, IMAGE, PAD, conv("c", "a", "b"), conv("d", "a", "e"), out("b", "e"))
    first, last = work_of(graph)
    for node in (first, last):
        assert isinstance(node, Convolution)
        assert node.padding == (3, 1, 4, 2)
        assert node.inputs == [graph.nodes[0].output]
    assert (first.steps, last.steps) == ([2, 1], [3])


@pytest.mark.parametrize(
    "lines",
    [
        (PAD.replace("0,1", "0,-1"), conv("c", "a", "b"), out("b")),
        (PAD.replace("ZeroPad2d", "ReflectionPad2d"), conv("c", "a", "b"), out("b")),
        (PAD.replace("ZeroPad2d", "ConstantPad2d") + " value=1.0", conv("c", "a", "b"), out("b")),
        (PAD, conv("c", "a", "b"), out("b", "a")),
        (PAD, conv("c", "a", "b"), relu("r", "a", "e"), out("b", "e")),
        (PAD, conv("c", "a", "b"), "torch.cumprod s 1 1 a e dim=1 $input=a", out("b", "e")),
        (
            "F.pad p 1 1 x a mode=constant pad=(1,1,1,1,-1,1) value=0.0 $input=x",
            conv("c", "a", "b"),
            out("b"),
        ),
    ],
    ids=["crop", "mode", "value", "leaves", "read by others", "read by numpy", "channels"],
)
def test_margins_that_stay(tmp_path: Path, lines: tuple[str, ...]) -> None:
    kinds = kinds_of(fused(tmp_path, IMAGE, *lines))
    assert kinds[:2] == ["Pad", "Convolution"]


def test_activation_with_a_gate_is_one_epilogue(tmp_path: Path) -> None:
    lines = (
        conv("c", "x", "a"),
        "F.sigmoid s 1 1 a b $input=a",
        "pnnx.Expression m 2 1 a b y expr=mul(@0,@1)",
    )
    (node,) = work_of(fused(tmp_path, IMAGE, *lines, out("y")))
    assert isinstance(node, Convolution)
    assert node.epilogue == apply("mul", Leaf(0), apply("sigmoid", Leaf(0)))


def test_batch_normalization_is_folded_into_weights(tmp_path: Path) -> None:
    lines = (conv("c", "x", "a"), batch_norm("n", "a", "b"), relu("r", "b", "y"))
    (plain,) = work_of(fused(tmp_path, IMAGE, lines[0], out("a")))
    (node,) = work_of(fused(tmp_path, IMAGE, *lines, out("y")))
    assert isinstance(node, Convolution)
    assert isinstance(plain, Convolution)
    assert node.epilogue == apply("relu", Leaf(0))
    mean = variance = np.linspace(0.5, 1.5, 4, dtype=np.float32)
    scale = 1 / np.sqrt(variance + 1e-5)
    np.testing.assert_allclose(node.weight, plain.weight * scale[:, None, None, None], rtol=1e-6)
    assert node.bias is not None
    np.testing.assert_allclose(node.bias, -mean * scale, rtol=1e-6)
    assert plain.weight is not node.weight


def test_batch_normalization_after_an_activation_is_part_of_the_epilogue(tmp_path: Path) -> None:
    (node,) = work_of(
        fused(tmp_path, IMAGE, conv("c", "x", "a"), relu("r", "a", "b"), batch_norm("n", "b", "y"), out("y"))
    )
    assert isinstance(node, Convolution)
    assert node.bias is None
    assert node.epilogue == apply("add", apply("mul", apply("relu", Leaf(0)), Leaf(1)), Leaf(2))


@pytest.mark.parametrize(
    ("lines", "kinds"),
    [
        ((relu("r", "a", "b"), out("a", "b")), ["Convolution", "Pointwise"]),
        (
            (relu("r", "a", "b"), "prim::TupleConstruct t 2 1 a b y", out("y")),
            ["Convolution", "Pointwise", "Fallback"],
        ),
        (
            (relu("r", "a", "b"), "F.tanh t 1 1 a c $input=a", out("b", "c")),
            ["Convolution", "Pointwise", "Pointwise"],
        ),
        (
            (relu("r", "a", "b"), "torch.cumprod t 1 1 a c dim=1 $input=a", out("b", "c")),
            ["Convolution", "Pointwise", "Fallback"],
        ),
        (("Tensor.permute p 1 1 a b dims=(0,2,3,1) $input=a", relu("r", "b", "c"), out("c")), None),
    ],
    ids=["leaves", "leaves in a tuple", "used twice", "read by numpy", "seen otherwise"],
)
def test_what_others_need_stays(tmp_path: Path, lines: tuple[str, ...], kinds: list[str] | None) -> None:
    graph = fused(tmp_path, IMAGE, conv("c", "x", "a"), *lines)
    assert kinds_of(graph) == (kinds or ["Convolution", "Reshape", "Pointwise"])


def test_what_spreads_the_result_stays(tmp_path: Path) -> None:
    wide = "pnnx.Input other 0 1 w #w=(7,2,3,4)f32"
    graph = fused(tmp_path, ROWS, wide, linear("c", "x", "a"), add("s", "a", "w", "y"), out("y"))
    assert kinds_of(graph) == ["Linear", "Pointwise"]


@pytest.mark.parametrize(
    ("shape", "is_fused"),
    [
        ((2, 4, 5, 6), True),
        ((4, 1, 1), True),
        ((2, 4, 1, 1), True),
        ((1,), True),
        ((5, 6), False),
        ((2, 1, 1, 1), False),
    ],
)
def test_operand_that_spreads_over_channels(tmp_path: Path, shape: tuple[int, ...], is_fused: bool) -> None:
    other = f"pnnx.Input other 0 1 w #w=({','.join(map(str, shape))})f32"
    graph = fused(tmp_path, IMAGE, other, conv("c", "x", "a"), add("s", "a", "w", "y"), out("y"))
    assert kinds_of(graph) == (["Convolution"] if is_fused else ["Convolution", "Pointwise"])


def test_numbers_are_equal_where_kernels_are() -> None:
    assert Literal(0.0) != Literal(-0.0)
    assert Literal(float("nan")) == Literal(float("nan"))
    assert len({Literal(1.0), Literal(1.0), Literal(-0.0), Literal(0.0)}) == 3


def test_spreads() -> None:
    assert spreads((4,), (2, 3, 4), 2)
    assert not spreads((3, 1), (2, 3, 4), 2)
    assert not spreads((3, 4), (2, 3, 4), 2)
    assert spreads((3, 4), (1, 3, 4), 2)


def test_batch_normalization_across_rows_is_not_folded_into_columns(tmp_path: Path) -> None:
    """Rows and features are as many, but they are not the same."""
    rows = "pnnx.Input in 0 1 x #x=(2,4,4)f32"
    norm = batch_norm("n", "a", "y").replace("2d", "1d")
    first, *rest = work_of(fused(tmp_path, rows, linear("c", "x", "a"), norm, out("y")))
    assert isinstance(first, Linear)
    assert first.bias is None
    assert len(rest) == 1


def test_expressions_do_not_grow_without_end(tmp_path: Path) -> None:
    lines = [
        f"pnnx.Expression e{i} 1 1 {'x' if not i else f'b{i - 1}'} b{i} expr=mul(@0,@0)" for i in range(30)
    ]
    nodes = work_of(fused(tmp_path, IMAGE, *lines, out("b29")))
    assert all(isinstance(node, EpilogueNode) and size(node.epilogue) <= MAX_NODES for node in nodes)
    assert sum(len(node.steps) for node in nodes) == 30


def test_epilogue_reads_so_many_operands(tmp_path: Path) -> None:
    others = [f"pnnx.Input i{i} 0 1 w{i} #w{i}=(4,1,1)f32" for i in range(MAX_OPERANDS + 3)]
    names = ["a", *(f"s{i}" for i in range(MAX_OPERANDS + 3))]
    sums = [add(f"e{i}", names[i], f"w{i}", names[i + 1]) for i in range(MAX_OPERANDS + 3)]
    graph = fused(tmp_path, IMAGE, *others, conv("c", "x", "a"), *sums, out(names[-1]))
    assert all(
        len(node.inputs) - node.own <= MAX_OPERANDS
        for node in work_of(graph)
        if isinstance(node, EpilogueNode)
    )


def branch(name: str, y: str, size: tuple[int, int], pad: tuple[int, int], **options: object) -> str:
    """Return a convolution of `x`, an image of four channels."""
    values = {"stride": (1, 1), "dilation": (1, 1), "groups": 1, "bias": True} | options
    words = " ".join(f"{key}={value}".replace(" ", "") for key, value in values.items())
    shape = (4, 4 // int(str(values["groups"])), *size)
    return (
        f"nn.Conv2d {name} 1 1 x {y} {words} in_channels=4 out_channels=4 padding_mode=zeros "
        f"kernel_size={size} padding={pad} ".replace(", ", ",")
        + f"@weight={shape}f32".replace(" ", "")
        + (" @bias=(4)f32" if values["bias"] else "")
    )


FOUR = "pnnx.Input in 0 1 x #x=(2,4,9,8)f32"


@pytest.mark.parametrize("stride", [(1, 1), (2, 3)])
@pytest.mark.parametrize("groups", [1, 2, 4])
@pytest.mark.parametrize(
    ("sizes", "pads", "dilations"),
    [
        (((3, 3), (1, 1)), ((1, 1), (0, 0)), (1, 1)),
        (((1, 1), (3, 3), (3, 3)), ((0, 0), (1, 1), (1, 1)), (1, 1, 1)),
        (((5, 3), (3, 1), (1, 3)), ((2, 1), (1, 0), (0, 1)), (1, 1, 1)),
        (((7, 7), (5, 5), (3, 3), (1, 1)), ((3, 3), (2, 2), (1, 1), (0, 0)), (1, 1, 1, 1)),
        (((3, 3), (3, 3), (1, 1)), ((2, 2), (2, 2), (0, 0)), (2, 2, 1)),
        (((5, 5), (1, 1)), ((4, 4), (0, 0)), (2, 3)),
    ],
)
def test_parallel_convolutions_become_one(
    tmp_path: Path,
    stride: tuple[int, int],
    groups: int,
    sizes: tuple[tuple[int, int], ...],
    pads: tuple[tuple[int, int], ...],
    dilations: tuple[int, ...],
) -> None:
    lines, total = [], "y0"
    for i, (size_, pad, step) in enumerate(zip(sizes, pads, dilations, strict=True)):
        options = {"stride": stride, "dilation": (step, step), "groups": groups, "bias": i != 1}
        lines.append(branch(f"c{i}", f"y{i}", size_, pad, **options))
        if i:
            lines.append(add(f"s{i}", total, f"y{i}", f"t{i}"))
            total = f"t{i}"
    if stride == (1, 1):
        lines += [batch_norm("n", "x", "m"), add("last", "m", total, "z")]
        total = "z"
    text = [FOUR, *lines, relu("r", total, "end"), out("end")]
    (node,) = work_of(fused(tmp_path, *text))
    assert isinstance(node, Convolution)
    assert sorted(node.steps) == list(range(1, len(lines) + 2))
    graph = models.make_graph(
        tmp_path, "\n".join(text), weights_of("\n".join(text)), backend="native", verify="always"
    )
    rng = np.random.default_rng(7)
    x = rng.standard_normal((2, 4, 9, 8), dtype=np.float32)
    (native,) = graph.run([x]).outputs
    assert graph.verification.refused == ()
    reference = models.make_graph(tmp_path, "\n".join(text), weights_of("\n".join(text)), backend="numpy")
    (wanted,) = reference.run([x]).outputs
    np.testing.assert_allclose(native, wanted, rtol=1e-5, atol=1e-5 * np.abs(wanted).max())


def test_added_weights_are_freed_with_their_graph(tmp_path: Path) -> None:
    lines = (branch("c", "a", (3, 3), (1, 1)), branch("d", "b", (1, 1), (0, 0)), add("s", "a", "b", "y"))
    gc.disable()  # which would free them some time later
    try:
        graph = fused(tmp_path, FOUR, *lines, relu("r", "y", "z"), out("z"))
        (node,) = work_of(graph)
        assert isinstance(node, Convolution)
        weight = weakref.ref(node.weight)
        del node
        graph.dissolve()
        assert weight() is None
    finally:
        gc.enable()


@pytest.mark.parametrize(
    "lines",
    [
        (branch("d", "b", (3, 3), (1, 1)), add("s", "a", "b", "y"), out("y", "b")),
        (branch("d", "b", (3, 3), (1, 1)), relu("r", "b", "e"), add("s", "a", "b", "y"), out("y", "e")),
        (branch("d", "b", (3, 3), (1, 1)), relu("r", "b", "e"), add("s", "a", "e", "y"), out("y")),
        (branch("d", "b", (3, 3), (1, 1)), "pnnx.Expression s 2 1 a b y expr=mul(@0,@1)", out("y")),
        (
            branch("d", "b", (3, 3), (1, 1)),
            "pnnx.Expression s 2 1 a b y expr=add(@0,mul(@0,@1))",
            out("y"),
        ),
        (branch("d", "b", (3, 3), (1, 1), groups=2), add("s", "a", "b", "y"), out("y")),
        (branch("d", "b", (3, 3), (2, 2), dilation=(2, 2)), add("s", "a", "b", "y"), out("y")),
        (branch("d", "b", (5, 1), (2, 0)), add("s", "a", "b", "y"), out("y")),
    ],
    ids=[
        "leaves",
        "read by others",
        "activation",
        "product",
        "read twice",
        "groups",
        "dilation",
        "not within",
    ],
)
def test_parallel_convolutions_that_stay(tmp_path: Path, lines: tuple[str, ...]) -> None:
    kinds = kinds_of(fused(tmp_path, FOUR, branch("c", "a", (3, 3), (1, 1)), *lines))
    assert kinds.count("Convolution") == 2
