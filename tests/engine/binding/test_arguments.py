import builtins
import inspect
import re
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import engine.binding.arguments
from engine.binding.arguments import (
    _ALLOWED,
    Argument,
    BareWord,
    DType,
    Floats,
    Ints,
    Number,
    Operand,
    read_arguments,
)
from engine.dtypes import Array
from engine.errors import ArgumentError, SignatureError
from engine.expression import Expression
from tests.cases import check_each


def argument(annotation: Any) -> Argument:
    def call(value: Any) -> None:
        del value

    call.__annotations__["value"] = annotation
    return read_arguments(call)[0][0]


CONVERSIONS: list[tuple[Any, Any, Any]] = [
    (int, 3, 3),
    (int, np.array(3), 3),
    (int, np.array([3]), 3),
    (float, 3, 3.0),
    (float, "inf", float("inf")),
    (float, "-inf", float("-inf")),
    (float, "-inf.0", float("-inf")),
    (BareWord | Expression, "linear", "linear"),
    (float, np.float32(1.5) * np.ones(()), 1.5),
    (bool, True, True),
    (bool, np.array(False), False),
    (str, "zeros", "zeros"),
    (str | None, None, None),
    (int | None, None, None),
    (Ints, 3, (3,)),
    (Ints, (3, 4), (3, 4)),
    (Ints, [3, np.array(4)], (3, 4)),
    (Ints, np.array([3, 4]), (3, 4)),
    (Ints, None, ()),
    (Ints | str, "same", "same"),
    (Ints | str, (1, 2), (1, 2)),
    (Floats, (1, 2.5), (1.0, 2.5)),
    (Number, 2, 2),
    (Number, 2.5, 2.5),
    (Number, 2j, 2j),
    (DType, "torch.float", np.dtype(np.float32)),
    (DType, "torch.int64", np.dtype(np.int64)),
    (DType | None, None, None),
    (Operand, 2, 2),
]


def test_converts() -> None:
    def check(case: tuple[Any, Any, Any]) -> None:
        annotation, given, wanted = case
        converted = argument(annotation).convert(given)
        assert converted == wanted
        assert type(converted) is type(wanted)

    check_each(CONVERSIONS, check)


def test_tensor_stays_itself() -> None:
    array = np.ones((2, 3))
    assert argument(Operand).convert(array) is array
    assert argument(Array | None).convert(array) is array


@pytest.mark.parametrize(
    ("annotation", "given", "message"),
    [
        (int, "x", "value: got 'x'; expected an int"),
        (int, True, "value: got True; expected an int"),
        (int, 2.5, "value: got 2.5; expected an int"),
        (int, np.ones((2, 3)), r"value: got a tensor of shape \(2, 3\) and dtype float64; expected an int"),
        (float, None, "value: got None; expected a float"),
        (bool, 1, "value: got 1; expected a bool"),
        (str, 1, "value: got 1; expected a string"),
        (Ints, ("a",), r"value: got \('a',\); expected ints"),
        (DType, "torch.nope", "value: got 'torch.nope'; expected a torch dtype"),
        (Array, 3, "value: got 3; expected a tensor"),
        (Number, "x", "expected an int or a float or a complex number"),
    ],
)
def test_wrong_kind_is_an_error(annotation: Any, given: Any, message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        argument(annotation).convert(given)


def test_variadic_and_collecting_signatures() -> None:
    def call(*inputs: Array, dim: int = 0, **attributes: Array) -> None:
        del inputs, dim, attributes

    named, variadic, collects = read_arguments(call)
    assert [a.name for a in named] == ["dim"]
    assert variadic
    assert collects


@pytest.mark.parametrize("text", ["None", "inf", "add(@0,1)", "@0", "2"])
def test_an_expression_is_no_word(text: str) -> None:
    assert isinstance(argument(BareWord | Expression).convert(text), Expression)


@pytest.mark.parametrize("annotation", [np.ndarray, npt.NDArray[np.float32], np.ndarray | None, Array | None])
def test_arrays_of_numpy_are_tensors(annotation: Any) -> None:
    x = np.ones(3)
    assert argument(annotation).takes_tensor
    assert argument(annotation).convert(x) is x


@pytest.mark.parametrize(
    ("annotation", "problem"),
    [
        (list, "is annotated list"),
        (list[int], "is annotated list"),
        (dict[str, int] | int, "is annotated dict"),
        (
            "np.ndarray",
            "is annotated by the text 'np.ndarray', as `from __future__ import annotations` makes of all",
        ),
        ([int], r"is annotated \[<class 'int'>\]"),
        (object(), "is annotated <object"),
        (inspect.Parameter.empty, "has no annotation"),
    ],
)
def test_annotation_that_says_nothing_is_reported(annotation: Any, problem: str) -> None:
    with pytest.raises(
        SignatureError, match=rf"layer function .*call, argument 'value': {problem}"
    ) as caught:
        argument(annotation)
    assert "expected np.ndarray (a tensor), bool, int" in str(caught.value)


def test_every_annotation_that_is_named_is_known() -> None:
    for name in re.findall(
        r"\b[A-Za-z.]+\b", _ALLOWED.replace("(a tensor)", "").replace("or of engine.binding.arguments", "")
    ):
        kinds = {"np.ndarray": np.ndarray, "None": None} | vars(builtins) | vars(engine.binding.arguments)
        assert read_arguments(annotated(kinds[name]))


def annotated(annotation: Any) -> Any:
    def call(value: Any) -> None:
        del value

    call.__annotations__["value"] = annotation | int if annotation is None else annotation
    return call


def test_members_of_a_union_are_tried_in_its_own_order() -> None:
    """Although Python holds unions of the same members in another order to be equal."""
    assert str(argument(int | float).convert(3)) == "3"
    assert str(argument(float | int).convert(3)) == "3.0"
