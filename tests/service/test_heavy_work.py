import threading
from collections.abc import Callable

import pytest

from service.heavy_work import HeavyWorkError, check_weight, leave_heavy_work


def in_thread(work: Callable[[], object]) -> list[BaseException]:
    """Do work in a thread of its own; returns what it raised."""
    raised: list[BaseException] = []

    def run() -> None:
        try:
            work()
        except HeavyWorkError as error:
            raised.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    return raised


@pytest.mark.parametrize(("amount", "is_left"), [(10, False), (11, True)])
def test_a_thread_that_leaves_heavy_work_does_what_is_light(amount: int, is_left: bool) -> None:
    def work() -> None:
        leave_heavy_work()
        check_weight(amount, 10)

    assert bool(in_thread(work)) == is_left


def test_other_threads_do_all_work() -> None:
    check_weight(11, 10)
    assert in_thread(lambda: check_weight(11, 10)) == []
