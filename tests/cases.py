"""Tables of cases: one test checks all of them, and names each that fails."""

from collections.abc import Callable, Iterable
from typing import TypeVar

import pytest

Case = TypeVar("Case")


def check_each(cases: Iterable[Case], check: Callable[[Case], object]) -> None:
    """Check every case of a table, also after one has failed.

    Args:
        cases: what `check` is called with; the `repr` of a case names it in a failure.
        check: raises where the case is wrong.

    Raises:
        ExceptionGroup: the failures, each with the name of its case, under the names of all that failed.
    """
    count, failures, names = 0, [], []
    for case in cases:
        count += 1
        try:
            check(case)
        except (Exception, pytest.fail.Exception) as error:  # the latter, of `pytest.raises`, is no Exception
            failure = error if isinstance(error, Exception) else AssertionError(str(error))
            failure.add_note(f"case: {case!r}")
            failures.append(failure.with_traceback(error.__traceback__))
            names.append(repr(case))
    if failures:
        raise ExceptionGroup(f"{len(failures)} of {count} cases failed: {'; '.join(names)}", failures)
    if not count:
        raise ValueError("the table has no cases")
