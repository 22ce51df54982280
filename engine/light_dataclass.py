"""`dataclass` for the many small classes of the compiler and the service: Python's own, made in a third of the time.

Python's own compiles each method of each class from text when a module is imported, half a millisecond a class, and
a server has well over two hundred of them: that was a tenth of its start. Here only `__init__` is compiled;
comparing, hashing and showing are functions that all classes share. That nothing is assigned to a frozen object is
left to the type checker, for which this is Python's own. What the engine exports, tasks and payload formats are made by
Python's own, which makes no frozen class of another's that is not: people derive theirs from these.
"""

import dataclasses
from collections.abc import Callable
from operator import attrgetter
from reprlib import recursive_repr
from typing import TYPE_CHECKING, Any, TypeVar

Made = TypeVar("Made")

if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass  # noqa: PLC0414  # it is to be imported from here
else:

    def dataclass(
        cls: type[Made] | None = None,
        /,
        *,
        frozen: bool = False,
        eq: bool = True,
        repr: bool = True,
        **options: bool,
    ) -> Any:
        """Make a dataclass; see `dataclasses.dataclass`, which takes the other options.

        Args:
            cls: the class.
            frozen: whether its objects can be hashed.
            eq: whether two objects of the class are equal where their fields are.
            repr: whether an object is shown with its fields.
            options: passed on.
        """

        def make(cls: type[Made]) -> type[Made]:
            own = vars(cls)
            made = dataclasses.dataclass(repr=False, eq=False, **options)(cls)
            if repr and "__repr__" not in own:
                made.__repr__ = _shower(made)
            if eq and "__eq__" not in own:
                _compare_by_fields(made, frozen, "__hash__" in own)
            return made

        return make if cls is None else make(cls)


def _shower(cls: type[Any]) -> Callable[[Any], str]:
    names = [field.name for field in dataclasses.fields(cls) if field.repr]

    def show(self: Any) -> str:
        values = ", ".join([f"{name}={getattr(self, name)!r}" for name in names])
        return f"{type(self).__qualname__}({values})"

    return recursive_repr()(show)


def _compare_by_fields(cls: type[Any], frozen: bool, has_own_hash: bool) -> None:
    """Have objects of a class compared by their fields; hashed by them, too, if they are frozen."""
    names = [field.name for field in dataclasses.fields(cls) if field.compare]
    if len(names) == 1:
        # twice, so that attrgetter returns a tuple: compared in one, a value equals itself even if it is NaN
        names *= 2
    values: Callable[[Any], object] = attrgetter(*names) if names else type

    def is_equal(self: Any, other: object) -> bool:
        return values(self) == values(other) if type(other) is type(self) else NotImplemented

    def hashed(self: Any) -> int:
        return hash(values(self))

    cls.__eq__ = is_equal  # type: ignore[assignment]  # as Python's own does
    if not has_own_hash:
        cls.__hash__ = hashed if frozen else None  # type: ignore[assignment]  # as Python's own does
