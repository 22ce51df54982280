"""Exports random modules and compares what both backends compute with PyTorch."""

import copy
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import torch

from engine import KuiperError, RuntimeGraph
from engine.dtypes import Array
from tests.differential.comparison import (
    DISTURBANCE,
    Finding,
    Mode,
    Tally,
    compiling_for,
    difference,
    forward,
    tolerance,
)
from tests.differential.exporting import export
from tests.differential.layouts import LAYOUTS
from tests.differential.modes import modes_of
from tests.differential.modules.drawing import Drawn, outputs, random_module
from tests.differential.modules.layers import Stack
from tests.differential.opening import open_graph
from tests.golden.make import ExportError


@dataclass(slots=True)
class ModuleReport:
    """What a run over random modules covered and found.

    Attributes:
        modules: modules that were exported and compared.
        unexported: modules that the exporter did not take.
        operators: PNNX type -> how many of them were in these.
        tally: runs that were compared.
        findings: modules that came out wrong, with layers left out as long as they did, and what was seen.
    """

    modules: int = 0
    unexported: int = 0
    operators: Counter[str] = field(default_factory=Counter)
    tally: Tally = field(default_factory=Tally)
    findings: list[tuple[Drawn, Finding]] = field(default_factory=list)


def hunt_modules(seed: int, first: int, count: int, modes: int) -> ModuleReport:
    """Compare as many random modules, each in as many modes."""
    report = ModuleReport()
    for index in range(first, first + count):
        drawn = random_module(seed, index)
        chosen = modes_of(index, modes)
        try:
            finding = compare_module(drawn, chosen, report.tally, report.operators)
        except ExportError:
            report.unexported += 1
            continue
        report.modules += 1
        if finding is not None:
            small = shrunk(drawn, chosen, finding)
            report.findings.append((small, compare_module(small, chosen) or finding))
    return report


def compare_module(
    drawn: Drawn, modes: list[Mode], tally: Tally | None = None, operators: Counter[str] | None = None
) -> Finding | None:
    """Compare both backends with PyTorch; returns the first thing that is not as it should be.

    Raises:
        ExportError: the exporter failed.
    """
    tally = Tally() if tally is None else tally
    wanted = [_expected(drawn, run) for run in drawn.runs]
    with tempfile.TemporaryDirectory() as folder:
        path = export(drawn.module, drawn.runs[0], drawn.runs[1], Path(folder))
        try:
            plain = open_graph(path, "numpy")
        except KuiperError as error:
            return Finding("refusal", f"numpy: {error}")
        if operators is not None:
            operators.update(operator.type for operator in plain.operators)
        finding = _compared("numpy", plain, drawn, "contiguous", wanted, tally)
        for mode in modes:
            if finding is not None:
                break
            with compiling_for(mode.target):
                native = open_graph(path, threads=mode.threads)
                finding = _compared(str(mode), native, drawn, mode.layout, wanted, tally)
                if finding is None and native.verification.refused:
                    finding = Finding("compiler", str(native.verification.refused[0]))
            tally.runs[mode.target.name] = tally.runs.get(mode.target.name, 0) + len(wanted)
    return finding


def shrunk(drawn: Drawn, modes: list[Mode], finding: Finding) -> Drawn:
    """Leave layers out as long as what is left is wrong in the same way."""
    place = 0
    while place < len(drawn.module.layers) and len(drawn.module.layers) > 1:
        layers = list(drawn.module.layers)
        smaller = Drawn(drawn.name, Stack(layers[:place] + layers[place + 1 :]).eval(), drawn.runs)
        found = None
        with suppress(
            ExportError, RuntimeError, ValueError, TypeError, IndexError, AssertionError
        ):  # does not run without that layer
            found = compare_module(smaller, modes)
        if found is not None and found.kind == finding.kind:
            drawn = smaller
        else:
            place += 1
    return drawn


def _expected(drawn: Drawn, run: tuple[Array, ...]) -> tuple[list[Array], list[float]]:
    """Return what PyTorch gives, and how far each output may be off."""
    wanted = outputs(drawn.module, run)
    off = copy.deepcopy(drawn.module)
    random = np.random.default_rng(0)
    with torch.no_grad():
        for parameter in off.parameters():
            noise = 1 + DISTURBANCE * random.uniform(-1, 1, tuple(parameter.shape))
            parameter.mul_(torch.from_numpy(np.asarray(noise, np.float32)))
    inputs = tuple(_off(array, random) for array in run)
    others = outputs(off, inputs)
    with np.errstate(all="ignore"):
        return wanted, [tolerance(*pair) for pair in zip(wanted, others, strict=True)]


def _off(array: Array, random: np.random.Generator) -> Array:
    if array.dtype.kind != "f":
        return array
    return (array * (1 + DISTURBANCE * random.uniform(-1, 1, array.shape))).astype(np.float32)


def _compared(
    how: str,
    graph: RuntimeGraph,
    drawn: Drawn,
    layout: str,
    wanted: list[tuple[list[Array], list[float]]],
    tally: Tally,
) -> Finding | None:
    for inputs, (expected, allowed) in zip(drawn.runs, wanted, strict=True):
        given = [LAYOUTS[layout](array) for array in inputs]
        try:
            with np.errstate(all="ignore"):
                outcome = forward(graph, given)
        except Exception as error:  # whatever it is, it is what is looked for
            return Finding("exception", f"{how}: {type(error).__name__}: {error}")
        finding = difference(outcome, expected, allowed, tally)
        if finding is not None:
            shapes = ", ".join(str(array.shape) for array in inputs)
            return Finding(finding.kind, f"{how}, inputs {shapes}: {finding.text}")
    return None


def report_lines(report: ModuleReport) -> Iterator[str]:
    """Yield what a run over random modules covered and found."""
    yield f"random modules         {report.modules:>8}"
    yield f"not exported           {report.unexported:>8}"
    for target, runs in sorted(report.tally.runs.items()):
        yield f"runs on {target:<15}{runs:>8}"
    yield f"largest difference     {report.tally.largest:>8.2f}   of what is allowed"
    yield f"types of operators     {len(report.operators):>8}"
    yield f"wrong modules          {len(report.findings):>8}"
    for drawn, finding in report.findings:
        yield f"\n# {drawn.name}: {finding.kind}: {finding.text}\n{drawn.module}"
    yield ""
