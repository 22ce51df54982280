"""Prints what comparisons found."""

from collections import Counter
from collections.abc import Iterable, Sequence

from engine.check.comparison import NUMPY, REFERENCE, Difference


def print_outputs(differences: Sequence[Difference]) -> bool:
    """Print how outputs compare; returns whether one differs."""
    for difference in differences:
        verdict = difference.problem or f"agrees, largest difference {_number(difference.absolute)}"
        print(f"output  {difference.operand}  {verdict} ({difference.backend})")
    return any(difference.problem for difference in differences)


def print_layers(differences: Iterable[Difference]) -> bool:
    """Print the first operator that differs from a reference, or that none does; returns whether one does."""
    return _print_first(differences, "layers", "first divergence", REFERENCE)


def print_backends(differences: Iterable[Difference]) -> bool:
    """Print the first operator that two backends compute differently, if any; returns whether there is one."""
    return _print_first(differences, "backends", "first difference", NUMPY)


def _print_first(differences: Iterable[Difference], what: str, first: str, reference: str) -> bool:
    agree: Counter[tuple[str, str]] = Counter()
    largest = 0.0
    for difference in differences:
        _print_group(difference)
        if difference.problem is not None:
            _print_problem(difference, first, agree.total())
            return True
        agree[difference.against, difference.backend] += 1
        largest = max(largest, difference.relative or 0.0)
    by = ", ".join(
        f"{n} computed by {backend}" for (other, backend), n in agree.items() if other == reference
    )
    count = sum(n for (other, _), n in agree.items() if other == reference)
    print(f"{what}  {count} operands agree with {reference} ({by or 'none'})")
    if agree.total() > count:
        print(f"{what}  {agree.total() - count} ends of groups computed by native agree with numpy")
    print(f"{what}  largest difference {_number(largest)} of a tensor's largest element")
    return False


def _print_problem(difference: Difference, first: str, agree: int) -> None:
    place = f"{difference.type} {difference.operator}, operand {difference.operand!r}"
    who = f"computed by {difference.backend}, compared with {difference.against}"
    print(f"{first}  {place}: {difference.problem} ({who}) ({agree} operands before it agree)")
    if difference.group:
        print(f"  or one that its kernel computes besides: {', '.join(difference.group)}")


def _print_group(difference: Difference) -> None:
    """Print what of a group of fused operators was compared where."""
    place = f"{difference.type} {difference.operator}, operand {difference.operand!r}"
    if difference.seen_at is not None:
        print(
            f"fused  {place}: in a kernel's registers only, and the reference lacks {difference.seen_at!r}, where that "
            "kernel ends; what numpy computes is compared with the reference, and the kernel's end with numpy"
        )
    elif difference.group:
        print(f"fused  {', '.join(difference.group)}: compared at the end of the group, {place}")


def _number(value: float | None) -> str:
    return "unknown" if value is None else f"{value:.3g}"
