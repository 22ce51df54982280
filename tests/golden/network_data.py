"""The kept networks with what PyTorch computed: `networks/data`, made by `tests.golden.make_networks`."""

from functools import cache
from pathlib import Path

import numpy as np

from engine import RuntimeGraph
from engine.dtypes import Array

DATA = Path(__file__).parent / "networks" / "data"
NAMES = sorted(path.name for path in DATA.iterdir())


@cache
def open_network(name: str, backend: str = "numpy", threads: int = 1) -> RuntimeGraph:
    """Return a built graph, the same one for each call with these arguments."""
    param = DATA / name / f"{name}.pnnx.param"
    graph = RuntimeGraph(param, param.with_suffix(".bin"), backend=backend, threads=threads)
    graph.build()
    return graph


def arrays(name: str, run: str, side: str) -> list[Array]:
    """Return the arrays of a run, `file` or `other`, on its side, `in` or `out`: what PyTorch took and gave."""
    # the legacy spelling of the Detect head is the same network as the current one
    with np.load(DATA / name.removesuffix("_legacy") / "io.npz") as archive:
        keys = sorted(key for key in archive.files if key.startswith(f"{run}/{side}_"))
        return [archive[key] for key in keys]
