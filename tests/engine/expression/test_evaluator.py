import math
from typing import Any, ClassVar

import numpy as np
import pytest

from engine.errors import ExpressionError
from engine.expression import (
    CallNode,
    ExpressionNode,
    compile_expression,
    compile_source,
    evaluate,
    infer,
    parse,
)
from engine.spec import UNKNOWN, Spec, TensorSpec, Value, spec_of
from tests.cases import check_each

X = np.array([[1, 4, 9], [16, 25, 36]], np.float32)
Y = np.array([[0.5], [2]], np.float32)


def run(source: str, *operands: Value) -> Any:
    return evaluate(parse(source), operands)


def spec(source: str, *operands: Spec) -> Spec:
    return infer(parse(source), operands)


def test_a_compound_expression() -> None:
    wanted = np.sin(X) + np.cos(X) * np.sqrt(np.abs(X) + 1)
    got = run("add(sin(@0),mul(cos(@0),sqrt(add(abs(@0),1))))", X)
    np.testing.assert_array_equal(got, wanted)
    assert got.dtype == np.float32


def test_the_longest_of_the_seeds() -> None:
    a, b, c, d, e, f = (np.full(2, value, np.float32) for value in (1, 2, 3, 4, 5, 6))
    got = run("add(add(mul(@0,@1),mul(@2,add(add(add(@0,@2),@3),@4))),@5)", a, b, c, d, e, f)
    np.testing.assert_array_equal(got, [1 * 2 + 3 * (1 + 3 + 4 + 5) + 6] * 2)


def test_operands_broadcast_and_stay_as_they_are() -> None:
    x, y = X.copy(), Y.copy()
    np.testing.assert_array_equal(run("mul(add(@0,@1),@1)", x, y), (X + Y) * Y)
    np.testing.assert_array_equal(x, X)
    np.testing.assert_array_equal(y, Y)


def test_misplaced_brackets_compute_what_was_meant() -> None:
    np.testing.assert_array_equal(run("sub(add(expm1,@0),@1),0.5", Y, Y), np.expm1(Y) + Y - np.float32(0.5))


def test_number_before_a_tensor() -> None:
    np.testing.assert_array_equal(run("sub(1,@0)", X), 1 - X)
    np.testing.assert_array_equal(run("remainder(4,@0)", np.array([3, -3])), [1, -2])


def test_integers_promote_as_in_pytorch() -> None:
    whole = np.array([7, -7], np.int32)
    assert run("div(@0,2)", whole).dtype == np.float32
    assert run("add(@0,@1)", whole, np.zeros(2, np.float32)).dtype == np.float32
    np.testing.assert_array_equal(run("floor_divide(@0,2)", whole), np.array([3, -4], np.int32))
    assert run("add(@0,0.5)", whole).dtype == np.float32
    assert run("and(@0,3)", whole).dtype == np.int32


SCALARS: list[tuple[str, complex]] = [
    ("add(2,3)", 5),
    ("div(7,2)", 3.5),
    ("floor_divide(-7,2)", -4),
    ("remainder(-7,2)", 1),
    ("fmod(-7,2)", -1),
    ("pow(2,10)", 1024),
    ("pow(2,-1)", 0.5),
    ("mul(2,0.5)", 1.0),
    ("sqrt(4)", 2.0),
    ("neg(3)", -3),
    ("abs(-3)", 3),
    ("square(-3)", 9),
    ("max(2,3)", 3),
    ("min(2,3.5)", 2.0),
    ("round(2.5)", 2),
    ("ceil(2.1)", 3),
    ("floor(-2.1)", -3),
    ("trunc(-2.9)", -2),
    ("ceil(inf)", math.inf),
    ("floor(1e30)", float(np.float32(1e30))),
    ("int(-2.9)", -2),
    ("int(True)", 1),
    ("lshift(1,4)", 16),
    ("xor(True,False)", True),
    ("eq(1,1.0)", True),
    ("mul(2.0+1.0j,2)", 4 + 2j),
    ("torch.float(3)", 3.0),
    ("torch.long(3.9)", 3),
    ("torch.bool(2)", True),
    ("torch.float(1.0+2.0j)", 1.0),
]


def test_scalars_compute_to_scalars() -> None:
    def check(case: tuple[str, complex]) -> None:
        source, value = case
        got = run(source)
        assert got == value
        assert type(got) is type(value)
        assert spec(source) == value

    check_each(SCALARS, check)


def test_scalar_floats_round_to_float32_as_the_traced_tensors_did() -> None:
    # 10 * 0.7 is 7 in float32; in float64 it would be 6.99999988, for the exporter rounds 0.7 to float32
    assert run("int(mul(size(@0,0),0.699999988))", np.zeros(10)) == 7
    assert run("add(0.1,0.2)") == np.float32(0.1) + np.float32(0.2)


def test_integer_scalars_wrap_instead_of_growing() -> None:
    assert run("mul(9223372036854775807,2)") == -2
    assert run("pow(10,pow(10,10))") == 0


def test_sizes_and_lists() -> None:
    assert run("[size(@0,0),int(mul(size(@0,1),2)),-1]", X) == (2, 6, -1)
    assert run("size(@0,-1)", X) == 3
    assert run("size(@0)", X) == (2, 3)
    assert run("[[True,False],[None,1.5]]") == ((True, False), (None, 1.5))
    assert run("[]") == ()


def test_a_list_of_tensors() -> None:
    first, second = run("[neg(@0),@0]", X)
    np.testing.assert_array_equal(first, -X)
    assert second is X


def test_int_of_a_tensor() -> None:
    assert run("int(@0)", np.array([[2.9]])) == 2
    with pytest.raises(ExpressionError, match="int takes a tensor of one element"):
        run("int(@0)", X)


def test_casts_of_tensors() -> None:
    got = run("torch.long(@0)", np.array([1.9, -1.9]))
    np.testing.assert_array_equal(got, [1, -1])
    assert got.dtype == np.int64
    assert run("torch.float(@0)", np.array([1 + 2j])).dtype == np.float32
    same = run("torch.float(@0)", X)
    assert same is not X


class Tracked(np.ndarray[Any, Any]):
    """An array that keeps count of the arrays made from it."""

    made: ClassVar[list["Tracked"]] = []

    def __array_finalize__(self, source: object) -> None:
        self.made.append(self)


@pytest.mark.parametrize(
    ("source", "arrays"),
    [
        ("sqrt(add(abs(@0),1))", 1),
        ("mul(sub(@0,1),2)", 1),
        ("sub(1,neg(@0))", 1),
        ("add(neg(@0),neg(@1))", 2),
        ("add(neg(@1),neg(@0))", 2),
        ("add(@0,@1)", 1),
    ],
)
def test_intermediate_arrays_are_written_over(source: str, arrays: int) -> None:
    expression = compile_source(source)
    given = [X.view(Tracked), Y.view(Tracked)]
    Tracked.made.clear()
    result = expression.evaluate(given)
    assert len(Tracked.made) == arrays
    assert any(result is made for made in Tracked.made)
    np.testing.assert_array_equal(X, [[1, 4, 9], [16, 25, 36]])
    np.testing.assert_array_equal(Y, [[0.5], [2]])


def test_an_intermediate_too_small_for_the_result_is_not_written_over() -> None:
    np.testing.assert_array_equal(run("add(neg(@0),@1)", Y, X), X - Y)
    np.testing.assert_array_equal(run("add(@1,neg(@0))", Y, X), X - Y)
    np.testing.assert_array_equal(run("sub(neg(@0),neg(@1))", Y, X), X - Y)
    np.testing.assert_array_equal(run("lt(neg(@0),neg(@1))", X, Y), X > Y)


def test_a_bare_operand_is_handed_through() -> None:
    assert run("@1", None, X) is X


def test_results_without_dimensions_are_tensors() -> None:
    got = run("mul(add(@0,1),2)", np.array(0.5, np.float32))
    assert isinstance(got, np.ndarray)
    assert got.shape == ()


def test_what_floating_point_signals_is_ignored() -> None:
    np.testing.assert_array_equal(run("log(@0)", np.array([0.0, -1])), [-np.inf, np.nan])
    assert run("div(1,0)") == math.inf
    assert spec("div(1,0)") == math.inf


def test_chains_of_any_depth_evaluate() -> None:
    depth = 10_000
    tree = parse("add(" * depth + "@0" + ",1)" * depth)
    np.testing.assert_array_equal(evaluate(tree, [np.array([1, 2])]), [depth + 1, depth + 2])
    assert infer(tree, [TensorSpec((2,), np.dtype(np.int64))]) == TensorSpec((2,), np.dtype(np.int64))


@pytest.mark.parametrize(
    ("source", "operands", "position", "problem"),
    [
        ("add(@0,mul(@0,@1))", (X, np.zeros((4, 5))), 7, "mul cannot broadcast (2, 3) with (4, 5)"),
        ("add(@0,@5)", (X, X, X), 7, "@5 does not exist: the expression was given 3 operands"),
        ("@1", (X,), 0, "@1 does not exist: the expression was given 1 operand"),
        ("size(@0,2)", (X,), 0, "dimension 2 is out of range for a tensor of rank 2"),
        ("size(@0,-3)", (X,), 0, "dimension -3 is out of range for a tensor of rank 2"),
        ("size(@0,0.5)", (X,), 0, "size takes the number of a dimension, got 0.5"),
        ("size(1,0)", (), 0, "size takes a tensor, got 1"),
        ("add(@0,None)", (X,), 0, "add takes tensors and numbers, got None"),
        ("add(None,@0)", (X,), 0, "add takes tensors and numbers, got None"),
        ("add(1,[1])", (), 0, "add takes tensors and numbers, got a tuple"),
        ("sqrt(@0)", ("text",), 0, "sqrt takes tensors and numbers, got a str"),
        ("size(@0,0)", ((1, 2),), 0, "size takes tensors and numbers, got a tuple"),
        ("and(@0,1)", (X,), 0, "bitwise_and is not defined for float32"),
        ("neg(True)", (), 0, "neg is not defined for bool"),
        ("floor_divide(1,0)", (), 0, "integer division by zero"),
        ("int(nan)", (), 0, "int takes a number that fits in 64 bits, got nan"),
        ("int(1.0+1.0j)", (), 0, "int takes a real number, got a complex one"),
        ("[int(1e30)]", (), 1, "int takes a number that fits in 64 bits, got 1e+30"),
        ("add(@0,1)", (2**70,), 0, "add takes integers of at most 64 bits"),
    ],
)
def test_faults_carry_the_expression_and_a_caret(
    source: str, operands: tuple[Any, ...], position: int, problem: str
) -> None:
    with pytest.raises(ExpressionError) as caught:
        run(source, *operands)
    lines = str(caught.value).splitlines()
    assert lines == [problem, f"    {source}", f"    {' ' * position}^"]


@pytest.mark.parametrize(
    ("source", "problem"),
    [
        ("add(@0,mul(@0,@1))", "mul cannot broadcast (2, 3) with (4, 5)"),
        ("add(@0,@5)", "@5 does not exist: the expression was given 2 operands"),
        ("size(@0,2)", "dimension 2 is out of range"),
        ("and(@0,1)", "bitwise_and is not defined for float32"),
        ("add(@0,None)", "add takes tensors and numbers, got None"),
        ("floor_divide(1,0)", "integer division by zero"),
    ],
)
def test_inference_finds_the_same_faults(source: str, problem: str) -> None:
    with pytest.raises(ExpressionError) as caught:
        spec(source, spec_of(X), TensorSpec((4, 5), np.dtype(np.float64)))
    assert str(caught.value).startswith(problem)


@pytest.mark.parametrize(
    ("source", "operands"),
    [
        ("add(@0,@1)", (X, Y)),
        ("sub(1,@0)", (X.astype(np.int32),)),
        ("div(@0,@1)", (X.astype(np.int32), Y)),
        ("sqrt(@0)", (X.astype(np.int64),)),
        ("abs(@0)", (np.array([1j, 2]),)),
        ("lt(@0,@1)", (X, Y)),
        ("add(@0,@1)", (X, np.array(1.0))),
        ("add(@0,0.5)", (X.astype(np.float16),)),
        ("torch.long(@0)", (X,)),
        ("square(@0)", (np.array([True]),)),
        ("[size(@0,0),int(mul(size(@0,1),2)),neg(@0)]", (X,)),
        ("[None,True,[1.5,size(@0)]]", (X,)),
        ("@0", (X,)),
    ],
)
def test_inference_agrees_with_evaluation(source: str, operands: tuple[Any, ...]) -> None:
    assert spec(source, *map(spec_of, operands)) == spec_of(run(source, *operands))


def test_what_is_unknown_stays_unknown() -> None:
    known = spec_of(X)
    assert spec("add(@0,@1)", known, UNKNOWN) is UNKNOWN
    assert spec("size(@0,0)", UNKNOWN) is UNKNOWN
    assert spec("int(@0)", known) is UNKNOWN
    assert spec("[size(@0,0),int(@0)]", known) == (2, UNKNOWN)
    assert spec("size(@0,1)", known, UNKNOWN) == 3


def test_an_expression_names_its_operands_and_prints_itself() -> None:
    expression = compile_source("add(@2,mul( @0,@2))")
    assert expression.operands == {0, 2}
    assert str(expression) == "add(@2,mul(@0,@2))"
    assert repr(expression) == "<Expression add(@2,mul(@0,@2))>"
    assert str(compile_expression(expression.root)) == str(expression)


def test_a_tree_made_by_hand_must_be_made_of_known_nodes_and_functions() -> None:
    with pytest.raises(TypeError, match="Node is not a node"):
        compile_expression(ExpressionNode())
    with pytest.raises(ExpressionError, match="unknown function 'foo'"):
        compile_expression(CallNode("foo", ()))
    with pytest.raises(ExpressionError, match="add takes 2 arguments, got 0"):
        compile_expression(CallNode("add", ()))
