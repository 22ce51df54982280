"""Runs exported models on their inputs, compares with PyTorch's outputs, and prints pass or fail with the reason.

Run: make conformance [CORPUS=DIR]      (or python -m tests.conformance [DIR] [--only TEXT] [--backend NAME])

Without DIR it runs the models of this repository, those of `tests/golden`. Otherwise each folder of DIR is a case:
`case.pnnx.param`, `case.pnnx.bin`, `inputs.npz` (in_0, in_1 … in the order of the inputs) and `outputs.npz` (out_0 …,
nested tuples flattened in order). A case passes when every output has the shape and dtype of PyTorch's and is close to
it: rtol 1e-3, atol 1e-3.
"""

import argparse
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter

import numpy as np

from engine import KuiperError, RuntimeGraph
from engine.backend import Backend
from engine.dtypes import Array
from tests.golden import network_data
from tests.golden.cases import families
from tests.golden.data import load

TOLERANCE = 1e-3


@dataclass(frozen=True, slots=True)
class Exported:
    """A model, an input and what PyTorch computed.

    Attributes:
        name: what the case is called.
        param: its `.param` file; the `.bin` lies beside it.
        inputs: one array for each input.
        outputs: one array for each output.
    """

    name: str
    param: Path
    inputs: list[Array]
    outputs: list[Array]


def corpus_cases(corpus: Path, only: str) -> Iterator[Exported]:
    """Return the cases of a folder whose names hold a text."""
    for param in sorted(corpus.glob("*/case.pnnx.param")):
        folder = param.parent
        if only in folder.name:
            arrays = (load_arrays(folder / f"{side}puts.npz", side) for side in ("in", "out"))
            yield Exported(folder.name, param, *arrays)


def golden_cases(only: str) -> Iterator[Exported]:
    """Return the cases of this repository whose names hold a text; the files of one go when the next is asked for."""
    for name in network_data.NAMES:
        if only in name:
            param = network_data.DATA / name / f"{name}.pnnx.param"
            yield Exported(
                name, param, network_data.arrays(name, "file", "in"), network_data.arrays(name, "file", "out")
            )
    for family, cases in families().items():
        for case in (case for case in cases if only in case.id):
            golden = load(family, case.id, len(case.runs))
            with tempfile.TemporaryDirectory() as folder:
                param = Path(folder) / "case.pnnx.param"
                param.write_bytes(golden.param)
                param.with_suffix(".bin").write_bytes(golden.bin)
                yield Exported(case.id, param, *golden.runs[0])


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


def run_case(case: Exported, backend: str) -> str | None:
    """Run one case; returns why it fails, None where it passes."""
    graph = RuntimeGraph(case.param, case.param.with_suffix(".bin"), backend=backend)
    try:
        graph.build()
        outputs = graph.forward(case.inputs)
    except KuiperError as error:
        return f"{type(error).__name__}: {error}"
    if len(outputs) != len(case.outputs):
        return f"{len(outputs)} outputs instead of {len(case.outputs)}"
    for index, (output, wanted) in enumerate(zip(outputs, case.outputs, strict=True)):
        if (problem := difference(output, wanted)) is not None:
            return f"output {index}: {problem}"
    return None


def main() -> int:
    """Run the cases and print a line each; returns the exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument(
        "corpus", nargs="?", type=Path, help="folder of cases; without it, those of tests/golden"
    )
    parser.add_argument("--only", default="", help="run the cases whose names hold this text")
    names = [backend.value for backend in Backend]
    parser.add_argument("--backend", default="auto", choices=names, help="what runs the layers")
    arguments = parser.parse_args()
    cases = (
        golden_cases(arguments.only)
        if arguments.corpus is None
        else corpus_cases(arguments.corpus, arguments.only)
    )
    passed = failed = 0
    for case in cases:
        started = perf_counter()
        problem = run_case(case, arguments.backend)
        passed, failed = passed + (problem is None), failed + (problem is not None)
        verdict = "pass" if problem is None else "FAIL"
        print(f"{verdict} {perf_counter() - started:6.2f} s  {case.name}  {problem or ''}")
    print(f"\n{passed} passed, {failed} failed")
    if not passed + failed:
        print(
            "no case was found: each is a folder with case.pnnx.param, case.pnnx.bin, inputs.npz and outputs.npz"
        )
    return 0 if passed and not failed else 1


if __name__ == "__main__":
    sys.exit(main())
