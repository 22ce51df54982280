"""A case: a graph as lines of a `.param`, and the shapes that it is run on. Weights and inputs follow from its seed.

As text:

    # Why the case is kept, in any number of lines.
    seed 7
    run (1,512,7,7)
    run (2,512,7,7) (1,4)
    pnnx.Input in0 0 1 t0 #t0=(?,512,7,7)f32
    nn.Conv2d op1 1 1 t0 t1 bias=False … @weight=(512,512,3,3)f32
    pnnx.Output out0 1 0 t1
"""

import math
import re
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from engine.dtypes import PNNX_COMPUTE, Array
from engine.model.operator import INPUT, OUTPUT
from tests.engine.models import write_model

Shape = tuple[int, ...]
_TENSOR = re.compile(r"@([\w.]+)=\(([\d,]*)\)(\w+)")
_DECLARED = re.compile(r"#\w+=\([\d,?]*\)(\w+)")
_IDS_BELOW = 8
"""Integer inputs are indices: of tables, classes, positions."""


@dataclass(frozen=True, slots=True)
class Line:
    """One operator of a `.param`.

    Attributes:
        type: PNNX type.
        name: unique in its graph; weights are drawn by it.
        inputs: operands that it takes.
        outputs: operands that it gives.
        words: `key=value`, `@key=(shape)dtype`, `$key=operand`, `#operand=(shape)dtype`.
    """

    type: str
    name: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    words: tuple[str, ...] = ()

    @classmethod
    def parse(cls, text: str) -> "Line":
        kind, name, taken, given, *rest = text.split()
        first, end = int(taken), int(taken) + int(given)
        return cls(kind, name, tuple(rest[:first]), tuple(rest[first:end]), tuple(rest[end:]))

    def __str__(self) -> str:
        head = [self.type, self.name, str(len(self.inputs)), str(len(self.outputs))]
        return " ".join([*head, *self.inputs, *self.outputs, *self.words])

    def reading(self, names: dict[str, str]) -> "Line":
        """Return the operator with other inputs, where `names` has others."""
        words = [
            f"{key}={names.get(value, value)}" if key.startswith("$") else word
            for word, (key, _, value) in zip(self.words, (w.partition("=") for w in self.words), strict=True)
        ]
        return replace(self, inputs=tuple(names.get(x, x) for x in self.inputs), words=tuple(words))

    def attributes(self) -> Iterator[tuple[str, Shape, str]]:
        """Yield key, shape and type of each weight."""
        for word in self.words:
            if found := _TENSOR.fullmatch(word):
                yield found[1], read_shape(found[2]), found[3]

    @property
    def dtype(self) -> np.dtype[np.generic]:
        """The dtype that an input declares."""
        for word in self.words:
            if found := _DECLARED.fullmatch(word):
                return PNNX_COMPUTE[found[1]]
        return np.dtype(np.float32)


@dataclass(frozen=True, slots=True)
class GraphCase:
    """A graph and the shapes that it is run on.

    Attributes:
        name: what it is called.
        lines: its operators, inputs and outputs among them.
        runs: for each run, the shapes of its inputs.
        seed: what weights and inputs are drawn from.
    """

    name: str
    lines: tuple[Line, ...]
    runs: tuple[tuple[Shape, ...], ...]
    seed: int = 0

    @property
    def inputs(self) -> tuple[Line, ...]:
        """The operators that stand for inputs."""
        return tuple(line for line in self.lines if line.type == INPUT)

    @property
    def operators(self) -> tuple[Line, ...]:
        """The operators that are neither inputs nor outputs."""
        return tuple(line for line in self.lines if line.type not in (INPUT, OUTPUT))

    @property
    def outputs(self) -> tuple[str, ...]:
        """The operands that leave, in order."""
        return tuple(name for line in self.lines if line.type == OUTPUT for name in line.inputs)

    def __str__(self) -> str:
        runs = [" ".join(["run", *map(spell, shapes)]) for shapes in self.runs]
        return "\n".join([f"seed {self.seed}", *runs, *map(str, self.lines)]) + "\n"

    def weights(self, disturbance: float = 0.0) -> dict[str, Array]:
        """Return the weights by archive entry, each off by up to a share of itself."""
        return {
            f"{line.name}.{key}": disturbed(self._weight(line, key, shape, dtype), disturbance)
            for line in self.lines
            for key, shape, dtype in line.attributes()
        }

    def arrays(self, run: int) -> list[Array]:
        """Return the inputs of a run."""
        arrays = []
        for place, (line, shape) in enumerate(zip(self.inputs, self.runs[run], strict=True)):
            random = np.random.default_rng([self.seed, run, place])
            if line.dtype.kind == "f":
                arrays.append(random.standard_normal(shape).astype(line.dtype))
            else:
                arrays.append(random.integers(0, _IDS_BELOW, shape).astype(line.dtype))
        return arrays

    def write(self, folder: Path, name: str = "case", disturbance: float = 0.0) -> Path:
        """Write `.param` and `.bin`; returns the path of the former."""
        return write_model(folder, "\n".join(map(str, self.lines)), self.weights(disturbance), name)

    def _weight(self, line: Line, key: str, shape: Shape, dtype: str) -> Array:
        random = np.random.default_rng([self.seed, zlib.crc32(f"{line.name}.{key}".encode())])
        if PNNX_COMPUTE[dtype].kind != "f":
            return random.integers(0, _IDS_BELOW, shape).astype(PNNX_COMPUTE[dtype])
        values = random.standard_normal(shape)
        if key == "running_var" or (key == "weight" and len(shape) == 1):
            values = 1 + 0.5 * np.tanh(values)  # positive, about one
        elif key.startswith("weight"):
            values /= math.sqrt(max(1, math.prod(shape[1:])))  # outputs are about as large as inputs
        return values.astype(PNNX_COMPUTE[dtype])


def disturbed(array: Array, share: float) -> Array:
    """Return a float array whose elements are off by up to a share of themselves; others as they are."""
    if not share or array.dtype.kind != "f":
        return array
    random = np.random.default_rng(array.size)
    return (array * (1 + share * random.uniform(-1, 1, array.shape))).astype(array.dtype)


def parse_case(text: str, name: str) -> GraphCase:
    """Read a case from its text."""
    seed, runs, lines = 0, [], []
    for line in text.splitlines():
        head, _, rest = line.strip().partition(" ")
        if head == "seed":
            seed = int(rest)
        elif head == "run":
            runs.append(tuple(read_shape(word.strip("()")) for word in rest.split()))
        elif head and not head.startswith("#"):
            lines.append(Line.parse(line))
    return GraphCase(name, tuple(lines), tuple(runs), seed)


def read_shape(text: str) -> Shape:
    """Read the extents in `(1,2)`, without its parentheses."""
    return tuple(int(extent) for extent in text.split(",") if extent)


def spell(numbers: Shape) -> str:
    """Spell a shape."""
    return f"({','.join(map(str, numbers))})"


CASES = Path(__file__).parent / "cases"


def named_cases() -> list[GraphCase]:
    """Return the cases that are kept by name."""
    return [parse_case(path.read_text(), path.stem) for path in sorted(CASES.glob("*.txt"))]


def is_named(case: GraphCase) -> bool:
    """Return whether a case is one that is kept by name."""
    return (CASES / f"{case.name}.txt").exists()
