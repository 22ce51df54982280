"""The command: `python -m engine.check MODEL`, and the same as `kuiper check MODEL`."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from zipfile import BadZipFile

import numpy as np

from engine.check.comparison import Difference, compare_layers, compare_outputs
from engine.check.report import inspect
from engine.dtypes import Array
from engine.errors import InputError, KuiperError
from engine.graph import RuntimeGraph


def main(arguments: Sequence[str] | None = None) -> int:
    """Check a model; returns 0 where it runs (and agrees with the reference), else 1."""
    options = _parser().parse_args(arguments)
    try:
        return _check(options)
    except (KuiperError, OSError, ValueError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="kuiper check", description="Tell whether a PNNX model runs.")
    parser.add_argument("model", type=Path, help="a .param file, or a folder that holds one")
    parser.add_argument(
        "bin", type=Path, nargs="?", help="the .bin file; by default the one beside the .param"
    )
    parser.add_argument(
        "--against",
        nargs=2,
        type=Path,
        metavar=("INPUTS", "OUTPUTS"),
        help="run on inputs.npz, compare with outputs.npz",
    )
    parser.add_argument(
        "--layers",
        type=Path,
        metavar="REFERENCE",
        help="find the first operator that diverges: arrays by operand name",
    )
    parser.add_argument(
        "--shape",
        action="append",
        default=[],
        type=_shape,
        metavar="DIMS",
        help="an input's shape, 1,3,224,224; once per input",
    )
    parser.add_argument("--tolerance", type=float, default=1e-3, help="relative and absolute (default 1e-3)")
    return parser


def _shape(text: str) -> tuple[int, ...]:
    return tuple(int(dim) for dim in text.split(","))


def _check(options: argparse.Namespace) -> int:
    graph = RuntimeGraph(_param_file(options.model), options.bin)
    report = inspect(graph, options.shape)
    for line in report.lines():
        print(line)
    if report.unsupported:
        return 1
    different = False
    inputs: list[Array] | dict[str, Array] = []
    if options.against is not None:
        inputs = _load_inputs(graph, options.against[0])
        expected = _in_order(_load(options.against[1]))
        different |= _print_outputs(compare_outputs(graph, inputs, expected, options.tolerance))
    if options.layers is not None:
        reference = _load(options.layers)
        inputs = inputs if options.against is not None else _inputs_among(graph, reference)
        different |= _print_first_divergence(graph, inputs, reference, options.tolerance)
    return int(different)


def _inputs_among(graph: RuntimeGraph, reference: dict[str, Array]) -> dict[str, Array]:
    """Return the inputs that a reference has among its operands.

    Raises:
        InputError: it lacks one.
    """
    missing = [port.operand for port in graph.inputs if port.operand not in reference]
    if missing:
        names = ", ".join(map(repr, missing))
        raise InputError(
            f"--layers: the reference lacks input {names}; add it, or give --against INPUTS OUTPUTS"
        )
    return {port.operand: reference[port.operand] for port in graph.inputs}


def _param_file(model: Path) -> Path:
    if not model.is_dir():
        return model
    found = sorted(model.glob("*.param"))
    if len(found) != 1:
        raise InputError(f"{model}: holds {len(found)} .param files; expected one")
    return found[0]


def _load(path: Path) -> dict[str, Array]:
    """Load the arrays of an archive by name.

    Raises:
        InputError: the file is no archive of arrays.
    """
    try:
        with path.open("rb") as file:
            archive = np.load(file)
            if isinstance(archive, np.ndarray):
                raise InputError(f"{path}: holds one array; expected an .npz of several")
            return {name: archive[name] for name in archive.files}
    except (ValueError, EOFError, BadZipFile) as error:
        raise InputError(f"{path}: {error}; expected an .npz of arrays") from error


def _in_order(arrays: dict[str, Array]) -> list[Array]:
    """Return arrays in the order of the numbers that their names end in."""
    return [arrays[name] for name in sorted(arrays, key=lambda name: (len(name), name))]


def _load_inputs(graph: RuntimeGraph, path: Path) -> list[Array] | dict[str, Array]:
    """Load inputs by operator or operand name where the names are such, else in order (in_0, in_1 …)."""
    arrays = _load(path)
    known = {name for port in graph.inputs for name in (port.operator, port.operand)}
    return arrays if arrays and known.issuperset(arrays) else _in_order(arrays)


def _print_outputs(differences: Sequence[Difference]) -> bool:
    for difference in differences:
        verdict = difference.problem or f"agrees, largest difference {difference.absolute:.3g}"
        print(f"output  {difference.operand}  {verdict}")
    return any(difference.problem for difference in differences)


def _print_first_divergence(
    graph: RuntimeGraph, inputs: list[Array] | dict[str, Array], reference: dict[str, Array], tolerance: float
) -> bool:
    compared = 0
    for difference in compare_layers(graph, inputs, reference, tolerance):
        compared += 1
        if difference.problem is not None:
            place = f"{difference.type} {difference.operator}, operand {difference.operand!r}"
            print(
                f"first divergence  {place}: {difference.problem} ({compared - 1} operands before it agree)"
            )
            return True
    print(f"layers  {compared} operands agree with the reference")
    return False


if __name__ == "__main__":
    sys.exit(main())
