"""The short form of `make soak`."""

import io
import json
import sys
from pathlib import Path

import pytest

if sys.platform != "linux":
    pytest.skip("what another process uses is read from /proc", allow_module_level=True)
from engine import PROGRAMS_KEPT
from tests.soak.crashes import run_crashes
from tests.soak.reloads import run_reloads
from tests.soak.sizes import PROVED, RUN_SIZES, formed
from tests.soak.soak import run_soak

SECONDS = 12.0
ROUNDS = 4


def test_mixed_load_leaves_nothing_wrong_and_nothing_behind(tmp_path: Path) -> None:
    report = run_soak(tmp_path, SECONDS, ROUNDS)
    assert not report.counts.faults, report.summary()
    statuses = report.counts.statuses
    some = min(50, statuses.total() // 100)  # a busy machine answers a tenth of what an idle one does
    assert statuses["503"] > some, "the queues were never full"
    assert statuses["504"] > 5, "no deadline passed"
    assert report.counts.unanswered > some, "no client left"
    # every kind of request was made, under load as well as alone
    assert min(report.counts.kinds.values()) > 0
    assert {"load digits", "unload guest", "load guest"} <= report.counts.kinds.keys()


def test_a_server_that_was_killed_comes_up_again(tmp_path: Path) -> None:
    lines = io.StringIO()
    assert run_crashes(tmp_path, 1, 0, lines) == []
    crash = json.loads(lines.getvalue())
    assert (crash["crash"], crash["faults"]) == (0, 0)


def test_a_model_is_loaded_again_and_no_client_notices() -> None:
    lines = io.StringIO()
    assert run_reloads(3, lines) == []
    assert [json.loads(line)["faults"] for line in lines.getvalue().splitlines()] == [0, 0, 0]


def test_batches_have_the_sizes_that_the_rule_wants_and_others_where_calls_bring_them() -> None:
    assert formed((1, 2), 16) == {1, 2, 4, 8, 16}
    assert formed((3,), 8) == {1, 2, 3, 4, 6, 8}
    assert formed((1, 2, 3, 4), 8) == {1, 2, 3, 4, 5, 6, 7, 8}
    assert formed((1, 2, 3, 4), 2) == {1, 2, 3, 4}


@pytest.mark.parametrize("model", RUN_SIZES, ids="-".join)
def test_all_programs_of_a_model_are_kept_under_load(model: tuple[str, str]) -> None:
    assert len(RUN_SIZES[model] | PROVED) < PROGRAMS_KEPT
