"""Words pydantic's errors for people who do not write Python."""

import re
from typing import Any

from service.errors import did_you_mean

_WORDS = (
    (re.compile(r"^Value error, "), ""),
    (re.compile(r"^Extra inputs are not permitted$"), "Unknown key"),
    (re.compile(r"a valid tuple"), "a list"),
    (re.compile(r"^Tuple should (.*) after validation"), r"List should \1"),
    (re.compile(r"a valid dictionary or instance of \w+"), "a table"),
)
"""What pydantic writes, and what is said instead."""


def nearest_of(fault: Any) -> str:
    """Return "; did you mean 'WORD'?" where a value has to be one of a few words, and one is near; else nothing.

    Args:
        fault: one of `ValidationError.errors()`.
    """
    if fault["type"] != "literal_error":
        return ""
    return did_you_mean(str(fault["input"]), re.findall(r"'([^']*)'", fault["msg"]))


def problem_of(fault: Any) -> str:
    """Return what is wrong with a value: pydantic's sentence, in words that do not take its classes for known.

    Args:
        fault: one of `ValidationError.errors()`.
    """
    if fault["msg"] == "Field required" and fault["loc"] and isinstance(fault["loc"][-1], int):
        return f"Item {fault['loc'][-1] + 1} of the list is required"
    text = str(fault["msg"])
    for pattern, words in _WORDS:
        text = pattern.sub(words, text)
    return text
