"""Expressions: any tree prints and parses back; any tree evaluates as a plain recursive reading of it does."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.errors import ExpressionError
from engine.expression import (
    FUNCTIONS,
    CallNode,
    ConstantNode,
    ExpressionNode,
    ListNode,
    NumberNode,
    OperandNode,
    evaluate,
    infer,
    inorder,
    operands,
    parse,
    reverse_polish,
)
from engine.spec import UNKNOWN, Spec, Value, spec_of

Array = npt.NDArray[Any]

LIMITED = settings(max_examples=100)

integers = st.integers(-(2**63), 2**63 - 1)
numbers = st.one_of(integers, st.floats(), st.complex_numbers())
leaves = st.one_of(
    numbers.map(NumberNode),
    st.integers(0, 10**9 - 1).map(OperandNode),
    st.sampled_from((None, True, False)).map(ConstantNode),
)


def calls(children: st.SearchStrategy[ExpressionNode]) -> st.SearchStrategy[ExpressionNode]:
    def arguments(name: str) -> st.SearchStrategy[ExpressionNode]:
        function = FUNCTIONS[name]
        lists = st.lists(children, min_size=function.least, max_size=function.most)
        return lists.map(lambda items: CallNode(name, tuple(items)))

    return st.sampled_from(sorted(FUNCTIONS)).flatmap(arguments)


def lists(children: st.SearchStrategy[ExpressionNode]) -> st.SearchStrategy[ExpressionNode]:
    return st.lists(children, max_size=3).map(lambda items: ListNode(tuple(items)))


trees = st.recursive(leaves, lambda children: calls(children) | lists(children), max_leaves=12)

X = np.array([[0.5, -2, 3]], np.float64)
Y = np.array([[1.5], [-0.25]], np.float64)

REFERENCE: dict[str, Callable[..., Any]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "maximum": np.maximum,
    "neg": lambda a: -a,
    "abs": np.abs,
    "sin": np.sin,
    "square": lambda a: a * a,
    "tanh": np.tanh,
    "fmod": np.fmod,
}
"""Enough functions to show a wrong order, a lost argument and an overwritten operand; each exact in float64."""

real_leaves = st.one_of(
    st.sampled_from((0, 1)).map(OperandNode),
    st.integers(-4, 4).map(NumberNode),
    st.sampled_from((0.5, 1.25)).map(NumberNode),
)


def reference_calls(children: st.SearchStrategy[ExpressionNode]) -> st.SearchStrategy[ExpressionNode]:
    def arguments(name: str) -> st.SearchStrategy[ExpressionNode]:
        count = FUNCTIONS[name].most
        return st.tuples(*[children] * count).map(lambda items: CallNode(name, items))

    return st.sampled_from(sorted(REFERENCE)).flatmap(arguments)


def all_calls_have_tensors(node: ExpressionNode) -> bool:
    return all(operands(call) for call in every_call(node))


def every_call(node: ExpressionNode) -> list[CallNode]:
    found = [node] if isinstance(node, CallNode) else []
    return found + [call for child in node.children for call in every_call(child)]


# Every call has a tensor below it: numbers among themselves round to float32, which the reference does not do.
tensor_trees = st.recursive(real_leaves, reference_calls, max_leaves=20).filter(all_calls_have_tensors)


def recursive_reference(node: ExpressionNode, given: list[Array]) -> Any:
    if isinstance(node, OperandNode):
        return given[node.index]
    if isinstance(node, CallNode):
        return REFERENCE[node.function](*(recursive_reference(child, given) for child in node.arguments))
    assert isinstance(node, NumberNode)
    return node.value


@LIMITED
@given(trees)
def test_a_printed_tree_parses_to_itself(tree: ExpressionNode) -> None:
    again = parse(str(tree))
    assert again == tree
    assert reverse_polish(again) == reverse_polish(tree)
    assert inorder(again) == inorder(tree)


@LIMITED
@given(trees, st.data())
def test_space_between_tokens_changes_nothing(tree: ExpressionNode, data: st.DataObject) -> None:
    space = data.draw(st.sampled_from((" ", "\t", " \n ")))
    spaced = (
        str(tree).replace(",", f"{space},{space}").replace("(", f"{space}({space}").replace("]", f"{space}]")
    )
    assert parse(spaced) == tree


@LIMITED
@given(numbers)
def test_numbers_survive_exactly(value: complex) -> None:
    node = parse(str(NumberNode(value)))
    assert isinstance(node, NumberNode)
    assert type(node.value) is type(value)
    assert repr(node.value) == repr(value)


@LIMITED
@given(trees.filter(lambda tree: isinstance(tree, CallNode)))
def test_flattening_the_brackets_of_a_call_loses_nothing(tree: ExpressionNode) -> None:
    assert isinstance(tree, CallNode)
    if "size" in str(tree) or not tree.arguments:
        return  # of size's two forms the flattened one can only guess
    flattened = f"{tree.function},{str(tree)[len(tree.function) + 1 : -1]}"
    assert parse(flattened) == tree


@LIMITED
@given(tensor_trees)
def test_evaluation_agrees_with_a_recursive_reading(tree: ExpressionNode) -> None:
    given_arrays = [X.copy(), Y.copy()]
    with np.errstate(all="ignore"):
        wanted = recursive_reference(tree, given_arrays)
    got = evaluate(tree, given_arrays)
    np.testing.assert_array_equal(got, wanted)
    np.testing.assert_array_equal(given_arrays[0], X)
    np.testing.assert_array_equal(given_arrays[1], Y)
    assert infer(tree, [spec_of(X), spec_of(Y)]) == spec_of(got)


def agrees(known: Spec, value: Spec) -> bool:
    if known is UNKNOWN:
        return True
    if isinstance(known, tuple):
        return isinstance(value, tuple) and all(map(agrees, known, value))
    if isinstance(known, float | complex) and known != known:
        return isinstance(value, float | complex) and value != value
    return known == value


@LIMITED
@given(trees, st.sampled_from(["float32", "float16", "int64", "uint8", "bool", "complex64"]))
def test_evaluating_any_tree_gives_a_value_or_an_error_that_inference_foresees(
    tree: ExpressionNode, dtype: str
) -> None:
    given_values: list[Value] = [np.ones((2, 3), dtype), np.zeros(3, dtype), 2]
    numbered = parse(shrink_operands(str(tree)))
    try:
        value = evaluate(numbered, given_values)
    except ExpressionError:
        return
    assert agrees(infer(numbered, [spec_of(item) for item in given_values]), spec_of(value))


def shrink_operands(text: str) -> str:
    pieces = text.split("@")
    return pieces[0] + "".join(
        f"@{int(piece[: digits(piece)]) % 4}{piece[digits(piece) :]}" for piece in pieces[1:]
    )


def digits(piece: str) -> int:
    return len(piece) - len(piece.lstrip("0123456789"))


@LIMITED
@given(st.text(max_size=80) | st.text("@0123456789.,()[]einfaj+-dxTNo ", max_size=80))
def test_any_text_parses_or_is_refused(text: str) -> None:
    try:
        tree = parse(text)
    except ExpressionError as error:
        fault = error
    else:
        assert parse(str(tree)) == tree
        return
    assert fault.source == text
    assert 0 <= fault.position <= len(text)


@LIMITED
@given(trees, st.data())
def test_a_broken_tree_parses_or_is_refused(tree: ExpressionNode, data: st.DataObject) -> None:
    text = str(tree)
    cut = data.draw(st.integers(0, len(text)))
    inserted = data.draw(st.sampled_from(("", ",", "(", ")", "[", "]", "@", "add", "log1p,", "1")))
    try:
        parse(text[:cut] + inserted + text[cut + data.draw(st.integers(0, 1)) :])
    except ExpressionError:
        return


def test_the_generator_of_numbers_knows_the_awkward_ones() -> None:
    for value in (-0.0, math.inf, 5e-324, complex(-0.0, -0.0), complex(math.nan, -math.inf)):
        node = parse(str(NumberNode(value)))
        assert isinstance(node, NumberNode)
        assert repr(node.value) == repr(value)
