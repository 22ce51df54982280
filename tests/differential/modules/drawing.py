"""Draws a module from a seed: layer after layer, each of which PyTorch itself runs on every shape."""

from dataclasses import dataclass
from random import Random
from typing import Any

import numpy as np
import torch
from torch import nn

from engine.dtypes import Array
from tests.differential.modules import images, sequences
from tests.differential.modules.layers import Apply, Stack
from tests.golden.make import flatten

Shape = tuple[int, ...]
SHAPES = 3
"""The first two are those of the export: extents in which they differ stay open. The third only runs."""
MAX_ELEMENTS = 150_000
MAX_STEPS = 400
"""Steps of a sequence: recurrent networks take one after the other."""
WORDS = 50
_JOINS = (
    Apply("x + y", lambda x, y: x + y),
    Apply("x * y", lambda x, y: x * y),
    Apply("cat (x, y)", lambda x, y: torch.cat((x, y), -3 if x.ndim == 4 else -1)),
    Apply("x - sigmoid(y)", lambda x, y: x - y.sigmoid()),
)


@dataclass(frozen=True, slots=True)
class Drawn:
    """A module and what it runs on.

    Attributes:
        name: seed and index, which name it.
        module: in evaluation mode.
        runs: its inputs, three times; the first two are those that it is exported with.
    """

    name: str
    module: Stack
    runs: tuple[tuple[Array, ...], ...]


def random_module(seed: int, index: int) -> Drawn:
    """Draw a module; some share of them only of layers that let infinities and NaN through as PyTorch does, with such
    inputs.
    """
    random = Random(f"{seed}/{index}")
    with torch.random.fork_rng(devices=[]), torch.no_grad():
        torch.manual_seed(random.getrandbits(32))
        kind = random.choice(("image", "image", "image", "steps", "ids"))
        is_odd = kind != "ids" and random.random() < 0.2
        runs = _inputs(random, kind, count=2 if random.random() < 0.2 and kind != "ids" else 1)
        layers = _layers(random, kind, runs, is_odd)
        kept = [place for place in range(len(layers) - 1) if random.random() < 0.05]
    if is_odd:
        for run in runs:
            _spoil(random, run)
    return Drawn(f"seed {seed}, index {index}", Stack(layers, kept).eval(), runs)


def outputs(module: Any, inputs: tuple[Array, ...]) -> list[Array]:
    """Return what PyTorch makes of inputs."""
    with torch.no_grad():
        return flatten(module(*(torch.from_numpy(array.copy()) for array in inputs)))


def _inputs(random: Random, kind: str, count: int) -> tuple[tuple[Array, ...], ...]:
    numbers = np.random.default_rng(random.getrandbits(32))
    features = random.choice((1, 3, 4, 5, 8, 12, 16, 20, 33)) if kind == "image" else random.randint(2, 48)
    batches = [random.choice((1, 1, 2, 3, 5)) for _ in range(SHAPES)]
    if batches[0] == batches[1] and random.random() < 0.7:
        batches[1] += 1
    runs: list[tuple[Array, ...]] = []
    for batch in batches if batches[0] != batches[1] else [batches[0]] * SHAPES:
        if kind == "ids":
            runs.append((numbers.integers(0, WORDS, (batch, random.randint(3, 30))),))
            continue
        extents = (
            [random.randint(9, 48), random.randint(9, 48)] if kind == "image" else [random.randint(4, 40)]
        )
        shape = (batch, features, *extents) if kind == "image" else (batch, *extents, features)
        runs.append(tuple(numbers.standard_normal(shape).astype(np.float32) for _ in range(count)))
    return _opened(tuple(runs), kind)


def _opened(runs: tuple[tuple[Array, ...], ...], kind: str) -> tuple[tuple[Array, ...], ...]:
    """Give extents that the first two runs share to the third as well: these are not open."""
    first, second, third = (run[0].shape for run in runs)
    cut = tuple(slice(a) if a == b else slice(None) for a, b in zip(first, second, strict=True))
    fixed = [axis for axis, (a, b) in enumerate(zip(first, second, strict=True)) if a == b]
    if all(first[axis] <= third[axis] for axis in fixed):
        return (*runs[:2], tuple(np.ascontiguousarray(array[cut]) for array in runs[2]))
    return (*runs[:2], runs[1])


def _layers(random: Random, kind: str, runs: tuple[tuple[Array, ...], ...], is_odd: bool) -> list[nn.Module]:
    states = [[torch.from_numpy(array.copy()) for array in run] for run in runs]
    layers: list[nn.Module] = []
    if kind == "ids":
        layers.append(nn.Embedding(WORDS, random.randint(2, 48)))
    elif len(states[0]) > 1:
        layers.append(random.choice(_JOINS))
    if layers:
        states = [[layers[0](*state)] for state in states]
    wanted = random.randint(2, 9)
    for _ in range(5 * wanted):
        if len(layers) >= wanted:
            break
        layer = _next(random, states[0][0], is_odd).eval()
        results = _tried(layer, states)
        if results is not None:
            layers.append(layer)
            states = results
    return layers or [nn.ReLU()]


def _next(random: Random, x: Any, is_odd: bool) -> nn.Module:
    if x.ndim == 4:
        options, features = images.LOCAL if is_odd else images.ALL, x.shape[1]
    elif x.ndim == 3:
        options, features = sequences.LOCAL if is_odd else sequences.ALL, x.shape[2]
    else:
        options, features = sequences.VECTORS, x.shape[1]
    make = random.choices([make for make, _ in options], [weight for _, weight in options])[0]
    return make(random, features)


def _tried(layer: nn.Module, states: list[list[Any]]) -> list[list[Any]] | None:
    """Return what a layer gives in each run; None if PyTorch refuses one, or where it gives too much or nothing."""
    results = []
    for (x,) in states:
        try:
            result = layer(x)
        except (RuntimeError, ValueError, IndexError, AssertionError):
            return None
        if not 0 < result.numel() <= MAX_ELEMENTS or result.ndim not in (2, 3, 4):
            return None
        if (result.ndim == 3 and result.shape[1] > MAX_STEPS) or float(result.abs().max()) > 1e6:
            return None
        results.append([result])
    axis = 1 if results[0][0].ndim == 4 else -1
    return results if len({result[0].shape[axis] for result in results}) == 1 else None


def _spoil(random: Random, run: tuple[Array, ...]) -> None:
    for array in run:
        for _ in range(random.randint(1, 3)):
            array[tuple(random.randrange(extent) for extent in array.shape)] = random.choice(
                (np.inf, -np.inf, np.nan)
            )
