"""The layer registry: `@layer("nn.Conv2d")` is the one way to register, `find` the one way to look up."""

import difflib
import functools
import inspect
import re
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

from engine.binding.arguments import Argument, read_arguments
from engine.binding.results import Results

_OWN_LAYERS = "engine.layers."

LayerFunction = TypeVar("LayerFunction", bound=Callable[..., Any])


class DuplicateLayerError(Exception):
    """A type string was registered twice: a mistake in the code, not in a model."""


@dataclass(frozen=True, slots=True)
class Layer:
    """How one PNNX operator type runs.

    Attributes:
        type: PNNX type string, `nn.Conv2d`.
        forward: a pure function with PyTorch's argument names; arrays in, an array or a tuple of arrays
            out. It never writes to its inputs. Of a tuple the operator takes as many as it has outputs, by the
            shapes that the file declares (see `engine.binding.results`; an argument called `results` receives which); a
            list is one value of an operator with a single output, for prim::TupleUnpack.
        infer: shape rule. It names those of the same arguments that it needs, and gets them all, tensors as
            `TensorSpec`; it returns one spec or a tuple of specs, and raises `ArgumentError` on what `forward` could
            not run. None where the output's shape depends on the data.
        multiply_adds: counts the multiply-adds of one call; names what it needs of the same arguments and of
            `outputs`, a tuple of the output specs.
        prepare: called once per operator, at build, with the parameters and attributes that its own signature
            names; returns what `forward` gets in their place. None where they are the same.
        arguments: the named arguments of `forward`.
        variadic: whether `forward` takes any number of operands.
        collects_attributes: whether `forward` takes any attributes, by name.
        takes_quantized: whether `forward` gets quantized tensors as they are; others get real numbers in their
            place, and what they give is quantized again (see `engine.binding.requantization`).
        results: the results by name, where the exporter drops some without a record (see
            `engine.binding.result_choice`).
    """

    type: str
    forward: Callable[..., Any]
    infer: Callable[..., Any] | None
    multiply_adds: Callable[..., int] | None
    prepare: Callable[..., dict[str, Any]] | None
    arguments: tuple[Argument, ...]
    variadic: bool
    collects_attributes: bool
    takes_quantized: bool
    results: Results | None = None


class _Registered:
    """A layer that is created at first use: a model has few of all types, and each start registers all.

    Args:
        make: makes it.
    """

    def __init__(self, make: Callable[[], Layer]) -> None:
        self._make = make
        self._layer: Layer | None = None

    def layer(self) -> Layer:
        """Return the layer, always the same."""
        with _making:
            if self._layer is None:
                self._layer = self._make()
            return self._layer


_making = threading.Lock()


class LayerRegistry:
    """PNNX type strings and the layers that run them."""

    def __init__(self) -> None:
        self._layers: dict[str, _Registered] = {}

    def copy(self) -> "LayerRegistry":
        """Return a registry with the same layers, to add own ones to or to put them in the place of others."""
        copy = LayerRegistry()
        copy._layers.update(self._layers)
        return copy

    def layer(
        self,
        *type_names: str,
        infer: Callable[..., Any] | None = None,
        multiply_adds: Callable[..., int] | None = None,
        prepare: Callable[..., dict[str, Any]] | None = None,
        takes_quantized: bool = False,
        results: Results | None = None,
        replace: bool = False,
    ) -> Callable[[LayerFunction], LayerFunction]:
        """Register the decorated function for each of `type_names`.

        Args:
            type_names: PNNX types that the function runs.
            infer: see `Layer`, as the following.
            multiply_adds: see `Layer`.
            prepare: see `Layer`.
            takes_quantized: see `Layer`.
            results: see `Layer`.
            replace: whether the function takes the place of layers that these types have already. It then runs
                them on every backend: the compiler leaves them to it, and neither fuses nor folds them.

        Raises:
            DuplicateLayerError: a type already has a layer, and `replace` is not set.
            SignatureError: an annotation of the function is missing or unsupported.
        """

        def register(function: LayerFunction) -> LayerFunction:
            def make(name: str) -> Layer:
                arguments, variadic, collects = read_arguments(function, prepare)
                return Layer(
                    type=name,
                    forward=function,
                    infer=infer and only_named(infer),
                    multiply_adds=multiply_adds and only_named(multiply_adds),
                    prepare=prepare,
                    arguments=arguments,
                    variadic=variadic,
                    collects_attributes=collects,
                    takes_quantized=takes_quantized,
                    results=results,
                )

            # a function that `exec` made has no module
            if not (function.__module__ or "").startswith(_OWN_LAYERS):
                read_arguments(function, prepare)  # mistakes are reported at registration
            for name in type_names:
                if name in self._layers and not replace:
                    raise DuplicateLayerError(f"layer {name!r} is registered twice")
                self._layers[name] = _Registered(partial(make, name))
            return function

        return register

    def find(self, type_name: str) -> Layer | None:
        """Return the layer of a PNNX type, or None."""
        found = self._layers.get(type_name)
        return None if found is None else found.layer()

    def nearest(self, type_name: str, count: int = 3) -> tuple[str, ...]:
        """Return the registered types that `type_name` may be a misspelling or another name of, best first.

        Names are compared without what stands before them: `aten::linear` is near `F.linear`, not `aten::lerp`.
        """
        name = _own_name(type_name)
        matcher = difflib.SequenceMatcher(b=name)
        near: list[tuple[float, str]] = []
        for known in self._layers:
            matcher.set_seq1(_own_name(known))
            if matcher.real_quick_ratio() >= _LIKENESS and matcher.ratio() >= _LIKENESS:
                whole = difflib.SequenceMatcher(None, known, type_name).ratio()
                near.append((-matcher.ratio() - whole / 100, known))
        return tuple(known for _, known in sorted(near)[:count])

    def __contains__(self, type_name: object) -> bool:
        return type_name in self._layers

    def __iter__(self) -> Iterator[Layer]:
        return (registered.layer() for registered in self._layers.values())

    def __len__(self) -> int:
        return len(self._layers)


_LIKENESS = 0.88
"""Minimum similarity of two names for a suggestion."""


def _own_name(type_name: str) -> str:
    """Return a type's name without its module, its case and its underscores: `layernorm` of `nn.LayerNorm`."""
    return re.split(r"[.:]", type_name)[-1].replace("_", "").lower()


@functools.lru_cache(maxsize=1024)  # a few shape rules serve most layers
def only_named(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that takes any keyword arguments and passes on those that `function` names."""

    @functools.wraps(function)
    def call(*inputs: Any, **arguments: Any) -> Any:
        names = _names_of(function)
        if names is None:
            return function(*inputs, **arguments)
        return function(*inputs, **{name: value for name, value in arguments.items() if name in names})

    return call


@functools.lru_cache(maxsize=1024)  # read when a layer is first used: a model has few of all types
def _names_of(function: Callable[..., Any]) -> frozenset[str] | None:
    """Return the names of a function's arguments; None if it takes any."""
    parameters = inspect.signature(function).parameters.values()
    if any(parameter.kind is inspect.Parameter.VAR_KEYWORD for parameter in parameters):
        return None
    return frozenset(p.name for p in parameters if p.kind is not inspect.Parameter.VAR_POSITIONAL)


registry = LayerRegistry()
"""The registry that the engine's own layers are in."""
layer = registry.layer
"""Decorator that registers a layer of the engine."""
