"""Sound models to start from: every golden case that is small, with the inputs that it was traced on."""

import tempfile
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from engine import pnnx
from engine.dtypes import Array
from tests.golden.cases import families
from tests.golden.data import load

MAX_INPUT_BYTES = 1 << 16


@dataclass(frozen=True)
class Seed:
    """A sound model.

    Attributes:
        id: of its golden case.
        graph: the model; not to be changed.
        inputs: arrays that it runs on.
    """

    id: str
    graph: pnnx.Graph
    inputs: tuple[Array, ...]


@lru_cache(maxsize=1)
def seeds() -> tuple[Seed, ...]:
    """Read the models, once."""
    found = []
    with tempfile.TemporaryDirectory() as folder:
        param, archive = Path(folder, "m.param"), Path(folder, "m.bin")
        for family, cases in sorted(families().items()):
            for case in cases:
                golden = load(family, case.id, 1)
                inputs = tuple(golden.runs[0][0])
                if sum(array.nbytes for array in inputs) > MAX_INPUT_BYTES:
                    continue
                param.write_bytes(golden.param)
                archive.write_bytes(golden.bin)
                found.append(Seed(case.id, _copied(pnnx.read(param, archive)), inputs))
    return tuple(found)


def _copied(graph: pnnx.Graph) -> pnnx.Graph:
    """Let go of the file: attributes that were read are views of it."""
    for operator in graph.operators:
        operator.attrs = {
            key: pnnx.Attribute(attribute.shape, attribute.dtype, bytes(attribute.data))
            for key, attribute in operator.attrs.items()
        }
    return graph
