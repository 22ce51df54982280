"""Valid and hostile requests, mixed, in small; and that what is wrong is seen."""

import io
import json
import os
import sys
from collections import Counter
from pathlib import Path
from random import Random

import pytest

from tests.attack.hostile import hostile
from tests.attack.mixed import Mixture, errors_in, mix
from tests.soak.cases import make_cases
from tests.soak.checkpoint import Checkpoint, CheckpointLog, growth_of
from tests.soak.usage import Usage

LINUX = pytest.mark.skipif(sys.platform != "linux", reason="what another process uses is read from /proc")
REQUESTS = 400


@LINUX
def test_none_of_some_requests_is_answered_wrong(tmp_path: Path) -> None:
    log = io.StringIO()
    run = mix(tmp_path, REQUESTS, 0, log, every=0.0)
    assert not run.faults, run.summary()
    assert run.valid + run.hostile.total() == REQUESTS
    assert run.statuses["200"] > REQUESTS // 4
    assert run.statuses["400"] > REQUESTS // 10
    assert set(run.hostile) == {"body", "headers", "target", "method", "bytes", "smuggled", "part"}
    last = json.loads(log.getvalue().splitlines()[-1])
    assert last["faults"] == 0
    assert {"seconds", "requests", "threads", "files", "rss", "statuses"} <= set(last)


def test_a_seed_makes_the_same_requests() -> None:
    sound = [case.request for case in make_cases() if case.request.body and case.status == 200]
    chance, again = Random("a"), Random("a")
    made = [hostile(chance, sound) for _ in range(200)]
    assert made == [hostile(again, sound) for _ in range(200)]
    assert len({one.data for one in made}) > 190


def test_faults_are_counted_and_the_first_are_reported() -> None:
    run = Mixture(0, Counter({"200": 1}), valid=1)
    run.blame(None)
    for number in range(30):
        run.blame(f"fault {number}")
    assert (run.fault_count, len(run.faults)) == (30, 20)
    assert "FAULT: fault 0\n" in run.summary()
    assert run.summary().endswith("30 faults")


def checkpoint(memory: int) -> Checkpoint:
    return Checkpoint(1.0, 2, {"200": 2}, 0, Usage(3, 4, memory))


def test_growth_is_that_after_a_quarter_of_the_run() -> None:
    warming = [checkpoint(size) for size in (1, 50, 90)]
    assert growth_of([*warming, *[checkpoint(100)] * 9]) == 0
    assert growth_of([*warming, *[checkpoint(100 + 10 * step) for step in range(9)]]) == 60
    assert growth_of(warming) == 0


@LINUX
def test_checkpoints_come_as_often_as_they_are_to() -> None:
    target = io.StringIO()
    often, seldom = CheckpointLog(target, 0.0), CheckpointLog(target, 1000.0)
    assert often.is_due
    assert not seldom.is_due
    often.write(os.getpid(), {"200": 3, "503": 1}, 2)
    line = json.loads(target.getvalue())
    assert (line["requests"], line["faults"], line["statuses"]) == (4, 2, {"200": 3, "503": 1})


def test_errors_of_a_log_are_shown_with_their_causes() -> None:
    entry = "2026-11-22T19:16:13.457Z"
    lines = [
        f"{entry} INFO      ready",
        f"{entry} ERROR   unhandled error",
        "Traceback (most recent call last):",
        "ValueError: no",
        f"{entry} INFO      stopping",
    ]
    assert errors_in(lines) == ["\n".join(lines[1:4])]
