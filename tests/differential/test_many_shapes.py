"""The short form of many shapes at once: a few lengths and a few sizes of pictures, in each precision."""

import threading
from typing import Any
from unittest.mock import patch

import pytest

from engine import Precision
from engine.compiler.program.programs import Programs
from tests.differential.many_shapes import NETWORKS, ManyShapes, run_many_shapes

COUNT = 3
SHORT = ((NETWORKS[0], "bf16"), (NETWORKS[1], "int8"))
"""One network of sentences and one of pictures; `make differential` runs all of them in each precision."""


@pytest.mark.parametrize(("network", "precision"), SHORT, ids=["sentences", "pictures"])
def test_clients_get_what_graphs_give_that_wait(network: ManyShapes, precision: str) -> None:
    run = run_many_shapes(network, precision, 0, COUNT)
    assert not run.text
    assert run.by_numpy + run.by_both
    assert run.by_kernels + run.by_both


@pytest.mark.plants_a_mistake
def test_programs_that_are_compiled_otherwise_beside_runs_are_found() -> None:
    make = Programs._make_in

    def in_float32_beside(self: Programs, precision: Precision, *others: Any) -> Any:
        in_background = threading.current_thread().name.startswith("kuiper-compiler")
        return make(self, Precision.F32 if in_background else precision, *others)

    with patch.object(Programs, "_make_in", in_float32_beside):
        run = run_many_shapes(NETWORKS[1], "bf16", 0, COUNT)
    assert "neither" in run.text
