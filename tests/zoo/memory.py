"""Peak memory of loading networks with empty caches, beside their weights. Run: python -m tests.zoo.memory NAME …

Each is loaded and run in a process of its own, and what that had after its imports is subtracted. The same for the
digits model, of half a megabyte, is what the compiler takes. The command ends with status 1 where a network takes more
than that, 1.5 times its weights, and the memory of a run.
"""

import argparse
import os
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from zipfile import ZipFile

import numpy as np

from engine import Array, RuntimeGraph, TensorSpec
from tests.bench.memory import peak_bytes
from tests.bench.worker import in_own_process

_DIGITS = Path(__file__).parents[2] / "models/digits/digits.pnnx.param"
_SHARE = 1.5
_INPUTS = "inputs.npz"
_RUNS = 3


@dataclass(frozen=True)
class Load:
    """What loading a network took, in bytes.

    Attributes:
        peak: memory of the process at most, less what it had after its imports.
        weights: the weights in the file.
        run: memory of a run.
    """

    peak: int
    weights: int
    run: int


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, and print a table; returns 1 where a network takes more memory than it may."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("names", nargs="+", metavar="NAME")
    chosen = parser.parse_args(arguments)
    compiler = in_own_process(load, _DIGITS, [np.zeros((1, 1, 28, 28), np.float32)]).peak
    print(f"The compiler takes {compiler / 1e6:.0f} MB.\n")
    print("| network | weights, MB | a run, MB | peak, MB | peak without compiler and run, of the weights |")
    print("|---|---|---|---|---|")
    is_above = False
    with tempfile.TemporaryDirectory() as folder:
        for name in chosen.names:
            param = in_own_process(export_network, name, Path(folder) / name)
            with np.load(param.parent / _INPUTS) as inputs:
                found = in_own_process(load, param, list(inputs.values()))
            share = (found.peak - compiler - found.run) / found.weights
            sizes = " | ".join(f"{size / 1e6:.0f}" for size in (found.weights, found.run, found.peak))
            print(f"| {name} | {sizes} | {share:.2f} |", flush=True)
            is_above |= share > _SHARE
    return int(is_above)


def export_network(name: str, folder: Path) -> Path:
    """Export a network with fixed sizes; returns the `.param` file, beside which its inputs lie."""
    from service.export import export  # with PyTorch, which must not count for those that only load
    from tests.zoo.networks import NETWORKS

    network = NETWORKS[name]
    export(f"tests.zoo.networks:{name}", folder, inputs=[item.fixed for item in network.inputs])
    np.savez(folder / _INPUTS, *network.arrays())
    return next(folder.glob("*.param"))


def load(param: Path, inputs: list[Array]) -> Load:
    """Load a model in this process, with empty caches, and run it.

    Raises:
        RuntimeError: no kernel runs it, or the system does not say how much memory it takes.
    """
    imported = peak_bytes()
    with tempfile.TemporaryDirectory() as cache:
        os.environ["KUIPER_CACHE"] = cache
        graph = RuntimeGraph(param, backend="native")
        graph.build()
        footprint = graph.prepare([TensorSpec(array.shape, array.dtype) for array in inputs])
        for _ in range(_RUNS):
            graph.forward(inputs)
    peak = peak_bytes()
    if peak is None or imported is None or footprint is None:
        raise RuntimeError(f"{param.stem}: no kernels, or no peak of memory")
    with ZipFile(param.with_suffix(".bin")) as weights:
        size = sum(entry.file_size for entry in weights.infolist())
    return Load(peak - imported, size, footprint.arena_bytes + footprint.scratch_bytes)


if __name__ == "__main__":
    sys.exit(main())
