"""Reads the golden data that `tests.golden.make` wrote."""

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np

from engine.dtypes import Array

DATA = Path(__file__).parent / "families"


@dataclass(frozen=True)
class Golden:
    """One case's data.

    Attributes:
        param, bin: the exported files' bytes.
        runs: per input set, the inputs and PyTorch's outputs.
    """

    param: bytes
    bin: bytes
    runs: list[tuple[list[Array], list[Array]]]


def run_key(case_id: str, run: int, side: str, index: int) -> str:
    """Word the key of one array."""
    return f"{case_id}/{run}/{side}_{index}"


@lru_cache(maxsize=4)
def _family(name: str) -> dict[str, Array]:
    with np.load(DATA / f"{name}.npz") as archive:
        return {key: archive[key] for key in archive.files}


def case_ids(family: str) -> set[str]:
    """Return the ids of the cases that a family's file has data of."""
    return {key.rsplit("/param", 1)[0] for key in _family(family) if key.endswith("/param")}


def load(family: str, case_id: str, runs: int) -> Golden:
    """Return the data of one case with so many input sets.

    Raises:
        KeyError: the case has no data; run `python -m tests.golden.make`.
    """
    arrays = _family(family)
    loaded = []
    for run in range(runs):
        sides: list[list[Array]] = []
        for side in ("in", "out"):
            found: list[Array] = []
            while (key := run_key(case_id, run, side, len(found))) in arrays:
                found.append(arrays[key])
            sides.append(found)
        loaded.append((sides[0], sides[1]))
    return Golden(arrays[f"{case_id}/param"].tobytes(), arrays[f"{case_id}/bin"].tobytes(), loaded)
