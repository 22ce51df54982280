from pathlib import Path
from typing import Any

import numpy as np
import pytest

from engine import LayerError, LayerRegistry, ParameterError, RuntimeGraph
from engine.binding.argument_binding import weight
from engine.binding.arguments import Ints, Operand
from engine.binding.bound_layer import BoundLayer
from engine.dtypes import Array
from engine.errors import ArgumentError
from engine.pnnx import Attribute, Operator
from engine.spec import UNKNOWN, TensorSpec, spec_of
from tests.engine.models import make_graph

X = np.arange(6, dtype=np.float32).reshape(2, 3)
F32 = np.dtype(np.float32)


def bind(function: Any, operator: Operator, **options: Any) -> BoundLayer:
    layers = LayerRegistry()
    layers.layer(operator.type, **options)(function)
    layer = layers.find(operator.type)
    assert layer is not None
    return BoundLayer(layer, operator)


def affine(input: Array, weight: Array, bias: Array | None = None, scale: float = 1.0) -> Array:
    return input * weight * scale + (0 if bias is None else bias)


def test_attributes_parameters_and_operands_bind_by_name() -> None:
    attrs = {"weight": Attribute.from_array(np.array([1, 2, 3], np.float32))}
    bound = bind(affine, Operator("t.Affine", "a", ["x"], ["y"], {"scale": 2, "bias": False}, attrs))
    np.testing.assert_array_equal(bound.forward([X])[0], X * [1, 2, 3] * 2)


@pytest.mark.parametrize("backend", ["numpy", "native"])
@pytest.mark.parametrize(
    ("apart", "together", "wanted"),
    [
        ("torch.unbind", "torch.stack b 1 1 l r dim=1 $tensors=l", X.T),
        ("torch.chunk", "torch.cat b 1 1 l r dim=1", X.reshape(1, 6)),
    ],
)
def test_parts_without_a_type_are_a_list(
    tmp_path: Path, backend: str, apart: str, together: str, wanted: Array
) -> None:
    """What the exporter writes of torch.stack(x.unbind(), 1) in a scripted model."""
    parts = " chunks=2" if apart == "torch.chunk" else ""
    lines = (
        f"pnnx.Input in 0 1 x #x=(2,3)f32\n{apart} a 1 1 x l{parts} dim=0 $input=x #x=(2,3)f32\n{together}"
    )
    graph = make_graph(tmp_path, f"{lines} #r=(?,?)f32\npnnx.Output out 1 0 r", backend=backend)
    np.testing.assert_array_equal(graph.forward([X])[0], wanted)


def test_named_operands_need_not_come_in_order() -> None:
    names = {"input": "x", "bias": "b", "weight": "w"}
    bound = bind(affine, Operator("t.Affine", "a", ["b", "w", "x"], ["y"], input_names=names))
    result = bound.forward([np.float32(1) * np.ones(3, np.float32), np.full(3, 2, np.float32), X])[0]
    np.testing.assert_array_equal(result, X * 2 + 1)


def test_one_operand_may_serve_two_arguments() -> None:
    bound = bind(affine, Operator("t.A", "a", ["x"], ["y"], input_names={"input": "x", "weight": "x"}))
    np.testing.assert_array_equal(bound.forward([X])[0], X * X)
    listed_twice = Operator("t.A", "a", ["x", "x"], ["y"], input_names={"input": "x", "weight": "x"})
    np.testing.assert_array_equal(bind(affine, listed_twice).forward([X, X])[0], X * X)


def test_unnamed_operands_fill_the_arguments_that_are_left() -> None:
    bound = bind(affine, Operator("t.A", "a", ["x", "w"], ["y"], {"scale": 3.0}))
    np.testing.assert_array_equal(bound.forward([X, X])[0], X * X * 3)


def test_operand_may_carry_an_int_or_a_list() -> None:
    def reshape(input: Array, shape: Ints) -> Array:
        return input.reshape(shape)

    operator = Operator("t.R", "r", ["x", "s"], ["y"], input_names={"input": "x", "shape": "s"})
    assert spec_of(bind(reshape, operator).forward([X, [3, 2]])[0]) == TensorSpec((3, 2), X.dtype)
    assert spec_of(bind(reshape, operator).forward([X, np.array(6)])[0]) == TensorSpec((6,), X.dtype)
    with pytest.raises(LayerError, match=r"t.R r, operand 's' \(shape, .*\): got 'x'; expected ints"):
        bind(reshape, operator).forward([X, "x"])


def test_complaint_names_the_operand() -> None:
    def picky(input: Array, other: Operand = 1) -> Array:
        raise ArgumentError("other", "is odd", "an even one")

    operator = Operator("t.P", "p", ["x", "o"], ["y"])
    with pytest.raises(
        LayerError, match=r"t.P p, operand 'o' \(other, \(2,3\)f32\): is odd; expected an even one"
    ):
        bind(picky, operator).forward([X, X])
    with pytest.raises(LayerError, match="t.P p, 'other': is odd"):
        bind(picky, Operator("t.P", "p", ["x"], ["y"])).forward([X])


def test_complaint_names_the_attribute_and_the_variadic_operand() -> None:
    def picky(*inputs: Array, weight: Array) -> Array:
        raise ArgumentError("inputs.1" if len(inputs) > 1 else "weight", "is odd")

    operator = Operator("t.P", "p", ["x", "o"], ["y"], attrs={"weight": Attribute.from_array(X)})
    with pytest.raises(LayerError, match=r"operand 'o' \(inputs.1, \(2,3\)f32\): is odd"):
        bind(picky, operator).forward([X, X])
    with pytest.raises(LayerError, match="t.P p, attribute 'weight': is odd"):
        bind(picky, operator).forward([X])


def test_complaint_about_an_operand_that_is_not_there_names_the_operator(tmp_path: Path) -> None:
    lines = "prim::TupleUnpack u 0 1 a\npnnx.Output out 1 0 a"
    with pytest.raises(
        LayerError, match=r"prim::TupleUnpack u, 'inputs.0': got 0 operands; expected one tuple"
    ):
        make_graph(tmp_path, lines).forward([])


def test_complaint_spells_tuples_as_their_tensors(tmp_path: Path) -> None:
    lines = "pnnx.Input in 0 1 a\nprim::TupleConstruct t 2 1 a a b\n{}\npnnx.Output out 1 0 c"
    x = np.zeros((2, 3), np.float32)
    message = (
        r"F.relu r, operand 'b' \(input, \(\(2,3\)f32, \(2,3\)f32\)\): got \(\(2,3\)f32, \(2,3\)f32\); expec"
    )
    with pytest.raises(LayerError, match=message):
        make_graph(tmp_path, lines.format("F.relu r 1 1 b c")).forward([x])
    with pytest.raises(LayerError, match=r"e: cannot run on \(\(2,3\)f32, \(2,3\)f32\): neg takes tensors"):
        make_graph(tmp_path, lines.format("pnnx.Expression e 1 1 b c expr=neg(@0)")).forward([x])


def test_attribute_without_type_is_no_tensor(tmp_path: Path) -> None:
    lines = "pnnx.Attribute w 0 1 a @data=()null\npnnx.Output out 1 0 a"
    with pytest.raises(
        ParameterError, match=r"pnnx.Attribute w, attribute 'data': has no type; expected a tensor"
    ):
        make_graph(tmp_path, lines, {"w.data": np.zeros(0, np.float32)})


def test_too_few_outputs_is_an_error_and_too_many_are_dropped() -> None:
    def twice(input: Array) -> tuple[Array, Array]:
        return input, input + 1

    assert len(bind(twice, Operator("t.T", "t", ["x"], ["y"])).forward([X])) == 1
    assert len(bind(twice, Operator("t.T", "t", ["x"], ["y", "z"])).forward([X])) == 2
    with pytest.raises(LayerError, match="t.T t: gives 2 outputs; expected 3"):
        bind(twice, Operator("t.T", "t", ["x"], ["y", "z", "q"])).forward([X])


def test_list_stays_whole_for_a_single_output() -> None:
    def pair(input: Array) -> list[Array]:
        return [input, input + 1]

    assert len(bind(pair, Operator("t.P", "p", ["x"], ["y", "z"])).forward([X])) == 2
    (whole,) = bind(pair, Operator("t.P", "p", ["x"], ["y"])).forward([X])
    assert isinstance(whole, tuple)
    assert len(whole) == 2


def test_infer_is_unknown_without_rule_or_for_unknown_inputs() -> None:
    spec = TensorSpec((2, 3), F32)
    without = bind(affine, Operator("t.A", "a", ["x", "w"], ["y"]))
    assert without.infer([spec, spec]) == (UNKNOWN,)
    ruled = bind(affine, Operator("t.A", "a", ["x", "w"], ["y"]), infer=lambda **specs: specs["input"])
    assert ruled.infer([spec, spec]) == (spec,)
    assert ruled.infer([spec, UNKNOWN]) == (UNKNOWN,)
    assert ruled.multiply_adds([spec, spec], [spec]) == 0


def test_multiply_adds_see_inputs_outputs_and_attributes() -> None:
    def count(outputs: tuple[TensorSpec], weight: TensorSpec, **_: object) -> int:
        return outputs[0].size * weight.size

    attrs = {"weight": Attribute.from_array(np.ones(3, np.float32))}
    bound = bind(affine, Operator("t.A", "a", ["x"], ["y"], attrs=attrs), multiply_adds=count)
    spec = TensorSpec((2, 3), F32)
    assert bound.multiply_adds([spec], [spec]) == 18
    assert bound.multiply_adds([UNKNOWN], [spec]) == 0


def test_prepare_runs_once_at_build() -> None:
    calls = []

    def prepare(**attributes: Array) -> dict[str, Any]:
        calls.append(sorted(attributes))
        return {"total": sum(attributes.values())}

    def forward(*inputs: Array, total: Array) -> Array:
        return inputs[0] + total

    attrs = {name: Attribute.from_array(np.array([1, 2, 3], np.float32)) for name in ("b", "a")}
    bound = bind(forward, Operator("t.S", "s", ["x"], ["y"], attrs=attrs), prepare=prepare)
    for _ in range(2):
        np.testing.assert_array_equal(bound.forward([X])[0], X + np.array([2, 4, 6], np.float32))
    assert calls == [["a", "b"]]

    def refuse(**attributes: Array) -> dict[str, Any]:
        raise ArgumentError("a", "is odd", "an even one")

    with pytest.raises(ParameterError, match="t.S s, 'a': is odd; expected an even one"):
        bind(forward, Operator("t.S", "s", ["x"], ["y"], attrs=attrs), prepare=refuse)

    def stumble(**attributes: Array) -> dict[str, Any]:
        raise ValueError("cannot reshape")

    with pytest.raises(ParameterError, match="t.S s: cannot be prepared: cannot reshape"):
        bind(forward, Operator("t.S", "s", ["x"], ["y"], attrs=attrs), prepare=stumble)


def test_weights_are_read_only_aligned_and_widened() -> None:
    stored = np.array([1.5, 2.5], np.float32)
    unaligned = Attribute((2,), "f32", memoryview(b"\0" + stored.tobytes())[1:])
    halves = Attribute.from_array(stored.astype(np.float16))
    bf16 = Attribute((2,), "bf16", (stored.view(np.uint32) >> 16).astype(np.uint16).tobytes())
    for attribute in (unaligned, halves, bf16, Attribute.from_array(stored)):
        array = weight(attribute)
        np.testing.assert_array_equal(array, stored)
        assert array.dtype == np.float32
        assert array.flags.aligned
        assert not array.flags.writeable
    halved_complex = Attribute((1,), "c32", np.array([1, -2], np.float16).tobytes())
    np.testing.assert_array_equal(weight(halved_complex), np.array([1 - 2j], np.complex64))


def test_bad_expression_fails_at_build_with_its_operator(tmp_path: Path) -> None:
    lines = "pnnx.Input in 0 1 a\npnnx.Expression e 1 1 a b expr=frobnicate(@0)\npnnx.Output out 1 0 b"
    with pytest.raises(ParameterError, match=r"pnnx.Expression e, parameter 'expr'(.|\n)*\^"):
        make_graph(tmp_path, lines)


def test_fault_in_a_shape_rule_names_the_operator() -> None:
    def rule(input: TensorSpec, weight: TensorSpec, **_: object) -> TensorSpec:
        raise IndexError("tuple index out of range")

    bound = bind(affine, Operator("t.A", "a", ["x", "w"], ["y"]), infer=rule)
    spec = TensorSpec((2, 3), F32)
    with pytest.raises(LayerError, match=r"t.A a: cannot run on \(2,3\)f32, \(2,3\)f32: tuple index"):
        bound.infer([spec, spec])


def test_output_lists_of_expressions_are_ports(tmp_path: Path) -> None:
    lines = (
        "pnnx.Input in 0 1 a #a=(2,3)f32\npnnx.Expression e 1 1 a b expr=[@0,neg(@0)]\npnnx.Output out 1 0 b"
    )
    graph: RuntimeGraph = make_graph(tmp_path, lines)
    assert [port.operand for port in graph.outputs] == ["a", "b[1]"]
    np.testing.assert_array_equal(graph.forward([X])[1], -X)
