"""The sanitizer as one of the checks of a long differential run."""

import tempfile
from pathlib import Path

from engine import KuiperError
from tests.differential.case import GraphCase
from tests.differential.comparison import Finding, Tally, forward, opened
from tests.differential.modes import modes_of
from tests.sanitizer.run import run_checked


def check_accesses(case: GraphCase, index: int, tally: Tally) -> Finding | None:
    """Run a case with every access checked, on the vector width and with the threads that its index chooses."""
    (mode,) = modes_of(index, 1)
    with tempfile.TemporaryDirectory() as folder:
        try:
            graph = opened(case, Path(folder), "numpy")
        except KuiperError:
            return None
        for run in range(len(case.runs)):
            inputs = case.arrays(run)
            if isinstance(forward(graph, inputs), KuiperError):
                continue  # no backend takes these shapes
            try:
                run_checked(graph, inputs, mode.target, mode.threads)
            except Exception as error:  # whatever it is, it is what is looked for
                return Finding("memory", f"{mode}, run {run}: {type(error).__name__}: {error}")
    return None
