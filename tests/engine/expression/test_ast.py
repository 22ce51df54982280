import pytest

from engine.expression import inorder, operands, parse, postorder, reverse_polish

SEEDS = {
    "add(@0,mul(@1,@2))": (
        "NUM: 0, ADD, NUM: 1, MUL, NUM: 2",
        "@0 @1 @2 mul add",
    ),
    "add(mul(@0,@1),@2)": (
        "NUM: 0, MUL, NUM: 1, ADD, NUM: 2",
        "@0 @1 mul @2 add",
    ),
    "add(@0,div(@1,@2))": (
        "NUM: 0, ADD, NUM: 1, DIV, NUM: 2",
        "@0 @1 @2 div add",
    ),
    "add(add(mul(@0,@1),mul(@2,add(add(add(@0,@2),@3),@4))),@5)": (
        "NUM: 0, MUL, NUM: 1, ADD, NUM: 2, MUL, NUM: 0, ADD, NUM: 2, ADD, NUM: 3, ADD, NUM: 4, ADD, NUM: 5",
        "@0 @1 mul @2 @0 @2 add @3 add @4 add mul add @5 add",
    ),
}


@pytest.mark.parametrize("source", SEEDS)
def test_inorder_walk_of_the_course(source: str) -> None:
    assert ", ".join(inorder(parse(source))) == SEEDS[source][0]


@pytest.mark.parametrize("source", SEEDS)
def test_reverse_polish_form(source: str) -> None:
    assert " ".join(reverse_polish(parse(source))) == SEEDS[source][1]


def test_walks_of_literals_unary_functions_and_lists() -> None:
    tree = parse("[sqrt(@1),0.5,None]")
    assert inorder(tree) == ["NUM: 1", "SQRT", "[3]", "0.5", "None"]
    assert reverse_polish(tree) == ["@1", "sqrt", "0.5", "None", "[3]"]


def test_postorder_puts_children_before_their_parent() -> None:
    assert [str(node) for node in postorder(parse("add(neg(@0),1)"))] == [
        "@0",
        "neg(@0)",
        "1",
        "add(neg(@0),1)",
    ]


def test_operands() -> None:
    assert operands(parse("add(@3,mul(@0,@3))")) == {0, 3}
    assert operands(parse("[1,2]")) == frozenset()


def test_walks_do_not_recurse() -> None:
    tree = parse("add(@0," * 10_000 + "@1" + ")" * 10_000)
    assert inorder(tree)[:3] == ["NUM: 0", "ADD", "NUM: 0"]
    assert reverse_polish(tree)[-2:] == ["add", "add"]
