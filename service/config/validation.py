"""Validation with pydantic of what clients send: each error names the key, the value given and what was expected."""

from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError, ValidatorFunctionWrapHandler, WrapValidator
from pydantic_core import PydanticCustomError

from service.errors import shown


@dataclass(frozen=True, slots=True)
class Mismatch:
    """One thing that is wrong with a document.

    Attributes:
        key: dotted name of the key; empty for the document as a whole.
        problem: what is wrong, as in "is -1".
        expected: what is accepted, as in "a whole number from 0".
        is_unknown_key: whether there is no such key.
    """

    key: str
    problem: str
    expected: str = ""
    is_unknown_key: bool = False


def mismatch(problem: str, expected: str) -> PydanticCustomError:
    """Return the error for a validator to raise, which `first_mismatch` reads."""
    return PydanticCustomError("mismatch", "unexpected", {"problem": problem, "expected": expected})


def expected(what: str) -> WrapValidator:
    """Return a validator that says "is <value>; expected <what>" whatever the other validators of a value refuse."""

    def check(value: Any, validate: ValidatorFunctionWrapHandler) -> Any:
        try:
            return validate(value)
        except ValidationError as error:
            if error.errors()[0]["loc"]:
                raise  # something inside the value is wrong, and says so itself
            raise mismatch(f"is {shown(value)}", what) from error

    return WrapValidator(check)


def first_mismatch(error: ValidationError) -> Mismatch:
    """Return the first thing that pydantic found wrong."""
    fault = error.errors(include_url=False)[0]
    key = ".".join(part for part in fault["loc"] if isinstance(part, str))
    if fault["type"] == "mismatch":
        return Mismatch(key, **fault["ctx"])
    return Mismatch(key, fault["msg"], is_unknown_key=fault["type"] == "extra_forbidden")


def number_from_text(value: Any) -> Any:
    """Return a whole number that is written as text, as protobuf's JSON does with 64 bits; other values unchanged."""
    if isinstance(value, str) and value.isascii() and value.removeprefix("-").isdigit() and len(value) < 20:
        return int(value)
    return value
