"""Runs one graph on many shapes at once, from several threads, while programs for them are compiled beside the runs.

Every response must be, to the bit, that of the reference layers or that of compiled programs, as other graphs gave that
waited for the compiler, one shape after the other; the two have to be as near as the precision is documented to be.
"""

import tempfile
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from engine import RuntimeGraph, TraceLevel
from engine.dtypes import Array
from tests.bench.encoder import WORDS, write_encoder
from tests.differential.opening import open_graph
from tests.differential.rounding import always_rounding
from tests.engine.compiler.program.test_background import settle
from tests.golden.network_data import DATA
from tests.golden.rounded_networks import calibrated, distance

CLIENTS = 3
"""Threads that ask one graph."""
ROUNDS = 3
"""How often each of them asks for each shape, while programs are compiled."""
_LOSS_OF_LAYER = {"f32": 1e-5, "bf16": 2.0**-7, "int8": 2.0**-5}
PRECISIONS = tuple(_LOSS_OF_LAYER)
_OPTIONS: dict[str, Any] = {"verify": "load", "programs_kept": 64}


@dataclass(frozen=True, slots=True)
class ManyShapes:
    """A network whose inputs come in many shapes.

    Attributes:
        name: what it is called.
        write: writes it into a folder, or names a file that is there; returns the `.param`.
        draw: makes an input of some shape.
    """

    name: str
    write: Callable[[Path], Path]
    draw: Callable[[Random], Array]


@dataclass(frozen=True, slots=True)
class ShapesRun:
    """What came of a network in a precision.

    Attributes:
        by_numpy: responses that only reference layers give.
        by_kernels: responses that only compiled programs give.
        by_both: responses that are the same to the bit.
        off: the largest distance between the two for a shape.
        text: what was wrong; empty where nothing was.
    """

    by_numpy: int
    by_kernels: int
    by_both: int
    off: float
    text: str = ""


def _sentence(random: Random) -> Array:
    tokens = random.randint(1, 90)
    return np.random.default_rng(tokens).integers(0, WORDS, (1, tokens))


def _picture(random: Random, step: int = 1) -> Array:
    rows, columns = (random.randint(32, 120) // step * step for _ in range(2))
    batch = random.choice((1, 1, 2, 3))
    drawn = np.random.default_rng(rows * columns).standard_normal((batch, 3, rows, columns))
    return drawn.astype(np.float32)


def _golden(name: str) -> Callable[[Path], Path]:
    return lambda _: DATA / name / f"{name}.pnnx.param"


NETWORKS = (
    ManyShapes("encoder", lambda folder: write_encoder(folder, 2, 48), _sentence),
    ManyShapes("proposal_net", _golden("proposal_net"), _picture),
    ManyShapes("unet", _golden("unet"), lambda random: _picture(random, 16)),
)


def run_many_shapes(network: ManyShapes, precision: str, seed: int, count: int) -> ShapesRun:
    """Ask a graph of a network, in a precision, for many shapes in mixed order; returns what came out."""
    random = Random(f"{seed}/{network.name}")
    inputs = list({array.shape: array for array in (network.draw(random) for _ in range(count))}.values())
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        stack.enter_context(threadpool_limits(1))  # as the server has it for runs of one thread
        if precision == "bf16":
            stack.enter_context(always_rounding())
        param = network.write(Path(folder))
        quantization = calibrated(open_graph(param, "numpy"), inputs[:1]) if precision == "int8" else None
        options = _OPTIONS | {"precision": precision, "quantization": quantization}
        plain = open_graph(param, "numpy", **options)
        expected = _Expected([plain.forward([array]) for array in inputs])
        for order in (inputs, inputs[::-1]):  # the first length of all has a program of its own
            expected.add_native(open_graph(param, **options), inputs, order)
        if precision == "bf16" and network.draw is _sentence:
            # programs for all lengths, in float32, are the fallback
            for order in (inputs, inputs[::-1]):
                expected.add_native(open_graph(param, **_OPTIONS), inputs, order)
        served = open_graph(param, threads=2, **options)
        return _ask(served, inputs, expected, random, precision)


class _Expected:
    """What each input may give."""

    def __init__(self, by_numpy: Sequence[list[Array]]) -> None:
        self.by_numpy = by_numpy
        self.by_kernels: list[list[list[Array]]] = [[] for _ in by_numpy]
        self.layers = 1

    def add_native(self, graph: RuntimeGraph, inputs: Sequence[Array], order: Sequence[Array]) -> None:
        given = {array.shape: graph.run([array], trace=TraceLevel.ON) for array in order}
        for place, array in enumerate(inputs):
            self.by_kernels[place].append(given[array.shape].outputs)
        trace = given[inputs[0].shape].trace
        self.layers = max(1, sum(layer.multiply_adds > 0 for layer in trace.layers)) if trace else 1

    def distance(self) -> float:
        """Return how far kernels are from numpy, for the shape for which they are farthest."""
        return max(
            distance(outputs, plain)
            for plain, known in zip(self.by_numpy, self.by_kernels, strict=True)
            for outputs in known
        )


def _ask(
    served: RuntimeGraph, inputs: Sequence[Array], expected: _Expected, random: Random, precision: str
) -> ShapesRun:
    orders = [random.sample(range(len(inputs)), len(inputs)) for _ in range(CLIENTS * ROUNDS)]
    counts: Counter[tuple[bool, bool]] = Counter()
    wrong = ""

    def client(number: int) -> list[tuple[int, list[Array]]]:
        places = chain.from_iterable(orders[number::CLIENTS])
        return [(place, served.run([inputs[place]], waits=False).outputs) for place in places]

    responses: list[tuple[int, list[Array]]] = []
    with ThreadPoolExecutor(CLIENTS) as clients:
        for _ in range(2):  # while programs are compiled, and when all that are worth it are
            responses += chain.from_iterable(clients.map(client, range(CLIENTS)))
            settle()
    for place, outputs in responses:
        is_numpy = _are_same(outputs, expected.by_numpy[place])
        is_native = any(_are_same(outputs, known) for known in expected.by_kernels[place])
        counts[is_numpy, is_native] += 1
        if not is_numpy and not is_native:
            wrong = wrong or f"{inputs[place].shape}: neither what numpy gives nor what kernels do"
    off, most = expected.distance(), _LOSS_OF_LAYER[precision] * expected.layers**0.5
    if not off <= most:
        wrong = wrong or f"kernels are off from numpy by {off:.2g}; at most {most:.2g}"
    refused = [str(refusal) for refusal in served.verification.refused]
    known = counts[True, False], counts[False, True], counts[True, True]
    return ShapesRun(*known, off, wrong or "; ".join(refused))


def _are_same(outputs: Sequence[Array], others: Sequence[Array]) -> bool:
    return [array.tobytes() for array in outputs] == [array.tobytes() for array in others]
