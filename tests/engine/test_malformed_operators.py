"""Files whose operators are malformed, as `make fuzz` found them: each is an error of the engine, or runs."""

from pathlib import Path

import numpy as np
import pytest

from engine import KuiperError, LayerError, TensorSpec, registry
from engine.binding.boundary import at_operator
from engine.compiler.lowering import RULES, LoweringContext
from engine.dtypes import Array
from tests.engine.models import make_graph

IMAGE = np.linspace(-1, 1, 2 * 3 * 6 * 6, dtype=np.float32).reshape(2, 3, 6, 6)
ROWS = np.linspace(-1, 1, 12, dtype=np.float32).reshape(3, 4)
CONV = (
    "bias={bias} dilation=(1,1) groups=1 in_channels=3 kernel_size=(1,1) out_channels=2 padding=(0,0) "
    "padding_mode=zeros stride=(1,1) @weight=(2,3,1,1){weight}"
)


@pytest.mark.parametrize("backend", ["numpy", "native"])
@pytest.mark.parametrize(
    ("lines", "attributes", "message"),
    [
        (
            f"nn.Conv2d conv 1 1 x y {CONV.format(bias=False, weight='c32')}",
            {"conv.weight": np.zeros(12, np.float16)},
            "nn.Conv2d conv, attribute 'weight': dtype c64; expected f32 as the input has",
        ),
        (
            f"nn.Conv2d conv 1 1 x y {CONV.format(bias=True, weight='f32')} @bias=(2)f64",
            {"conv.weight": np.zeros(6, np.float32), "conv.bias": np.zeros(2)},
            "nn.Conv2d conv, attribute 'bias': dtype f64; expected f32 as the input has",
        ),
        (
            "F.pad pad 1 1 x y mode=constant pad=(1,1) value=1.0+2.0j",
            {},
            "F.pad pad, 'value': got (1+2j); expected a real number for an input of f32",
        ),
    ],
    ids=["complex weight", "bias of another dtype", "complex margin"],
)
def test_a_wrong_dtype_is_refused_by_the_plan(
    tmp_path: Path, lines: str, attributes: dict[str, Array], message: str, backend: str
) -> None:
    graph = make_graph(
        tmp_path,
        f"pnnx.Input in 0 1 x #x=(2,3,6,6)f32\n{lines}\npnnx.Output out 1 0 y",
        attributes,
        backend=backend,
    )
    with pytest.raises(LayerError) as caught:
        graph.forward([IMAGE])
    assert str(caught.value) == message


@pytest.mark.parametrize("line", ["Trilu t 2 1 x x y", "CumSum c 2 1 x x y"])
def test_onnx_operators_take_one_integer_where_it_comes_in_a_tensor(tmp_path: Path, line: str) -> None:
    graph = make_graph(tmp_path, f"pnnx.Input in 0 1 x #x=(3,4)f32\n{line}\npnnx.Output out 1 0 y")
    with pytest.raises(
        LayerError, match=r"\((k|axis), \(3,4\)f32\): got float32 of shape \(3, 4\); expected one integer"
    ):
        graph.forward([ROWS])


def test_attention_without_its_last_weight_is_refused_by_the_plan(tmp_path: Path) -> None:
    attention = "nn.MultiheadAttention heads 1 1 x y batch_first=True num_heads=2 outputs=attn_output"
    lines = f"pnnx.Input in 0 1 x #x=(1,3,4)f32\n{attention} @in_proj_weight=(12,4)f32\npnnx.Output out 1 0 y"
    graph = make_graph(tmp_path, lines, {"heads.in_proj_weight": np.zeros((12, 4), np.float32)})
    with pytest.raises(LayerError, match=r"nn.MultiheadAttention heads, 'out_proj.weight': is missing"):
        graph.plan([TensorSpec((1, 3, 4), np.dtype(np.float32))])


@pytest.mark.parametrize(
    "lines",
    [
        "nn.AvgPool2d pool 1 1 x y kernel_size=(2,2) stride=(2,2)\nF.relu end 1 0 y",
        "torch.mean m 1 1 x y\ntorch.max largest 1 1 y z dim=0 keepdim=False\npnnx.Output out 1 0 z",
        "torch.mean m 1 1 x y\ntorch.var v 1 1 y z dim=(0) keepdim=False unbiased=False\npnnx.Output out 1 0 z",
        "pnnx.Expression n 0 1 sizes expr=[1,2,3]\npnnx.Expression d 0 1 dim expr=3\n"
        "aten::unsafe_split_with_sizes s 3 1 x sizes dim y\nprim::ListUnpack u 1 2 y a b\npnnx.Output out 2 0 b a",
        "pnnx.Expression e 0 1 y expr=1e300\npnnx.Output out 2 0 x y",
    ],
    ids=[
        "an end without output",
        "largest of a number",
        "variance of a number",
        "some of a split",
        "a number beyond float32",
    ],
)
def test_odd_graphs_compile_and_run_as_numpy_runs_them(tmp_path: Path, lines: str) -> None:
    model = f"pnnx.Input in 0 1 x\n{lines}"
    wanted = make_graph(tmp_path, model, backend="numpy").forward([IMAGE])
    graph = make_graph(tmp_path, model, backend="native")
    graph.prepare([TensorSpec(IMAGE.shape, IMAGE.dtype)])
    assert graph.verification.refused == ()
    for output, expected in zip(graph.forward([IMAGE]), wanted, strict=True):
        np.testing.assert_allclose(output, expected, rtol=1e-5, atol=1e-6)


def test_an_attribute_in_the_place_of_the_input_is_left_to_numpy(tmp_path: Path) -> None:
    line = "nn.Linear fc 1 1 x y in_features=4 out_features=3 @input=(4)f32 @weight=(3,4)f32"
    attributes = {"fc.input": np.ones(4, np.float32), "fc.weight": np.ones((3, 4), np.float32)}
    lines = f"pnnx.Input in 0 1 x #x=(3)f32\n{line}\npnnx.Output out 1 0 y"
    graph = make_graph(tmp_path, lines, attributes, backend="native")
    (output,) = graph.forward([np.zeros(3, np.float32)])
    np.testing.assert_allclose(output, [4, 4, 4])
    assert graph.verification.refused == ()


def test_a_complex_number_of_half_precision_without_dimensions_is_read(tmp_path: Path) -> None:
    lines = "pnnx.Attribute a 0 1 y @data=()c32\npnnx.Output out 1 0 y"
    graph = make_graph(tmp_path, lines, {"a.data": np.array([1, 2], np.float16)})
    (output,) = graph.forward([])
    assert output == np.complex64(1 + 2j)


def test_a_product_whose_operands_are_named_in_another_order_is_compiled(tmp_path: Path) -> None:
    lines = """
        pnnx.Input a 0 1 x #x=(3,2,5)f32
        pnnx.Input b 0 1 y #y=(3,5,4)f32
        torch.matmul product 2 1 y x z $input=x $other=y
        pnnx.Output out 1 0 z
    """
    inputs = [np.linspace(-1, 1, 30, dtype=np.float32).reshape(3, 2, 5), np.ones((3, 5, 4), np.float32)]
    graph = make_graph(tmp_path, lines, backend="native")
    np.testing.assert_allclose(graph.forward(inputs)[0], inputs[0] @ inputs[1], rtol=1e-5, atol=1e-6)
    assert graph.verification.refused == ()


def test_margins_beyond_all_memory_are_refused_by_the_plan(tmp_path: Path) -> None:
    line = CONV.format(bias=False, weight="f32").replace("dilation=(1,1)", f"dilation=({2**61},1)")
    line = line.replace("padding=(0,0)", "padding=same").replace("(2,3,1,1)", "(2,3,3,1)")
    lines = f"pnnx.Input in 0 1 x #x=(2,3,6,6)f32\nnn.Conv2d conv 1 1 x y {line}\npnnx.Output out 1 0 y"
    graph = make_graph(tmp_path, lines, {"conv.weight": np.zeros(18, np.float32)})
    with pytest.raises(LayerError, match=r"^nn.Conv2d conv, 'padding': got .*; expected at most"):
        graph.plan([TensorSpec(IMAGE.shape, IMAGE.dtype)])


@pytest.mark.plants_a_mistake
def test_a_program_that_takes_too_much_memory_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("engine.compiler.program.assembler.MAX_ARENA_BYTES", -1)
    lines = "pnnx.Input in 0 1 x #x=(3,4)f32\nF.relu relu 1 1 x y\npnnx.Output out 1 0 y"
    graph = make_graph(tmp_path, lines, backend="native")
    np.testing.assert_array_equal(graph.forward([ROWS])[0], np.maximum(ROWS, 0))
    (refusal,) = graph.verification.refused
    assert refusal.reason.startswith("the compiler failed: a program needs ")


@pytest.mark.parametrize("number", [2**40, 2**63 - 1])
def test_counts_of_huge_numbers_are_refused_before_memory_is_taken(tmp_path: Path, number: int) -> None:
    """Of 2**63 - 1, numpy's own bincount makes an array without elements, and counts in front of it."""
    lines = "pnnx.Input in 0 1 x #x=(2)i64\naten::bincount count 1 1 x y\npnnx.Output out 1 0 y"
    graph = make_graph(tmp_path, lines)
    with pytest.raises(LayerError, match=rf"aten::bincount count, operand 'x' .*got 1 to {number}"):
        graph.forward([np.array([1, number])])


@pytest.mark.parametrize("raised", [IndexError("3"), AttributeError("shape"), RecursionError(), OSError()])
def test_what_nobody_foresaw_names_the_operator(raised: Exception) -> None:
    with (
        pytest.raises(LayerError, match=r"^nn.ReLU relu: cannot be planned: \w+Error: ") as caught,
        at_operator("nn.ReLU", "relu", "cannot be planned", LayerError),
    ):
        raise raised
    assert caught.value.__cause__ is raised


def test_errors_of_the_engine_and_lack_of_memory_pass_as_they_are() -> None:
    for passes in (KuiperError("said already"), MemoryError()):
        with pytest.raises(type(passes)) as caught, at_operator("a", "b", "cannot be planned", LayerError):
            raise passes
        assert caught.value is passes


@pytest.mark.parametrize(
    ("stage", "fault"), [("plan", RuntimeError), ("plan", IndexError), ("run", IndexError)]
)
def test_a_layer_that_stumbles_is_an_error_of_its_operator(
    tmp_path: Path, stage: str, fault: type[Exception]
) -> None:
    def stumble(at: str) -> int:
        if at == stage:
            raise fault("unforeseen")
        return 0

    def infer(input: TensorSpec) -> TensorSpec:
        return input

    layers = registry.copy()

    @layers.layer("my.Layer", infer=infer, multiply_adds=lambda outputs: stumble("plan"))
    def run(input: Array) -> Array:
        return input + stumble("run")

    lines = "pnnx.Input in 0 1 x #x=(3,4)f32\nmy.Layer mine 1 1 x y\npnnx.Output out 1 0 y"
    with pytest.raises(LayerError, match=r"^my.Layer mine: .*unforeseen"):
        make_graph(tmp_path, lines, layers=layers).forward([ROWS])


@pytest.mark.plants_a_mistake
def test_a_rule_of_the_compiler_that_stumbles_is_reported_with_its_operator(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def rule(context: LoweringContext) -> None:
        raise IndexError("list index out of range")

    monkeypatch.setitem(RULES, "F.relu", rule)
    lines = "pnnx.Input in 0 1 x #x=(3,4)f32\nF.relu relu 1 1 x y\npnnx.Output out 1 0 y"
    graph = make_graph(tmp_path, lines, backend="native")
    (output,) = graph.forward([ROWS])
    np.testing.assert_array_equal(output, np.maximum(ROWS, 0))
    (refusal,) = graph.verification.refused
    assert refusal.reason == (
        "the compiler failed: F.relu relu: cannot be lowered: IndexError: list index out of range"
    )
