"""Calls of functions that name some of the arguments that others get: shape rules, and counts of multiply-adds."""

import functools
import inspect
from collections.abc import Callable
from typing import Any


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
