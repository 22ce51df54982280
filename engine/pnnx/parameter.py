"""The text of a parameter's value <-> the value.

PNNX writes no types in the text: `1` is an int, `1.0` a float, `(1,2)` an array of ints, and everything that
looks like none of these a string. So a string that looks like a number has no spelling.
"""

import math
import re

from engine.pnnx.model import ParameterValue
from engine.pnnx.tensor_type import shorten

EXPRESSION_KEY = "expr"
"""This parameter is source text, even when it looks like a number (`2`) or a list (`[[2,1],[0,1]]`)."""

_REAL = r"-?(?:[0-9]+(?:\.[0-9]*)?(?:[eE][+-]?[0-9]+)?|inf|nan)"
_INT_TEXT = re.compile(r"-?[0-9]+", re.ASCII)
_FLOAT_TEXT = re.compile(_REAL, re.ASCII)
_COMPLEX_TEXT = re.compile(rf"({_REAL})([+-])({_REAL})j", re.ASCII)
_BRACKETS = {"(": ")", "[": "]"}
_CONSTANTS: dict[str, ParameterValue] = {"None": None, "()": None, "[]": None, "True": True, "False": False}


def parse_value(key: str, text: str) -> ParameterValue:
    """Return what the text of parameter `key` means.

    Raises:
        ValueError: an integer does not fit 64 bits.
    """
    if key == EXPRESSION_KEY or "%" in text:
        return text
    if text in _CONSTANTS:
        return _CONSTANTS[text]
    if text[:1] in _BRACKETS and text.endswith(_BRACKETS[text[0]]):
        inside = text[1:-1]
        return text if any(bracket in inside for bracket in "()[]") else _parse_array(inside.split(","))
    return _parse_scalar(text)


def spell_value(value: ParameterValue) -> str:
    """Spell a value. For one that PNNX cannot express, the text reads back as another."""
    if isinstance(value, tuple):
        return f"({','.join(spell_value(element) for element in value)})"
    if isinstance(value, complex):
        return f"{value.real!r}+{value.imag!r}j"
    return str(value)


def format_value(key: str, value: ParameterValue) -> str:
    """Spell a value so that `parse_value` returns it, types included.

    Raises:
        ValueError: the format has no spelling for this value.
    """
    text = spell_value(value)
    if not same_value(parse_value(key, text), value):
        raise ValueError(
            f"{shorten(repr(value))} has no spelling in PNNX: {shorten(text)} reads back as another value"
        )
    return text


def same_value(left: ParameterValue, right: ParameterValue) -> bool:
    """Compare values and their types: True, 1 and 1.0 differ; nan equals itself."""
    if type(left) is not type(right):
        return False
    if isinstance(left, tuple) and isinstance(right, tuple):
        return len(left) == len(right) and all(map(same_value, left, right))
    return repr(left) == repr(right)


def _parse_array(elements: list[str]) -> ParameterValue:
    if all(map(_INT_TEXT.fullmatch, elements)):
        return tuple(map(_parse_int, elements))
    if all(map(_FLOAT_TEXT.fullmatch, elements)):
        return tuple(map(_parse_float, elements))
    if all(_FLOAT_TEXT.fullmatch(element) or _COMPLEX_TEXT.fullmatch(element) for element in elements):
        return tuple(map(_parse_complex, elements))
    return tuple(elements)


def _parse_scalar(text: str) -> int | float | complex | str:
    if _INT_TEXT.fullmatch(text):
        return _parse_int(text)
    if _FLOAT_TEXT.fullmatch(text):
        return _parse_float(text)
    if _COMPLEX_TEXT.fullmatch(text):
        return _parse_complex(text)
    return text


def _parse_int(text: str) -> int:
    if len(text) > 20 or not -(2**63) <= int(text) < 2**63:
        raise ValueError(f"integer {shorten(text)} does not fit 64 bits; expected -2**63 to 2**63 - 1")
    return int(text)


def _parse_float(text: str) -> float:
    # One nan for all, so that graphs which hold it compare equal: containers take identity for equality.
    return math.nan if "nan" in text else float(text)


def _parse_complex(text: str) -> complex:
    parts = _COMPLEX_TEXT.fullmatch(text)
    if parts is None:
        return complex(_parse_float(text))
    real, sign, imaginary = parts.groups()
    return complex(float(real), float(imaginary) if sign == "+" else -float(imaginary))
