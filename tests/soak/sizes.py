"""How many rows the runs under load may have, and requests of as many: each is compiled when it first comes."""

from collections.abc import Iterator, Sequence

import numpy as np

from engine.dtypes import Array
from service.config.model_config import load_model_config
from service.repository.batching import run_sizes
from tests.service.codec.payloads import npy
from tests.service.server.process import ROOT
from tests.service.v2.bodies import binary_input, json_input
from tests.soak.case import Identity, LoadCase, infer_json, v2_outputs
from tests.soak.cases import DIGITS, PICTURES, infer, v2
from tests.soak.models import ROWS, VECTOR_BATCHES

DIGITS_BATCH = load_model_config(ROOT / "models/digits").batching.max_batch_size or 1
PROVED = frozenset({1, 2, 3})
"""Rows that a model is run on when it is loaded, to see whether requests for it can be run together."""


def formed(rows: Sequence[int], largest: int) -> frozenset[int]:
    """Return how many rows the runs of requests may have that are put together.

    Args:
        rows: what single requests bring.
        largest: most rows of a batch; requests that bring more are run alone.
    """
    wanted = frozenset(run_sizes(largest))
    sizes = {*rows, *wanted}
    growing = {0}
    while growing:
        sums = {total + more for total in growing for more in rows if total + more <= largest}
        sizes |= sums
        growing = sums - wanted  # what comes to a wanted size is not run at another
    return frozenset(sizes)


RUN_SIZES: dict[Identity, frozenset[int]] = {
    DIGITS: formed(PICTURES, DIGITS_BATCH),
    ("vector", "1"): frozenset().union(*(formed(ROWS, largest) for largest in VECTOR_BATCHES)),
    ("twin", "1"): frozenset(ROWS),
    ("twin", "2"): frozenset(ROWS),
    ("pair", "1"): frozenset({2}),
    ("wide", "1"): frozenset({1}),
    ("slow", "1"): frozenset({1}),
    ("lookup", "1"): frozenset({1}),
}
"""Model -> rows that its runs may have; of `pair` it is what stands first in its inputs' shapes."""
_SEVERAL = {DIGITS: (1, 28, 28), ("vector", "1"): (3,), ("twin", "1"): (3,), ("twin", "2"): (3,)}
"""Model that is run on several numbers of rows -> shape of a row."""


def make_sized_cases() -> list[LoadCase]:
    """Return requests of every number of rows that a run may have, where there are several."""
    generator = np.random.default_rng(2)
    cases: list[LoadCase] = []
    for model, row in _SEVERAL.items():
        for size in sorted(RUN_SIZES[model]):
            cases += _of_rows(model, generator.random((size, *row), np.float32))
    return cases


def _of_rows(model: Identity, rows: Array) -> Iterator[LoadCase]:
    name, version = model
    title = f"{len(rows)} rows of {name} {version}"
    for trace in ("off", "on"):
        query = f"model={name}&version={version}&trace={trace}"
        yield infer(f"{title}, trace {trace}", query, npy(rows), {}, model=model, reads=infer_json)
    path = f"{name}/versions/{version}"
    binary = {"inputs": [binary_input("0", rows)], "parameters": {"binary_data_output": True}}
    yield v2(f"{title} v2 binary", path, binary, rows, model=model, reads=v2_outputs)
    document = {"inputs": [json_input("0", rows)]}
    yield v2(f"{title} v2 json", path, document, model=model, reads=v2_outputs)
