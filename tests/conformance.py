"""Runs a folder of exported models with inputs and outputs, and prints pass or fail with the reason.

Run: make conformance CORPUS=DIR      (or python -m tests.conformance DIR [--only TEXT] [--backend NAME])

Each folder of DIR holds `case.pnnx.param`, `case.pnnx.bin`, `inputs.npz` (in_0, in_1 … in the order of the inputs) and
`outputs.npz` (out_0 …, nested tuples flattened in order). A case passes when every output has the shape and dtype
of PyTorch's and is close to it: rtol 1e-3, atol 1e-3.
"""

import argparse
import sys
from pathlib import Path
from time import perf_counter

import numpy as np

from engine import KuiperError, RuntimeGraph
from engine.backend import Backend
from engine.dtypes import Array

TOLERANCE = 1e-3


def load_arrays(path: Path, prefix: str) -> list[Array]:
    """Return prefix_0, prefix_1 … of an .npz file."""
    with np.load(path) as archive:
        return [archive[f"{prefix}_{index}"] for index in range(len(archive.files))]


def difference(output: Array, wanted: Array) -> str | None:
    """Say how an output differs from what was wanted, None where it does not."""
    if output.shape != wanted.shape or output.dtype != wanted.dtype:
        return f"{output.dtype}{output.shape} instead of {wanted.dtype}{wanted.shape}"
    if np.allclose(output, wanted, rtol=TOLERANCE, atol=TOLERANCE, equal_nan=True):
        return None
    return f"largest difference {np.abs(output.astype(complex) - wanted).max():.3g}"


def run_case(folder: Path, backend: str) -> str | None:
    """Run one case; returns why it fails, None where it passes."""
    graph = RuntimeGraph(folder / "case.pnnx.param", folder / "case.pnnx.bin", backend=backend)
    try:
        graph.build()
        outputs = graph.forward(load_arrays(folder / "inputs.npz", "in"))
    except KuiperError as error:
        return f"{type(error).__name__}: {error}"
    expected = load_arrays(folder / "outputs.npz", "out")
    if len(outputs) != len(expected):
        return f"{len(outputs)} outputs instead of {len(expected)}"
    for index, (output, wanted) in enumerate(zip(outputs, expected, strict=True)):
        if (problem := difference(output, wanted)) is not None:
            return f"output {index}: {problem}"
    return None


def main() -> int:
    """Run the cases and print a line each; returns the exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("corpus", type=Path)
    parser.add_argument("--only", default="", help="run the cases whose names hold this text")
    names = [backend.value for backend in Backend]
    parser.add_argument("--backend", default="auto", choices=names, help="what runs the layers")
    arguments = parser.parse_args()
    folders = sorted(
        p.parent for p in arguments.corpus.glob("*/case.pnnx.param") if arguments.only in p.parent.name
    )
    failed = 0
    for folder in folders:
        started = perf_counter()
        problem = run_case(folder, arguments.backend)
        failed += problem is not None
        print(
            f"{'pass' if problem is None else 'FAIL'} {perf_counter() - started:6.2f} s  {folder.name}  {problem or ''}"
        )
    print(f"\n{len(folders) - failed} passed, {failed} failed")
    return 1 if failed or not folders else 0


if __name__ == "__main__":
    sys.exit(main())
