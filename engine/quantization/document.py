"""Values of an untrusted JSON document: each is validated when read, and errors name its path."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from engine.errors import QuantizationError

MAX_ENTRIES = 100_000
"""Members of the largest object."""
LONGEST = 1024
"""Characters of the longest text, and of a place in messages."""
_LARGEST = 1e30

Item = TypeVar("Item")


def _shown(place: str) -> str:
    """Return names from the file as messages may hold them: not too long, and without what cannot be printed."""
    return "".join(sign if sign.isprintable() else ascii(sign)[1:-1] for sign in place[:LONGEST])


class Node:
    """A value of the document, and where it stands."""

    def __init__(self, path: Path, place: str, value: Any) -> None:
        self._path, self._place, self._value = path, place, value

    def error(self, key: str, problem: str, expected: str | None = None) -> QuantizationError:
        """Return what is wrong with the value of a key."""
        place = _shown(".".join(filter(None, (self._place, key))))
        return QuantizationError(self._path, place or None, problem, expected)

    def mapping(self, key: str) -> "Node":
        """Return an object that is the value of a key, or the value itself where there is none."""
        value = self.take(key) if key else self._value
        if not isinstance(value, dict):
            raise self.error(key, f"is {type(value).__name__}", "an object")
        return Node(self._path, ".".join(filter(None, (self._place, key))), value)

    def take(self, key: str) -> Any:
        """Return the value of a key that has to be there."""
        if key not in self._value:
            raise self.error(key, "is missing")
        return self._value[key]

    def text(self, key: str) -> str:
        """Return a text."""
        value = self.take(key)
        if not isinstance(value, str):
            raise self.error(key, f"is {type(value).__name__}", "a text")
        if len(value) > LONGEST:
            raise self.error(key, f"has {len(value):,} characters", f"at most {LONGEST:,}")
        return value

    def whole(self, key: str, least: int, greatest: int) -> int:
        """Return a whole number within bounds."""
        value = self.take(key)
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= greatest:
            raise self.error(key, f"got {repr(value)[:40]}", f"a whole number from {least} to {greatest}")
        return value

    def has(self, key: str) -> bool:
        """Return whether there is such a key."""
        return key in self._value

    def number(self, key: str, least: float, greatest: float = _LARGEST) -> float:
        """Return a number within bounds."""
        value = self.take(key)
        if isinstance(value, bool) or not isinstance(value, int | float) or not least <= value <= greatest:
            raise self.error(key, f"got {repr(value)[:40]}", f"a number from {least:g} to {greatest:g}")
        return float(value)

    def maybe(self, key: str) -> float | None:
        """Return a number of any sign, or None for null."""
        return None if self.take(key) is None else self.number(key, -_LARGEST)

    def flag(self, key: str) -> bool:
        """Return true or false."""
        value = self.take(key)
        if not isinstance(value, bool):
            raise self.error(key, f"got {repr(value)[:40]}", "true or false")
        return value

    def items(self, known: tuple[str, ...]) -> tuple[str, ...]:
        """Check that there are no keys but the known ones; returns these."""
        for key in self._value:
            if key not in known:
                raise self.error(key, "is unknown", f"one of {', '.join(known)}")
        return known

    def each(self, make: "Callable[[Node, str], Item]") -> Mapping[str, Item]:
        """Return what is made of each key."""
        if len(self._value) > MAX_ENTRIES:
            raise self.error("", f"has {len(self._value):,} entries", f"at most {MAX_ENTRIES:,}")
        return {name: make(self, name) for name in self._value}
