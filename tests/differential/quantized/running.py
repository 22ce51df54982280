"""Runs drawn networks of quantized layers at random sizes, against PyTorch in double precision.

Every tensor that a program stores is compared with what PyTorch makes of the integers before it. Only those may differ,
by one, whose numbers lie half-way between two integers, as near as float32 shows.
"""

import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import torch

from engine import KuiperError, RuntimeGraph, TraceLevel, pnnx
from engine.dtypes import Array
from engine.spec import tensor_spec
from tests.differential.comparison import compiling_for
from tests.differential.layouts import LAYOUTS
from tests.differential.modes import rounded_mode_of
from tests.differential.opening import open_graph
from tests.differential.quantized.drawing import DrawnNetwork, Layer, draw_network

SIZES = 3
"""Sizes that each network runs at."""
_STEPS = 2e-4
"""Part of a step that float32 may be off: some units of its 24 digits, of a number of a few hundred steps."""
_EMPTY_ARCHIVE = b"PK\x05\x06" + bytes(18)


@dataclass(frozen=True, slots=True)
class QuantizedRun:
    """One run of a drawn network.

    Attributes:
        how: network, size, vector width and threads.
        tensors: how many tensors were compared.
        ties: integers that PyTorch rounds the other way, and integers in all.
        text: what was wrong; empty where nothing was.
    """

    how: str
    tensors: int = 0
    ties: tuple[int, int] = (0, 0)
    text: str = ""


def run_quantized(seed: int, index: int) -> Iterator[QuantizedRun]:
    """Run a drawn network at some sizes; yields what came out."""
    drawn = draw_network(seed, index)
    random = Random(f"{seed}/{index}")
    with tempfile.TemporaryDirectory() as folder:
        param = write(drawn, Path(folder))
        for place in range(SIZES):
            mode = rounded_mode_of(index * SIZES + place, "int8")
            shape = random.choice((1, 1, 2, 3, 5)), 3, random.randint(24, 90), random.randint(24, 90)
            x = np.random.default_rng(place).standard_normal(shape).astype(np.float32)
            threads = (1, random.choice((2, 3)))
            how = f"network {index}, {shape}, {mode.target.name}, {threads[1]} threads, {mode.layout}"
            try:
                with compiling_for(mode.target):
                    graphs = [open_graph(param, threads=count) for count in threads]
                    stored = _observe(graphs, LAYOUTS[mode.layout](x), drawn)
                yield QuantizedRun(how, len(stored), compare(drawn, x, stored))
            except (KuiperError, AssertionError) as error:
                yield QuantizedRun(how, text=f"{type(error).__name__}: {error}")


def write(drawn: DrawnNetwork, folder: Path) -> Path:
    """Write the files of a network; returns the `.param`."""
    param, archive = folder / "drawn.pnnx.param", folder / "drawn.pnnx.bin"
    operands = sum(int(line.split()[3]) for line in drawn.lines)
    param.write_text("\n".join(["7767517", f"{len(drawn.lines)} {operands}", *drawn.lines, ""]))
    archive.write_bytes(_EMPTY_ARCHIVE)
    graph = pnnx.read(param, archive)
    operators = {operator.name: operator for operator in graph.operators}
    for name, array in drawn.state.items():
        operator, key = name.split(".", 1)
        operators[operator].attrs[key] = pnnx.Attribute.from_array(array)
    pnnx.write(graph, param, archive)
    return param


def _observe(graphs: Sequence[RuntimeGraph], x: Array, drawn: DrawnNetwork) -> dict[str, Array]:
    """Return the tensors that programs store, by operand.

    Raises:
        AssertionError: numbers of threads give other bits, or products are of no integers.
    """
    graph, known = graphs[0], {layer.output for layer in drawn.layers}
    ends = graph.observable([tensor_spec(x)])
    names = [name for name, end in ends.items() if name == end and name in known]
    result = graph.run([x], capture=names, trace=TraceLevel.ON)
    outputs = [[array.tobytes() for array in each.forward([x])] for each in graphs]
    expected = [array.tobytes() for array in result.outputs]
    if any(given != expected for given in outputs):
        raise AssertionError("other bits for another number of threads, or where tensors are captured")
    layers = () if result.trace is None else result.trace.layers
    others = [layer.name for layer in layers if layer.multiply_adds and layer.precision != "int8"]
    if others or graph.verification.refused or set(result.captured_by.values()) != {"native"}:
        raise AssertionError(f"not computed in integers: {others or graph.verification.refused}")
    captured: dict[str, Any] = dict(result.captured)
    return {**captured, drawn.layers[-1].output: result.outputs[0]}


def compare(drawn: DrawnNetwork, x: Array, stored: dict[str, Array]) -> tuple[int, int]:
    """Compare tensors with what PyTorch makes of those before them.

    Returns:
        How many integers PyTorch rounds the other way, and how many there are.

    Raises:
        AssertionError: one is neither.
    """
    values = {"x": torch.from_numpy(x.copy()).double()}
    ties, count = 0, 0
    for layer in drawn.layers:
        steps = layer.compute(*(values[name] for name in layer.inputs)) / layer.scale[0] + layer.scale[1]
        if layer.output not in stored:
            values[layer.output] = _real(torch.round(steps).clamp(0, 255), layer)
            continue
        ours = torch.round(torch.from_numpy(stored[layer.output]).double() / layer.scale[0]) + layer.scale[1]
        if ours.shape != steps.shape:
            raise AssertionError(
                f"operand {layer.output}: {tuple(ours.shape)}; expected {tuple(steps.shape)}"
            )
        low, high = (torch.round(steps + off).clamp(0, 255) for off in (-_STEPS, _STEPS))
        wrong = int(((ours < low) | (ours > high)).sum())
        if wrong:
            most = int((ours - torch.round(steps).clamp(0, 255)).abs().max())
            raise AssertionError(f"operand {layer.output}: {wrong} of {ours.numel()} off, by {most} at most")
        ties += int((ours != torch.round(steps).clamp(0, 255)).sum())
        count += ours.numel()
        values[layer.output] = _real(ours, layer)
    return ties, count


def _real(whole: torch.Tensor, layer: Layer) -> torch.Tensor:
    return (whole - layer.scale[1]) * layer.scale[0]
