"""What `engine.light_dataclass` makes, beside what Python's own `dataclass` makes of the same classes."""

import dataclasses
import math
from collections.abc import Callable
from typing import Any

import pytest

from engine import light_dataclass

Decorator = Callable[..., Any]
BOTH = pytest.mark.parametrize(
    "dataclass", [dataclasses.dataclass, light_dataclass.dataclass], ids=["python", "light"]
)


def _pair(dataclass: Decorator, **options: bool) -> tuple[Any, Any]:
    """Return two classes of the same fields."""

    class Size:
        rows: int
        columns: int = 1
        names: list[str] = dataclasses.field(default_factory=list, compare=False, repr=False)

    class Other:
        rows: int
        columns: int = 1

    return dataclass(**options)(Size), dataclass(**options)(Other)


@BOTH
def test_frozen_objects_are_compared_and_hashed_by_their_fields(dataclass: Decorator) -> None:
    size, other = _pair(dataclass, frozen=True, slots=True)
    assert size(2) == size(2, 1, ["x"])
    assert size(2) != size(3)
    assert size(2) != other(2)
    assert size(2) != (2, 1)
    assert len({size(2), size(2, 1), size(1, 2)}) == 2


@BOTH
def test_classes_of_one_field_and_of_none_are_compared(dataclass: Decorator) -> None:
    @dataclass(frozen=True)
    class One:
        value: object

    @dataclass(frozen=True)
    class Empty:
        pass

    assert One(1) == One(1) != One(2)
    assert hash(One(1)) == hash(One(1))
    assert Empty() == Empty()
    assert hash(Empty()) == hash(Empty())
    assert One(math.nan) == One(math.nan)  # the same object


@BOTH
def test_objects_are_shown_with_their_fields(dataclass: Decorator) -> None:
    size, _ = _pair(dataclass, frozen=True, slots=True)
    assert repr(size(2)) == "_pair.<locals>.Size(rows=2, columns=1)"


@BOTH
def test_objects_that_refer_to_themselves_are_shown(dataclass: Decorator) -> None:
    @dataclass(slots=True)
    class Node:
        following: object = None

    node = Node()
    node.following = node
    assert repr(node).endswith("Node(following=...)")


@BOTH
def test_other_objects_cannot_be_hashed(dataclass: Decorator) -> None:
    size, _ = _pair(dataclass, slots=True)
    assert size(2) == size(2)
    with pytest.raises(TypeError, match="unhashable"):
        hash(size(2))


@BOTH
def test_where_fields_are_not_compared_each_object_is_itself(dataclass: Decorator) -> None:
    size, _ = _pair(dataclass, slots=True, eq=False)
    one = size(2)
    assert one == one
    assert one != size(2)
    assert len({one, size(2)}) == 2


@BOTH
def test_methods_that_a_class_has_of_its_own_stay(dataclass: Decorator) -> None:
    @dataclass(frozen=True)
    class Name:
        text: str

        def __eq__(self, other: object) -> bool:
            return isinstance(other, Name) and self.text.lower() == other.text.lower()

        def __hash__(self) -> int:
            return 7

        def __repr__(self) -> str:
            return "a name"

    assert Name("A") == Name("a")
    assert (hash(Name("A")), repr(Name("A"))) == (7, "a name")


@BOTH
def test_derived_classes_have_the_fields_of_both(dataclass: Decorator) -> None:
    @dataclass(frozen=True, slots=True, kw_only=True)
    class Base:
        rows: int

    @dataclass(frozen=True, slots=True, kw_only=True)
    class Derived(Base):
        columns: int

    assert Derived(rows=1, columns=2) != Derived(rows=1, columns=3)
    assert Derived(rows=1, columns=2) != Base(rows=1)
    changed = dataclasses.replace(Derived(rows=1, columns=2), rows=3)
    assert [field.name for field in dataclasses.fields(changed)] == ["rows", "columns"]
    assert changed == Derived(rows=3, columns=2)
