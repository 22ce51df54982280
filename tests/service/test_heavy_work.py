import gzip
import sys
import threading
from collections.abc import Callable
from itertools import count

import numpy as np
import pytest

from engine.run.switch_interval import SHORT_SWITCH_INTERVAL
from service import heavy_work
from service.codec.json_document import LARGE_BYTES, parse_document
from service.codec.json_tensor import parse_data
from service.codec.json_text import PIECE_ELEMENTS, dump_pieces
from service.codec.multipart import parse_multipart
from service.codec.npz import read_npz
from service.codec.number_text import NumberText
from service.codec.table import read_table
from service.config.limits import Limits
from service.heavy_work import (
    HeavyWorkError,
    WorkStoppedError,
    check_wanted,
    check_weight,
    giving_way,
    leave_heavy_work,
    stoppable,
)
from service.v2.compression import compress, decompress
from tests.service.codec.payloads import npz


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


def test_heavy_work_gives_way_after_each_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    now, slept = 0.0, list[float]()
    monkeypatch.setattr(heavy_work, "perf_counter", lambda: now)
    monkeypatch.setattr(heavy_work, "sleep", slept.append)
    check_wanted()
    with giving_way():
        for piece in range(1, 10):
            now += 0.4 * heavy_work._TURN_SECONDS
            check_wanted()
            assert len(slept) == piece // 3  # three pieces are more than a turn
    now += 1.0
    check_wanted()  # light work goes on
    assert len(slept) == 3


@pytest.mark.parametrize(("amount", "is_left"), [(10, False), (11, True)])
def test_a_thread_that_leaves_heavy_work_does_what_is_light(amount: int, is_left: bool) -> None:
    def work() -> None:
        leave_heavy_work()
        check_weight(amount, 10)

    assert bool(in_thread(work)) == is_left


def test_other_threads_do_all_work() -> None:
    check_weight(11, 10)
    assert in_thread(lambda: check_weight(11, 10)) == []


def test_work_is_given_up_when_nobody_waits_for_it() -> None:
    check_wanted()
    reasons: list[str | None] = [None, "its time is up"]
    with stoppable(lambda: reasons.pop(0)):
        check_wanted()
        with pytest.raises(WorkStoppedError, match="its time is up"):
            check_wanted()
    check_wanted()


COUNT = 1 << 18
FORM = b'--bound\r\nContent-Disposition: form-data; name="a"\r\n\r\n%b\r\n--bound--\r\n'
MANY = b"1," * COUNT


@pytest.mark.parametrize(
    "work",
    [
        lambda: parse_document(b'{"data":[%b1]}' % MANY),
        lambda: (
            NumberText(b"[%b1]" % MANY, 0, len(MANY) + 3).shape("x")
            and list(NumberText(b"[%b1]" % MANY, 0, len(MANY) + 3).elements("x"))
        ),
        lambda: read_table(b"1,2\n" * COUNT, np.dtype(np.float32), Limits()),
        lambda: read_npz(npz(np.zeros(COUNT), compressed=True), Limits()),
        lambda: parse_multipart(FORM % bytes(COUNT), "bound"),
        lambda: decompress(gzip.compress(bytes(COUNT)), "gzip", Limits()),
        lambda: dump_pieces(np.zeros(COUNT)),
        lambda: compress([bytes(COUNT << 4)], "gzip"),
    ],
    ids=["document", "numbers", "table", "npz", "form", "gzip", "answer", "compressed answer"],
)
def test_large_bodies_and_answers_are_given_up_between_their_pieces(work: Callable[[], object]) -> None:
    calls = count()
    with stoppable(lambda: "nobody waits" if next(calls) else None), pytest.raises(WorkStoppedError):
        work()
    assert next(calls) == 2, "it stops at the first piece after that"
    work()


@pytest.mark.usefixtures("idle_compiler")
@pytest.mark.parametrize(("factor", "turns"), [(1, SHORT_SWITCH_INTERVAL), (0, None)], ids=["long", "short"])
@pytest.mark.parametrize(
    "work",
    [
        lambda count: parse_document(b'{"data":[%b1]}' % (b"1," * count)),
        lambda count: parse_data(
            NumberText(b"[%b1]" % (b"1," * count), 0, 2 * count + 3),
            None,
            np.dtype(np.float32),
            Limits(),
            "x",
        ),
        lambda count: read_table(b"1,2\n" * (count // 2), np.dtype(np.float32), Limits()),
        lambda count: dump_pieces(np.zeros(count // 8 + PIECE_ELEMENTS + 1)),
    ],
    ids=["document", "numbers", "table", "answer"],
)
def test_threads_take_short_turns_while_much_is_parsed_or_written(
    work: Callable[[int], object], factor: int, turns: float | None
) -> None:
    usual, seen = sys.getswitchinterval(), list[float]()
    with stoppable(lambda: seen.append(sys.getswitchinterval())):
        work(factor * COUNT + LARGE_BYTES)
    assert seen == pytest.approx([turns or usual] * len(seen))
    assert seen
    assert sys.getswitchinterval() == usual
