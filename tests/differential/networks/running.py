"""Runs a network in PyTorch, exports it, and runs what was exported on both backends."""

import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from engine import KuiperError, RuntimeGraph
from engine.compiler.emit.target import Target, supported_targets
from engine.dtypes import Array
from tests.differential.comparison import compiling_for
from tests.differential.exporting import export
from tests.differential.layouts import LAYOUTS
from tests.differential.networks.table import Network, Size
from tests.differential.opening import open_graph
from tests.golden.make import flatten

THREADS = (1, 2, 3, 7)


@dataclass(frozen=True, slots=True)
class NetworkRun:
    """One run of a network, compared with PyTorch.

    Attributes:
        network: its name.
        size: the size of its inputs.
        how: backend, vector width, threads and layout.
        off: the largest difference, as a share of the largest output; infinity where it did not run.
        share: how far it may be off.
        text: what was raised.
    """

    network: str
    size: Size
    how: str
    off: float
    share: float
    text: str = ""

    @property
    def is_wrong(self) -> bool:
        """Whether it is off by more than it may be."""
        return not self.off <= self.share


def run_network(network: Network, seed: int, count: int, every: bool = False) -> Iterator[NetworkRun]:
    """Run a network at as many sizes; yields what came out.

    Args:
        network: the network.
        seed: what sizes are drawn from.
        count: how many sizes.
        every: whether to run every width with every number of threads, rather than each in its turn.
    """
    module = network.construct()
    sizes = list(network.draw_sizes(seed, count))
    with tempfile.TemporaryDirectory() as folder:
        path = export(module, network.arrays(_first(network)), network.arrays(_second(network)), Path(folder))
        plain = open_graph(path, "numpy")
        native = {
            (target, threads): open_graph(path, threads=threads)
            for target in supported_targets()
            for threads in THREADS
        }
        for place, size in enumerate(sizes):
            inputs = network.arrays(size)
            with torch.no_grad():
                wanted = flatten(module(*(torch.from_numpy(array.copy()) for array in inputs)))
            yield _compared(network, size, "numpy", plain, inputs, wanted)
            for turn, target in enumerate(supported_targets()):
                chosen = THREADS if every else (THREADS[(place + turn) % len(THREADS)],)
                layout = list(LAYOUTS)[(place + turn) % len(LAYOUTS)]
                for threads in chosen:
                    how = f"{target.name}, {threads} threads, {layout}"
                    yield _native(network, size, how, native[target, threads], target, layout, inputs, wanted)


def _native(
    network: Network,
    size: Size,
    how: str,
    graph: RuntimeGraph,
    target: Target,
    layout: str,
    inputs: list[Array],
    wanted: list[Array],
) -> NetworkRun:
    with compiling_for(target):
        return _compared(network, size, how, graph, [LAYOUTS[layout](array) for array in inputs], wanted)


def _compared(
    network: Network, size: Size, how: str, graph: RuntimeGraph, inputs: list[Array], wanted: list[Array]
) -> NetworkRun:
    try:
        outputs = graph.forward(inputs)
    except KuiperError as error:
        return NetworkRun(network.name, size, how, np.inf, network.share, f"{type(error).__name__}: {error}")
    if [output.shape for output in outputs] != [array.shape for array in wanted]:
        return NetworkRun(network.name, size, how, np.inf, network.share, "other shapes")
    off = max(
        float(np.max(np.abs(output - array)) / np.max(np.abs(array)))
        for output, array in zip(outputs, wanted, strict=True)
    )
    return NetworkRun(network.name, size, how, np.inf if np.isnan(off) else off, network.share)


def _first(network: Network) -> Size:
    return (1, *network.fixed) if network.fixed else (1, 64, 64)


def _second(network: Network) -> Size:
    return (2, *network.fixed) if network.fixed else (2, 96, 128)
