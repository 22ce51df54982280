"""The short form of `make soak`."""

import sys
from pathlib import Path

import pytest

if sys.platform != "linux":
    pytest.skip("what another process uses is read from /proc", allow_module_level=True)
from tests.soak.soak import run_soak

SECONDS = 12.0
ROUNDS = 4


def test_mixed_load_leaves_nothing_wrong_and_nothing_behind(tmp_path: Path) -> None:
    # kernels are compiled for each new shape, which is no matter of so short a time
    report = run_soak(tmp_path, SECONDS, ROUNDS, flags=("--backend", "numpy"))
    assert not report.ledger.faults, report.summary()
    statuses = report.ledger.statuses
    assert statuses["503"] > 50, "the queues were never full"
    assert statuses["504"] > 5, "no deadline passed"
    assert report.ledger.unanswered > 50, "no client left"
    # every kind of request was made, under load as well as alone
    assert min(report.ledger.kinds.values()) > 0
    assert {"load digits", "unload guest", "load guest"} <= report.ledger.kinds.keys()
