"""Nested lists of JSON as one flat array, and what kinds of elements they hold.

Lists are flattened without regard to the tensor that they are for: `json_tensor` checks that. So a decoder process can
flatten those of a large document, and the server sees no object for each number.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from math import prod
from typing import Any

import numpy as np

from engine import Array
from service.codec.json_text import NOT_FINITE

MAX_RANK = 32
NAME = "name"
"""The kind of a string that names NaN or an infinity; of all others it is `str`."""


@dataclass(frozen=True, slots=True)
class Numbers:
    """Nested lists, flattened.

    Attributes:
        nesting: how long the lists are at each depth; () for a single element.
        kinds: names of the types of the elements, such as `int`, `NoneType`, or `NAME`.
        values: the elements in row-major order, as bool, int64, uint64 or float64; None where they are no numbers,
            beyond all of these, or too many.
        problem: what is wrong with the lists, and what is expected; None where they are even.
    """

    nesting: tuple[int, ...]
    kinds: frozenset[str]
    values: Array | None
    problem: tuple[str, str] | None = None

    def __repr__(self) -> str:
        """Describe them for messages, which never show the numbers of a large array."""
        return f"a list of shape {list(self.nesting)}"


def flatten(data: Any, limit: int) -> Numbers:
    """Flatten lists.

    Args:
        data: nested lists, or a single element.
        limit: elements that are too many: the shape of more may be incomplete.
    """
    if not isinstance(data, list):
        return _numbers((), [data], {type(data)})
    shape, level = [len(data)], data
    while list in (kinds := set(map(type, level))):
        lengths = set(map(len, level)) if len(kinds) == 1 else set()
        if len(lengths) != 1:
            problem = f"lists differ in depth or length at depth {len(shape) + 1}", "equal ones"
            return Numbers(tuple(shape), frozenset(), None, problem)
        shape.append(lengths.pop())
        if len(shape) > MAX_RANK + 1:
            problem = f"data is nested more than {MAX_RANK} deep", "fewer dimensions"
            return Numbers(tuple(shape), frozenset(), None, problem)
        if prod(max(dim, 1) for dim in shape) > limit:
            return Numbers(tuple(shape), frozenset(("list",)), None)
        level = list(chain.from_iterable(level))
    return _numbers(tuple(shape), level, kinds)


def _numbers(nesting: tuple[int, ...], level: Sequence[Any], kinds: set[type]) -> Numbers:
    names = {kind.__name__ for kind in kinds}
    if str in kinds and all(value in NOT_FINITE for value in level if type(value) is str):
        level = [NOT_FINITE[value] if type(value) is str else value for value in level]
        names = names - {"str"} | {NAME}
    return Numbers(nesting, frozenset(names), _values(level, names))


def _values(level: Sequence[Any], kinds: set[str]) -> Array | None:
    """Return elements in the narrowest of the dtypes that hold all of them."""
    if kinds == {"bool"}:
        dtypes: tuple[type, ...] = (np.bool_,)
    elif kinds and kinds <= {"bool", "int"}:
        dtypes = (np.int64, np.uint64, np.float64)
    else:
        dtypes = (np.float64,) if kinds <= {"int", "float", NAME} else ()
    for dtype in dtypes:
        try:
            return np.array(level, dtype)
        except OverflowError:
            continue
    return None
