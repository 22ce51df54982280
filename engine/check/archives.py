"""Arrays that a caller brings: inputs, expected outputs, references of operators."""

from pathlib import Path
from tokenize import TokenError
from zipfile import BadZipFile

import numpy as np

from engine.check.names import operands_named
from engine.dtypes import Array
from engine.errors import InputError
from engine.graph import RuntimeGraph

UNREADABLE = (ValueError, EOFError, BadZipFile, MemoryError, SyntaxError, TokenError)
"""Errors of numpy on damaged array files, whose headers are Python literals."""


def load_arrays(path: Path) -> dict[str, Array]:
    """Load the arrays of an `.npz` by name, or that of an `.npy`, which is called in_0.

    Raises:
        InputError: the file holds no arrays.
        OSError: it cannot be read.
    """
    try:
        with path.open("rb") as file:
            archive = np.load(file)
            if isinstance(archive, np.ndarray):
                return {"in_0": archive}
            return {name: archive[name] for name in archive.files}
    except UNREADABLE as error:
        raise InputError(f"{path}: {error}; expected an .npy or .npz") from error


def load_inputs(graph: RuntimeGraph, path: Path) -> list[Array] | dict[str, Array]:
    """Load inputs by operator or operand name where the names are such, else in order (in_0, in_1 …).

    Raises:
        InputError, OSError: as `load_arrays`.
    """
    arrays = load_arrays(path)
    known = {name for port in graph.inputs for name in (port.operator, port.operand)}
    return arrays if arrays and known.issuperset(arrays) else in_order(arrays)


def in_order(arrays: dict[str, Array]) -> list[Array]:
    """Return arrays in the order of the numbers that their names end in."""
    return [arrays[name] for name in sorted(arrays, key=lambda name: (len(name), name))]


def inputs_among(graph: RuntimeGraph, reference: dict[str, Array]) -> dict[str, Array]:
    """Return the inputs that a reference has among its operands and operators.

    Raises:
        InputError: it lacks one, or has a name that is none of the graph's.
    """
    given = {operand: reference[name] for name, operand in operands_named(graph, reference).items()}
    missing = [port.operand for port in graph.inputs if port.operand not in given]
    if missing:
        names = ", ".join(map(repr, missing))
        raise InputError(
            f"--layers: the reference lacks input {names}; add it, or give --against INPUTS OUTPUTS"
        )
    return {port.operand: given[port.operand] for port in graph.inputs}
