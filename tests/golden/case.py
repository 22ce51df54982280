"""The case table's row: a model of one operator, written in PyTorch's words, and its inputs.

The table needs no PyTorch to be read: what builds the model is a function that gets `torch` passed in, and only the
generator (`python -m tests.golden.make`) calls it.
"""

import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from engine.dtypes import PNNX_STORAGE, Array


@dataclass(frozen=True)
class Input:
    """One input: random of a shape and dtype, uniform over [low, high)."""

    shape: tuple[int, ...]
    dtype: str
    low: float
    high: float

    def draw(self, rng: np.random.Generator) -> Array:
        """Draw the array."""
        dtype = PNNX_STORAGE[self.dtype]
        if dtype.kind == "b":
            return rng.random(self.shape) < 0.5
        if dtype.kind in "iu":
            return rng.integers(int(self.low), int(self.high), self.shape).astype(dtype)
        real = rng.uniform(self.low, self.high, self.shape)
        if dtype.kind == "c":
            return np.asarray(real + 1j * rng.uniform(self.low, self.high, self.shape), dtype)
        return np.asarray(real, dtype)


@dataclass(frozen=True)
class LayerCase:
    """A model of one operator.

    Attributes:
        type: PNNX type that the exported graph must contain.
        name: what is special about it; unique within the type.
        build: torch -> nn.Module (for `module` cases) or the module that wraps a function (for `function` ones).
        inputs: what it is traced with and run on.
        also: other inputs that the same exported graph must run on.
        rtol, atol: tolerance against PyTorch.
        export: further options for the exporter's command line.
        fp16: whether the exporter stores weights as float16.
        graph: the operators of a graph that the exporter cannot write here, as the lines of a `.param` after its
            counts; their attributes are the model's `state_dict()`, by `operator.key`. None: the model is exported.
        outputs: what a user adds to the exported lines of the type, as `outputs=…`, to say which results they keep.
    """

    type: str
    name: str
    build: Callable[[Any], Any]
    inputs: tuple[Input, ...]
    also: tuple[tuple[Input, ...], ...] = ()
    rtol: float = 1e-4
    atol: float = 1e-5
    export: tuple[str, ...] = ()
    fp16: bool = False
    graph: str | None = None
    outputs: str | None = None

    @property
    def id(self) -> str:
        """Key of the case: `nn.Conv2d-stride2`."""
        return f"{self.type}-{self.name}"

    @property
    def runs(self) -> tuple[tuple[Input, ...], ...]:
        """All input sets, the traced one first."""
        return (self.inputs, *self.also)

    def draw(self, run: int) -> list[Array]:
        """Draw the arrays of one input set; the same ones on every call."""
        rng = np.random.default_rng([zlib.crc32(self.id.encode()), run])
        return [item.draw(rng) for item in self.runs[run]]


def module(
    type_name: str, name: str, build: Callable[[Any], Any], *inputs: Input, **options: Any
) -> LayerCase:
    """Make a case of an nn.Module: `module("nn.ReLU", "plain", lambda nn: nn.ReLU(), f32(2, 3))`."""

    def build_holder(torch: Any) -> Any:
        class Holder(torch.nn.Module):  # type: ignore[misc]  # torch is Any here
            """The exporter knows a module only where another calls it; alone it is a heap of functions."""

            def __init__(self) -> None:
                super().__init__()
                self.held = build(torch.nn)

            def forward(self, *tensors: Any) -> Any:
                return self.held(*tensors)

        return Holder()

    return LayerCase(type_name, name, build_holder, inputs, **options)


def function(
    type_name: str, name: str, call: Callable[..., Any], *inputs: Input, **options: Any
) -> LayerCase:
    """Make a case of a function: `function("torch.cat", "dim1", lambda torch, x, y: torch.cat([x, y], 1), …)`."""

    def build(torch: Any) -> Any:
        class Wrapper(torch.nn.Module):  # type: ignore[misc]  # torch is Any here
            def forward(self, *tensors: Any) -> Any:
                return call(torch, *tensors)

        return Wrapper()

    return LayerCase(type_name, name, build, inputs, **options)


def f32(*shape: int, low: float = -2.0, high: float = 2.0) -> Input:
    """Make a float32 input."""
    return Input(shape, "f32", low, high)


def tensor(dtype: str, *shape: int, low: float = -2.0, high: float = 2.0) -> Input:
    """Make an input of any PNNX dtype; integers are drawn from low, …, high - 1."""
    return Input(shape, dtype, low, high)


def i64(*shape: int, low: float = 0, high: float = 10) -> Input:
    """Make an int64 input of low, …, high - 1."""
    return Input(shape, "i64", low, high)


def boolean(*shape: int) -> Input:
    """Make a bool input."""
    return Input(shape, "bool", 0, 1)
