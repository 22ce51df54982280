"""Which operators kernels take, and which they leave to numpy."""

from pathlib import Path

import pytest

from engine.binding.registry import registry
from engine.compiler.graph import Constant, Pointwise
from engine.compiler.lowering import RULES
from tests.engine.compiler.plans import IMAGE, ROWS, conv, kinds_of, linear, lowered, work_of

OUT = "pnnx.Output out 1 0 y"


def test_rules_are_of_types_that_there_are() -> None:
    assert [name for name in RULES if name not in registry] == []


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        (conv("c", "x", "y"), "Convolution"),
        ("F.relu r 1 1 x y $input=x", "Pointwise"),
        ("pnnx.Expression e 1 1 x y expr=add(mul(@0,2),1)", "Pointwise"),
        ("Tensor.permute p 1 1 x y dims=(0,2,3,1) $input=x", "Reshape"),
        ("torch.cat k 2 1 x x y dim=-1", "Concatenation"),
        ("F.softmax s 1 1 x y dim=-1 $input=x", "Softmax"),
        ("torch.mean m 1 1 x y dim=(2,3) keepdim=True $input=x", "Reduction"),
    ],
)
def test_operator_that_kernels_take(tmp_path: Path, line: str, kind: str) -> None:
    assert kinds_of(lowered(tmp_path, IMAGE, line, OUT)) == [kind]


@pytest.mark.parametrize(
    "line",
    [
        "nn.ReflectionPad3d p 1 1 x y padding=(1,1,1,1,1,1)",
        "F.threshold t 1 1 x y threshold=0.0 value=1e39 $input=x",
        "F.tanhshrink t 1 1 x y $input=x",
        "torch.cumprod c 1 1 x y dim=1 $input=x",
        "pnnx.Expression e 1 1 x y expr=tan(@0)",
        "pnnx.Expression e 1 1 x y expr=mul(@0,add(1,2))",
        f"pnnx.Expression e 1 1 x y expr={'add(' * 40}@0{',1)' * 40}",
        "pnnx.Expression e 1 1 x y expr=remainder(@0,2)",
        "pnnx.Expression e 1 1 x y expr=mul(@0,1e39)",
        "Tensor.to t 1 1 x y dtype=torch.double $input=x",
        "F.softmax s 1 1 x y dim=-1 dtype=torch.double $input=x",
        "torch.mean m 1 1 x y dim=(2,3) keepdim=True dtype=torch.double $input=x",
        "nn.BatchNorm2d n 1 1 x y affine=False eps=1e-5 num_features=3",
    ],
)
def test_operator_that_kernels_leave(tmp_path: Path, line: str) -> None:
    assert kinds_of(lowered(tmp_path, IMAGE, line, OUT)) == ["Fallback"]


def test_places_of_largest_elements_are_left_to_numpy_where_they_are_read(tmp_path: Path) -> None:
    line = (
        "nn.MaxPool2d p 1 2 x y z ceil_mode=False dilation=(1,1) kernel_size=(2,2) padding=(0,0) "
        "return_indices=True stride=(2,2)"
    )
    assert kinds_of(lowered(tmp_path, IMAGE, line, OUT)) == ["Pool"]
    assert kinds_of(lowered(tmp_path, IMAGE, line, "pnnx.Output out 2 0 y z")) == ["Fallback"]


@pytest.mark.parametrize("dtype", ["f64", "f16", "c64"])
def test_other_dtypes_are_left_to_numpy(tmp_path: Path, dtype: str) -> None:
    lines = ("torch.clone t 1 1 x z $input=x", "pnnx.Expression e 1 1 z y expr=add(@0,@0)")
    graph = lowered(tmp_path, f"pnnx.Input i 0 1 x #x=(2,3){dtype}", *lines, OUT)
    assert kinds_of(graph) == ["Fallback", "Fallback"]


@pytest.mark.parametrize("shape", ["(0,4)", "(3,0)"])
def test_empty_tensors_are_left_to_numpy(tmp_path: Path, shape: str) -> None:
    plain = f"pnnx.Input i 0 1 x #x={shape}f32"
    assert kinds_of(lowered(tmp_path, plain, "torch.cat k 2 1 x x y dim=0", OUT)) == ["Fallback"]


def test_weights_that_runs_bring_are_left_to_numpy(tmp_path: Path) -> None:
    lines = ("pnnx.Input other 0 1 w #w=(4,4)f32", "F.linear l 2 1 x w y $input=x $weight=w bias=None")
    assert kinds_of(lowered(tmp_path, ROWS, *lines, OUT)) == ["Fallback"]


def test_weights_that_operands_bring_from_the_file(tmp_path: Path) -> None:
    lines = ("pnnx.Attribute w 0 1 k @data=(4,4)f32", "F.linear l 2 1 x k y $input=x $weight=k bias=None")
    assert kinds_of(lowered(tmp_path, ROWS, *lines, OUT)) == ["Linear"]


def test_what_no_input_changes_is_folded(tmp_path: Path) -> None:
    lines = (
        "pnnx.Attribute w 0 1 k @data=(4)f32",
        "torch.cumprod c 1 1 k l dim=0 $input=k",
        "Tensor.size s 1 1 x n dim=1 $input=x",
        "pnnx.Expression e 3 1 x l n y expr=add(mul(@0,@1),@2)",
    )
    graph = lowered(tmp_path, ROWS, *lines, OUT)
    assert graph.folded == {1, 2, 3}
    (node,) = work_of(graph)
    assert isinstance(node, Pointwise)
    assert [isinstance(tensor.node, Constant) for tensor in node.inputs] == [False, True]
    assert all(not array.flags.writeable for array in graph.constants.values() if hasattr(array, "flags"))


def test_random_numbers_are_not_folded(tmp_path: Path) -> None:
    lines = (
        "pnnx.Attribute w 0 1 k @data=(4)f32",
        "torch.randn_like c 1 1 k l $input=k",
        "pnnx.Expression e 2 1 x l y expr=mul(@0,@1)",
    )
    graph = lowered(tmp_path, ROWS, *lines, OUT)
    assert graph.folded == {1}
    assert kinds_of(graph) == ["Fallback", "Pointwise"]


def test_error_of_constants_is_left_to_the_run(tmp_path: Path) -> None:
    lines = (
        "pnnx.Attribute w 0 1 k @data=(400)f32",
        "pnnx.Expression m 1 1 k m expr=gt(@0,1)",
        "torch.masked_select s 2 1 k m t $input=k $mask=m",
        "Tensor.reshape r 1 1 t u shape=(7) $input=t",
        linear("l", "x", "y"),
    )
    graph = lowered(tmp_path, ROWS, *lines, "pnnx.Output out 2 0 y u")
    assert "Fallback" in kinds_of(graph)
    assert 4 not in graph.folded
