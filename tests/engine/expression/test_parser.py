import math

import pytest

from engine.errors import ExpressionError
from engine.expression import (
    CallNode,
    ConstantNode,
    ExpressionNode,
    ListNode,
    NumberNode,
    OperandNode,
    operands,
    parse,
)
from engine.expression.parser import MAX_DEPTH
from tests.cases import check_each


@pytest.mark.parametrize(
    "source",
    [
        "add(@0,mul(@1,@2))",
        "add(mul(@0,@1),@2)",
        "add(@0,div(@1,@2))",
        "add(add(mul(@0,@1),mul(@2,add(add(add(@0,@2),@3),@4))),@5)",
        "add(sin(@0),mul(cos(@0),sqrt(add(abs(@0),1))))",
        "[size(@0,0),int(mul(size(@0,1),2)),-1]",
        "[[True,False],[False,False,True,False]]",
        "[None,None,[1,0]]",
        "[]",
        "0.5",
        "@12",
        "size(@0)",
        "torch.float(size(@0,1))",
        "logaddexp(@0,erf(@1))",
    ],
)
def test_a_tree_prints_as_it_was_written(source: str) -> None:
    assert str(parse(source)) == source


def test_the_tree() -> None:
    tree = parse("add( mul(@0,2), [None,True,1.5] )")
    assert isinstance(tree, CallNode)
    assert (tree.function, tree.position) == ("add", 0)
    product, items = tree.arguments
    assert isinstance(product, CallNode)
    assert product.arguments == (OperandNode(0), NumberNode(2))
    assert product.position == 5
    assert isinstance(items, ListNode)
    assert items.items == (ConstantNode(None), ConstantNode(True), NumberNode(1.5))
    assert tree.source == "add( mul(@0,2), [None,True,1.5] )"


@pytest.mark.parametrize(
    ("source", "value"),
    [
        ("3", 3),
        ("-3", -3),
        ("007", 7),
        ("4.0", 4.0),
        ("1e-5", 1e-5),
        ("1.000000e20", 1e20),
        ("inf", math.inf),
        ("-inf", -math.inf),
        ("9223372036854775807", 2**63 - 1),
        ("-9223372036854775808", -(2**63)),
        ("2.000000e+00+3.000000e+00j", 2 + 3j),
        ("-2.000000e+00-3.000000e-05j", -2 - 3e-5j),
    ],
)
def test_numbers(source: str, value: complex) -> None:
    node = parse(source)
    assert isinstance(node, NumberNode)
    assert node.value == value
    assert type(node.value) is type(value)


@pytest.mark.parametrize("source", ["nan", "nan.0", "-nan"])
def test_nan(source: str) -> None:
    node = parse(source)
    assert isinstance(node, NumberNode)
    assert isinstance(node.value, float)
    assert math.isnan(node.value)


@pytest.mark.parametrize(
    ("source", "meaning"),
    [
        ("log1p,@0", "log1p(@0)"),
        ("expm1,sub(@0,0.5)", "expm1(sub(@0,0.5))"),
        ("add(log1p,@0,1)", "add(log1p(@0),1)"),
        ("sub(add(expm1,@0),@1),0.5", "sub(add(expm1(@0),@1),0.5)"),
        ("[int(expm1),size(@0,0),2]", "[int(expm1(size(@0,0))),2]"),
        ("[int(log1p),size(@0)]", "[int(log1p(size(@0)))]"),
        ("log1p,expm1,log1p,@0", "log1p(expm1(log1p(@0)))"),
        ("torch.double,size(@0,1)", "torch.double(size(@0,1))"),
    ],
)
def test_misplaced_brackets_are_read_by_arity(source: str, meaning: str) -> None:
    assert parse(source) == parse(meaning)
    assert str(parse(source)) == meaning


def fault(source: str) -> ExpressionError:
    with pytest.raises(ExpressionError) as caught:
        parse(source)
    return caught.value


MALFORMED: list[tuple[str, int, str]] = [
    ("", 0, "expected an expression, got the end of the expression"),
    ("add(@0,@1", 9, "expected ',' or ')' in the arguments of add, got the end of the expression"),
    ("add(@0,@1))", 10, "expected the end of the expression, got ')'"),
    ("add(@0,@1)@2", 10, "expected the end of the expression, got '@2'"),
    ("add(@0 @1)", 7, "expected ',' or ')' in the arguments of add, got '@1'"),
    ("add(@0,)", 7, "expected an expression, got ')'"),
    ("add(@0,,@1)", 7, "expected an expression, got ','"),
    ("mul(add(@0),1)", 4, "add takes 2 arguments, got 1"),
    ("sqrt()", 0, "sqrt takes 1 argument, got 0"),
    ("size(@0,1,2)", 0, "size takes 1 or 2 arguments, got 3"),
    ("add(@0,mull(@1,2))", 7, "unknown function 'mull' (nearest known: mul)"),
    ("qqqqqq", 0, "unknown function 'qqqqqq'"),
    ("none", 0, "unknown function 'none' (nearest known: ne)"),
    ("add", 3, "expected '(' after add, got the end of the expression"),
    ("add[@0]", 3, "expected '(' after add, got '['"),
    ("[1,2", 4, "expected ',' or ']' in a list, got the end of the expression"),
    ("[1,2)", 4, "expected ',' or ']' in a list, got ')'"),
    ("[,]", 1, "expected an expression, got ','"),
    ("1(2)", 1, "expected the end of the expression, got '('"),
    ("9223372036854775808", 0, "expected an integer of at most 64 bits"),
    ("1" * 5000, 0, "expected an integer of at most 64 bits"),
    ("@1234567890", 0, "an operand's number has at most 9 digits"),
    ("add(log1p,@0)", 13, "expected an expression, got the end of the expression"),
    ("log1p,@0,@1", 9, "expected the end of the expression, got '@1'"),
]


def test_malformed_expressions() -> None:
    def check(case: tuple[str, int, str]) -> None:
        source, position, problem = case
        error = fault(source)
        assert str(error).splitlines()[0] == problem
        assert error.position == position
        assert error.source == source

    check_each(MALFORMED, check)


def test_the_caret_stands_under_the_fault() -> None:
    assert str(fault("add(@0,foo(@1))")).splitlines() == [
        "unknown function 'foo' (nearest known: floor)",
        "    add(@0,foo(@1))",
        "           ^",
    ]


@pytest.mark.parametrize("depth", [10_000, 40_000])
def test_deep_nesting_parses(depth: int) -> None:
    tree = parse("neg(" * depth + "@0" + ")" * depth)
    assert operands(tree) == {0}
    assert len(str(tree)) == 5 * depth + 2


@pytest.mark.parametrize("source", ["add(@0," * 10_000, "[" * 10_000, "log1p," * 10_000, ")" * 10_000])
def test_deep_nesting_without_an_end_fails_cleanly(source: str) -> None:
    assert fault(source).position in (0, len(source))


def test_nesting_beyond_the_limit_fails_cleanly() -> None:
    assert "nested deeper than 100000 levels" in str(fault("[" * (MAX_DEPTH + 2)))


def test_deep_trees_compare_hash_and_print() -> None:
    source = "add(@0," * 10_000 + "1" + ")" * 10_000
    one, other = parse(source), parse(source)
    assert one == other
    assert hash(one) == hash(other)
    assert repr(one).startswith("<CallNode add(@0,add(")
    assert one != parse("add(@0,1)")


def test_nodes_are_equal_by_what_they_say_not_by_where_it_stands() -> None:
    assert parse(" add( @0, 1 )") == CallNode("add", (OperandNode(0), NumberNode(1)))
    assert parse("add(@0,1)") != parse("add(@0,1.0)")
    assert parse("1") != "1"


def test_a_node_made_by_hand_shows_itself_in_errors() -> None:
    error = CallNode("add", (OperandNode(0), NumberNode(1))).error("wrong")
    assert str(error).splitlines() == ["wrong", "    add(@0,1)", "    ^"]


def test_the_base_node_has_no_label() -> None:
    with pytest.raises(NotImplementedError):
        str(ExpressionNode())
