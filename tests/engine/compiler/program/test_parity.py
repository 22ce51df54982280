"""What compiled graphs do at the edges: results and ownership of memory are those of the numpy backend."""

from pathlib import Path

import numpy as np
import pytest

from engine import TraceLevel
from engine.dtypes import Array
from tests.engine.compiler.program.parity import (
    LINEAR,
    WEIGHTS,
    X,
    assert_same,
    left_to_numpy,
    open_both,
    text,
    weights,
)
from tests.engine.models import make_graph

GRAPHS = {
    "a result leaves and goes on": "F.relu r 1 1 a b $input=a|F.tanh t 1 1 b c $input=b|pnnx.Output o 2 0 b c",
    "a linear layer's result leaves and goes on": f"{LINEAR}|F.relu r 1 1 b c $input=b|pnnx.Output o 2 0 b c",
    "one operand leaves twice": "F.relu r 1 1 a b $input=a|pnnx.Output o 2 0 b b",
    "one operand leaves by two operators": "F.relu r 1 1 a b $input=a|pnnx.Output o 1 0 b|pnnx.Output p 1 0 b",
    "an input leaves as well": "F.relu r 1 1 a b $input=a|pnnx.Output o 2 0 a b",
    "a constant leaves as well": (
        "pnnx.Attribute w 0 1 k @data=(4)f32|pnnx.Expression e 2 1 a k b expr=mul(@0,@1)|pnnx.Output o 2 0 b k"
    ),
    "a view of an input leaves": "Tensor.permute p 1 1 a b dims=(2,0,1) $input=a|pnnx.Output o 1 0 b",
    "numpy reads a view of an input": (
        "Tensor.permute p 1 1 a b dims=(2,0,1) $input=a|torch.cumprod c 1 1 b c dim=1 $input=b|pnnx.Output o 2 0 c b"
    ),
    "numpy reads a view of a result": (
        "F.relu r 1 1 a b $input=a|Tensor.select s 1 1 b c dim=1 index=2 $input=b|"
        "torch.cumprod c 1 1 c d dim=1 $input=c|F.relu q 1 1 d e $input=d|pnnx.Output o 2 0 e d"
    ),
    "numpy reads a result that another reads too": (
        "F.relu r 1 1 a b $input=a|torch.cumprod c 1 1 b c dim=1 $input=b|F.tanh t 1 1 b d $input=b|"
        "pnnx.Output o 2 0 c d"
    ),
    "a tuple leaves": "F.relu r 1 1 a b $input=a|prim::TupleConstruct t 2 1 b a c|pnnx.Output o 1 0 c",
    "a tuple of tuples leaves": (
        "F.relu r 1 1 a b $input=a|prim::TupleConstruct t 2 1 b a c|F.tanh h 1 1 b d $input=b|"
        "prim::TupleConstruct u 3 1 c d b e|pnnx.Output o 2 0 e b"
    ),
    "numpy reads what a tuple holds": (
        "F.relu r 1 1 a b $input=a|torch.cumprod c 1 1 b d dim=1 $input=b|prim::TupleConstruct t 3 1 b d a e|"
        "F.tanh h 1 1 d f $input=d|pnnx.Output o 2 0 e f"
    ),
    "a list leaves": "F.relu r 1 1 a b $input=a|pnnx.Expression l 2 1 a b c expr=[@1,@0,@1]|pnnx.Output o 1 0 c",
    "chunks leave": "F.relu r 1 1 a b $input=a|torch.chunk c 1 2 b c d chunks=2 dim=2 $input=b|pnnx.Output o 2 0 d c",
    "a list is unpacked": (
        "F.relu r 1 1 a b $input=a|aten::unsafe_chunk c 1 1 b l chunks=2 dim=2 $input=b|"
        "prim::ListUnpack u 1 2 l c d|pnnx.Expression e 2 1 c d f expr=mul(@0,@1)|pnnx.Output o 2 0 f d"
    ),
    "a list of parts of an input is unpacked": (
        "aten::unsafe_split_with_sizes c 1 1 a l split_size_or_sections=(1,2) dim=1 $input=a|"
        "prim::TupleUnpack u 1 2 l c d|F.tanh t 1 1 d e $input=d|pnnx.Output o 3 0 c d e"
    ),
    "a list is unpacked and leaves": (
        "F.relu r 1 1 a b $input=a|aten::unsafe_split c 1 1 b l split_size_or_sections=3 dim=2 $input=b|"
        "prim::ListUnpack u 1 2 l c d|F.tanh t 1 1 d e $input=d|pnnx.Output o 3 0 l c e"
    ),
    "a list is unpacked twice": (
        "F.relu r 1 1 a b $input=a|aten::unsafe_chunk c 1 1 b l chunks=2 dim=2 $input=b|prim::ListUnpack u 1 2 l c d|"
        "prim::ListUnpack v 1 2 l e f|F.tanh t 1 1 d g $input=d|F.tanh s 1 1 e h $input=e|pnnx.Output o 4 0 g h c f"
    ),
    "numpy reads a part of a list": (
        "F.relu r 1 1 a b $input=a|aten::unsafe_chunk c 1 1 b l chunks=2 dim=2 $input=b|prim::ListUnpack u 1 2 l c d|"
        "torch.cumprod s 1 1 d e dim=1 $input=d|F.relu q 1 1 c g $input=c|pnnx.Output o 2 0 e g"
    ),
    "a list with an empty part": (
        "F.relu r 1 1 a b $input=a|aten::unsafe_split_with_sizes c 1 1 b l split_size_or_sections=(0,3) dim=1 $input=b|"
        "prim::ListUnpack u 1 2 l c d|F.tanh t 1 1 d e $input=d|pnnx.Output o 2 0 c e"
    ),
    "parts of a list side by side": (
        "F.relu r 1 1 a b $input=a|aten::unsafe_chunk c 1 1 b l chunks=2 dim=2 $input=b|prim::ListUnpack u 1 2 l c d|"
        "torch.cat k 2 1 d c e dim=2|F.tanh t 1 1 e f $input=e|pnnx.Output o 2 0 f d"
    ),
    "parts of a whole leave": (
        "F.relu r 1 1 a b $input=a|F.tanh t 1 1 a c $input=a|torch.cat k 3 1 b c b d dim=1|pnnx.Output o 2 0 d c"
    ),
    "a whole is part of another": (
        "F.relu r 1 1 a b $input=a|torch.cat k 2 1 b a c dim=0|torch.cat l 2 1 c c d dim=2|pnnx.Output o 1 0 d"
    ),
    "nothing but constants": (
        "pnnx.Attribute w 0 1 k @data=(4)f32|F.relu r 1 1 k l $input=k|pnnx.Expression e 2 1 a l b expr=add(@0,@1)|"
        "pnnx.Output o 2 0 b l"
    ),
    "division by a constant 0": (
        "pnnx.Attribute w 0 1 k @data=(4)f32|pnnx.Expression d 1 1 k l expr=div(1,@0)|"
        "pnnx.Expression e 2 1 a l b expr=mul(@0,@1)|pnnx.Output o 1 0 b"
    ),
    "a scalar leaves": (
        "F.relu r 1 1 a b $input=a|Tensor.size s 1 1 a n dim=1 $input=a|pnnx.Expression e 2 1 b n c expr=mul(@0,@1)|"
        "pnnx.Output o 2 0 c n"
    ),
    "a mean over all axes": (
        "torch.mean m 1 1 a b dim=(0,1,2) keepdim=False $input=a|pnnx.Expression e 2 1 a b c expr=sub(@0,@1)|"
        "F.relu r 1 1 b d $input=b|pnnx.Output o 2 0 c d"
    ),
    "an expanded operand": (
        "Tensor.slice s 1 1 a b dim=1 start=0 end=1 step=1 $input=a|Tensor.expand x 1 1 b c sizes=(-1,5,4) $input=b|"
        "F.relu r 1 1 c d $input=c|pnnx.Output o 2 0 d c"
    ),
    "a step backwards through numpy": (
        "F.relu r 1 1 a b $input=a|aten::fliplr f 1 1 b c|F.tanh t 1 1 c d $input=c|pnnx.Output o 1 0 d"
    ),
    "a product with itself, over and over": "|".join(
        ["pnnx.Expression e0 1 1 a b0 expr=mul(@0,0.1)"]
        + [f"pnnx.Expression e{i} 1 1 b{i - 1} b{i} expr=mul(@0,@0)" for i in range(1, 40)]
        + ["pnnx.Output o 1 0 b39"]
    ),
    "long chains": "|".join(
        ["F.relu e0 1 1 a b0 $input=a"]
        + [f"F.tanh e{i} 1 1 b{i - 1} b{i} $input=b{i - 1}" for i in range(1, 150)]
        + ["pnnx.Output o 1 0 b149"]
    ),
    "many operands": "|".join(
        ["F.relu e0 1 1 a b0 $input=a"]
        + [f"F.leaky_relu e{i} 1 1 a b{i} negative_slope=0.{i} $input=a" for i in range(1, 10)]
        + [f"pnnx.Expression s 10 1 {' '.join(f'b{i}' for i in range(10))} c expr={'add(' * 9}@0"]
        + ["pnnx.Output o 1 0 c"]
    ).replace("@0|", "@0" + "".join(f",@{i})" for i in range(1, 10)) + "|"),
}


LEFT = {
    "numpy reads a view of an input": {"torch.cumprod"},
    "numpy reads a view of a result": {"torch.cumprod"},
    "numpy reads a result that another reads too": {"torch.cumprod"},
    "numpy reads what a tuple holds": {"torch.cumprod"},
    "numpy reads a part of a list": {"torch.cumprod"},
    "a tuple of tuples leaves": {"prim::TupleConstruct"},
    "a list is unpacked and leaves": {"aten::unsafe_split", "prim::ListUnpack"},
    "a list is unpacked twice": {"aten::unsafe_chunk", "prim::ListUnpack"},
    "a list with an empty part": {"aten::unsafe_split_with_sizes", "prim::ListUnpack"},
    "a step backwards through numpy": {"aten::fliplr"},
}
"""Graph -> the types of its operators that are left to numpy; all others of all graphs are compiled."""


@pytest.mark.parametrize("name", GRAPHS)
def test_graph_gives_what_numpy_gives(tmp_path: Path, name: str) -> None:
    lines = text(GRAPHS[name])
    plain, *compiled = open_both(tmp_path, lines, weights(lines))
    for x in (X[:1] * 0.5, np.concatenate([X, X])):  # other batches get programs of their own
        wanted = plain.forward([x])
        for graph in compiled:
            assert left_to_numpy(graph, [x]) == LEFT.get(name, set())
            for _ in range(2):
                outputs = graph.run([x], trace=TraceLevel.ON).outputs
                assert len(outputs) == len(wanted)
                for output, expected in zip(outputs, wanted, strict=True):
                    assert_same(output, expected)


@pytest.mark.parametrize("name", GRAPHS)
def test_results_belong_to_the_caller(tmp_path: Path, name: str) -> None:
    """They stay what they are in later runs, and what is written to them reaches no other run."""
    lines = text(GRAPHS[name])
    graph = make_graph(tmp_path, lines, weights(lines), backend="native")
    given = X.copy()
    first = graph.forward([given])
    kept = [output.copy() for output in first]
    for output in graph.forward([-X]):
        if output.flags.writeable:
            output[...] = 99.0
    for output, expected in zip(first, kept, strict=True):
        np.testing.assert_array_equal(output, expected)
    np.testing.assert_array_equal(given, X)
    for output, expected in zip(graph.forward([X.copy()]), kept, strict=True):
        np.testing.assert_array_equal(output, expected)


@pytest.mark.parametrize(
    "x",
    [
        np.asfortranarray(X),
        X[:, ::-1, ::-1],
        np.broadcast_to(X[:1], X.shape),
        X.astype(">f4"),
        np.frombuffer(b"." + X.tobytes(), np.float32, offset=1).reshape(X.shape),
        np.empty((0, 3, 4), np.float32),
        np.empty((2, 0, 4), np.float32),
    ],
    ids=["columns first", "backwards", "repeated", "byte order", "unaligned", "no batch", "empty"],
)
def test_inputs_of_all_kinds(tmp_path: Path, x: Array) -> None:
    lines = text(f"{LINEAR}|pnnx.Expression e 2 1 a b c expr=add(@0,@1)|pnnx.Output o 1 0 c")
    plain, *compiled = open_both(tmp_path, lines, {"fc.weight": WEIGHTS["fc.weight"]})
    for graph in compiled:
        assert_same(graph.forward([x])[0], plain.forward([x])[0])


@pytest.mark.parametrize("shape", [(), (1,), (5,)])
def test_tensors_of_few_axes(tmp_path: Path, shape: tuple[int, ...]) -> None:
    lines = "pnnx.Input in 0 1 a\nF.relu r 1 1 a b $input=a\npnnx.Output o 2 0 b a"
    plain, native, _ = open_both(tmp_path, lines)
    x = np.full(shape, -2, np.float32)
    for output, wanted in zip(native.forward([x]), plain.forward([x]), strict=True):
        assert_same(output, wanted)


def test_shapes_that_only_a_run_can_show(tmp_path: Path) -> None:
    lines = """
        pnnx.Input in 0 1 a #a=(2,3,4)f32
        F.relu r 1 1 a b $input=a
        torch.masked_select m 2 1 b k c $input=b $mask=k
        pnnx.Expression k 1 1 a k expr=gt(@0,0)
        F.relu q 1 1 c d $input=c
        F.tanh t 1 1 b e $input=b
        pnnx.Output o 2 0 d e
    """
    plain, *compiled = open_both(tmp_path, lines)
    for graph in compiled:
        for x in (X, -X):
            trace = graph.run([x], trace=TraceLevel.ON).trace
            assert trace is not None
            assert all(layer.bytes_moved for layer in trace.layers if layer.type != "pnnx.Output")
            for output, wanted in zip(graph.forward([x]), plain.forward([x]), strict=True):
                assert_same(output, wanted)


def test_batch_normalization_is_folded_along_its_own_axis(tmp_path: Path) -> None:
    """A linear layer's features lie last; batch normalization of three axes scales the middle one."""
    lines = """
        pnnx.Input in 0 1 a #a=(2,4,4)f32
        nn.Linear fc 1 1 a b bias=False in_features=4 out_features=4 @weight=(4,4)f32
        nn.BatchNorm1d bn 1 1 b c affine=False eps=1e-5 num_features=4 @running_mean=(4)f32 @running_var=(4)f32
        pnnx.Output o 1 0 c
    """
    attributes = {
        "fc.weight": WEIGHTS["fc.weight"],
        "bn.running_mean": np.arange(4, dtype=np.float32),
        "bn.running_var": np.arange(1, 5, dtype=np.float32),
    }
    plain, native, _ = open_both(tmp_path, lines, attributes)
    x = np.arange(32, dtype=np.float32).reshape(2, 4, 4)
    assert_same(native.forward([x])[0], plain.forward([x])[0])


def test_position_embedding_without_batch_axis(tmp_path: Path) -> None:
    lines = text(
        f"pnnx.Attribute w 0 1 k @data=(3,4)f32|{LINEAR}|"
        "pnnx.Expression e 2 1 b k c expr=add(@0,@1)|pnnx.Output o 1 0 c"
    )
    attributes = {"w.data": np.arange(12, dtype=np.float32).reshape(3, 4), "fc.weight": WEIGHTS["fc.weight"]}
    plain, native, _ = open_both(tmp_path, lines, attributes)
    for x in (X, X[:1]):
        assert_same(native.forward([x])[0], plain.forward([x])[0])


@pytest.mark.parametrize("channels", [1, 6])
@pytest.mark.parametrize(
    "part", ["dim=2 start=1 end=7 step=2", "dim=3 start=2 end=5 step=9", "dim=3 start=1 end=4 step=1"]
)
def test_group_normalization_of_a_part_of_an_image(tmp_path: Path, channels: int, part: str) -> None:
    """Its pixels do not lie evenly, whichever way its channels lie."""
    lines = f"""
        pnnx.Input in 0 1 x #x=(2,{channels},7,5)f32
        F.interpolate p 1 1 x a mode=nearest size=(7,5) $input=x
        Tensor.slice s 1 1 a b {part} $input=a
        nn.GroupNorm g 1 1 b y affine=False eps=1e-5 num_channels={channels} num_groups=1
        Tensor.slice t 1 1 x c {part} $input=x
        nn.GroupNorm h 1 1 c z affine=False eps=1e-5 num_channels={channels} num_groups=1
        pnnx.Output o 2 0 y z
    """
    plain, native, _ = open_both(tmp_path, lines)
    x = np.arange(2 * channels * 35, dtype=np.float32).reshape(2, channels, 7, 5) ** 1.5
    for output, wanted in zip(native.forward([x]), plain.forward([x]), strict=True):
        assert_same(output, wanted)
