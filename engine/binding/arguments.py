"""Arguments of layers: a layer function's annotations declare the type of each argument.

A layer is a plain function with PyTorch's argument names, types and defaults. Its annotations, read once at
registration, become converters; the same converter serves a parameter from the file at build and an
operand that carries a scalar or a list during a run.
"""

import functools
import inspect
import re
import types
import typing
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any, NewType, TypeAlias

import numpy as np

from engine.dtypes import TORCH_DTYPES, Array
from engine.errors import ArgumentError, SignatureError, describe_problem
from engine.expression import Expression, compile_source
from engine.spec import QuantizedSpec, QuantizedTensor, TensorSpec, Value, spec_of, spell

Number: TypeAlias = int | float | complex
"""A Python number; its kind matters for type promotion."""
Operand: TypeAlias = Array | int | float | complex
"""A tensor, or a Python number in its place."""
Ints: TypeAlias = tuple[int, ...]
"""One int or a sequence of ints; a single int arrives as a tuple of one."""
Floats: TypeAlias = tuple[float, ...]
"""One float or a sequence of floats; a single float arrives as a tuple of one."""
Strings: TypeAlias = tuple[str, ...]
"""One string or a sequence of strings."""
Indices: TypeAlias = tuple[Array | None, ...]
"""Indices for the dimensions of a tensor, in order: integers or a mask each, None for a whole dimension.

They come in a list among the operands, or as text in the file: `[None,[0,1]]`.
"""
DType: TypeAlias = np.dtype[Any]
"""A dtype that the file names as `torch.float`."""
BareWord = NewType("BareWord", str)
"""A word that stands alone where an expression may stand: `linear`, the value of a string argument."""

Converter: TypeAlias = Callable[[Any], Any]


class _MismatchError(Exception):
    """A converter does not take this value."""


@dataclass(frozen=True, slots=True)
class Argument:
    """One argument of a layer function.

    Attributes:
        name: as in PyTorch's signature.
        expected: the accepted values in words, for messages and documentation.
        takes_tensor: whether a tensor (an operand or an attribute) may be bound to it.
        takes_tensor_list: whether a list with tensors in it may be bound to it.
        takes_quantized: whether a quantized tensor may be bound to it.
        takes_scalar: whether a parameter of the file may be bound to it.
        required: whether the signature gives no default.
        default: the default, where there is one.
        converters: tried in order; the first that takes the value wins.
    """

    name: str
    expected: str
    takes_tensor: bool
    takes_tensor_list: bool
    takes_quantized: bool
    takes_scalar: bool
    required: bool
    default: Any
    converters: tuple[Converter, ...]

    @property
    def takes_any_tensor(self) -> bool:
        """Whether a tensor, a quantized one, or a list with tensors may be bound to it."""
        return self.takes_tensor or self.takes_tensor_list or self.takes_quantized

    def convert(self, value: Value) -> Any:
        """Turn a parameter or an operand's value into what the function takes.

        Raises:
            ArgumentError: the value is of the wrong kind.
        """
        for converter in self.converters:
            try:
                return converter(value)
            except _MismatchError:
                continue
        raise ArgumentError(self.name, f"got {_shown(value)}", self.expected)


def read_arguments(
    function: Callable[..., Any], prepare: Callable[..., Any] | None = None
) -> tuple[tuple[Argument, ...], bool, bool]:
    """Read a layer function's signature; `prepare`, if present, declares the parameters in the file.

    Their modules must not postpone annotations: they are read as objects.

    Returns:
        The named arguments; whether the layer takes any number of operands (`*inputs`); whether it takes any
        attributes (`**attributes`).

    Raises:
        SignatureError: an argument's annotation is missing or unsupported.
    """
    own = inspect.signature(function).parameters.values()
    given = own if prepare is None else inspect.signature(prepare).parameters.values()
    named = tuple(
        _argument(prepare or function, parameter)
        for parameter in given
        if parameter.kind in (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    )
    variadic = any(parameter.kind is inspect.Parameter.VAR_POSITIONAL for parameter in own)
    collects = any(parameter.kind is inspect.Parameter.VAR_KEYWORD for parameter in given)
    return named, variadic, collects


def _argument(function: Callable[..., Any], parameter: inspect.Parameter) -> Argument:
    annotation = parameter.annotation
    taken = _taken(annotation, typing.get_args(annotation)) if isinstance(annotation, Hashable) else None
    if taken is None:
        raise SignatureError(_unknown_annotation(function, parameter))
    required = parameter.default is inspect.Parameter.empty
    default = None if required else parameter.default
    return Argument(name=parameter.name, required=required, default=default, **taken)


@functools.lru_cache(maxsize=256)  # a few annotations serve the arguments of all layers
def _taken(annotation: Hashable, members: tuple[Any, ...]) -> dict[str, Any] | None:
    """Return the `Argument` fields that an annotation declares; None for an unsupported annotation.

    Args:
        annotation: the annotation.
        members: those of a union, in their order: `int | float` equals `float | int`, but a value is tried otherwise.
    """
    del members  # part of the cache key only
    kinds = _members(annotation)
    if not kinds or any(not _is_known(kind) for kind in kinds):
        return None
    known = [_KINDS[kind] for kind in kinds]
    return {
        "expected": " or ".join(words for words, _ in sorted(known, key=lambda kind: kind[0] == "None")),
        "takes_tensor": Array in kinds,
        "takes_tensor_list": Indices in kinds,
        "takes_quantized": QuantizedTensor in kinds,
        "takes_scalar": any(kind not in (Array, QuantizedTensor, types.NoneType) for kind in kinds),
        "converters": tuple(converter for _, converter in known),
    }


def _members(annotation: Any) -> tuple[Any, ...]:
    """Members of a union, in the order in which a value is tried against them: None is itself before it is ()."""
    if _is_known(annotation):
        return (annotation,)
    if annotation is np.ndarray or typing.get_origin(annotation) is np.ndarray:
        return (Array,)
    if typing.get_origin(annotation) not in (types.UnionType, typing.Union):
        return ()
    members = [kind for member in typing.get_args(annotation) for kind in _members(member) or (member,)]
    return tuple(sorted(members, key=lambda kind: kind is not types.NoneType))


def _is_known(annotation: Any) -> bool:
    return isinstance(annotation, Hashable) and annotation in _KINDS


def _unknown_annotation(function: Callable[..., Any], parameter: inspect.Parameter) -> str:
    annotation = parameter.annotation
    place = f"layer function {function.__qualname__}, argument {parameter.name!r}"
    if annotation is inspect.Parameter.empty:
        problem = "has no annotation"
    elif isinstance(annotation, str):
        problem = (
            f"is annotated by the text {annotation!r}, as `from __future__ import annotations` makes of all"
        )
    else:
        problem = f"is annotated {getattr(annotation, '__name__', annotation)}"
    return describe_problem(place, problem, f"{_ALLOWED}, or several of them, as in `float | None`")


def _scalar(value: Any) -> Any:
    """Unwrap a 0-d array, or an array of one element, into a Python scalar."""
    if isinstance(value, np.ndarray) and value.size == 1:
        return value.item()
    return value


def _array(value: Any) -> Array:
    if isinstance(value, np.ndarray):
        return value
    raise _MismatchError


def _quantized(value: Any) -> Any:
    if isinstance(value, QuantizedTensor | QuantizedSpec):
        return value
    raise _MismatchError


def _bool(value: Any) -> bool:
    value = _scalar(value)
    if isinstance(value, bool):
        return value
    raise _MismatchError


def _int(value: Any) -> int:
    value = _scalar(value)
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    raise _MismatchError


_SPELLED_FLOATS = {
    f"{sign}{word}{end}": float(sign + word)
    for sign in ("", "-")
    for word in ("inf", "nan")
    for end in ("", ".0")
}
"""The exporter's spellings of infinities and NaN."""


def _float(value: Any) -> float:
    value = _scalar(value)
    if isinstance(value, int | float) and not isinstance(value, bool):
        return float(value)
    if isinstance(value, str) and value in _SPELLED_FLOATS:
        return _SPELLED_FLOATS[value]
    raise _MismatchError


def _complex(value: Any) -> complex:
    value = _scalar(value)
    if isinstance(value, complex):
        return value
    raise _MismatchError


def _str(value: Any) -> str:
    if isinstance(value, str):
        return value
    raise _MismatchError


def _none(value: Any) -> None:
    if value is not None:
        raise _MismatchError


def _sequence(value: Any, member: Converter) -> tuple[Any, ...]:
    if value is None:  # PNNX writes an empty list as it writes None
        return ()
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if isinstance(value, str) and value.startswith(
        "(int("
    ):  # sizes that the exporter worked out: (int(8),int(8))
        value = compile_source(f"[{value[1:-1]}]").evaluate(())
    items = value if isinstance(value, tuple | list) else (value,)
    return tuple(member(item) for item in items)


def _indices(value: Any) -> tuple[Any, ...]:
    if isinstance(value, str):
        value = compile_source(value).evaluate(())
    items = value if isinstance(value, tuple | list) else (value,)
    return tuple(map(_index, items))


def _index(value: Any) -> Any:
    if value is None or isinstance(value, np.ndarray | TensorSpec):
        return value
    try:
        index = np.array(value)
    except ValueError:  # a ragged list
        raise _MismatchError from None
    if index.dtype.kind not in "bi":
        raise _MismatchError
    return index


def _dtype(value: Any) -> DType:
    if isinstance(value, str) and value in TORCH_DTYPES:
        return TORCH_DTYPES[value]
    raise _MismatchError


_WORD = re.compile(r"(?!(?:None|True|False|inf|nan)\Z)[A-Za-z_]\w*")


def _word(value: Any) -> BareWord:
    if isinstance(value, str) and _WORD.fullmatch(value):
        return BareWord(value)
    raise _MismatchError


def _expression(value: Any) -> Expression:
    if isinstance(value, str):
        return compile_source(value)
    raise _MismatchError


_KINDS: dict[Any, tuple[str, Converter]] = {
    Array: ("a tensor", _array),
    QuantizedTensor: ("a quantized tensor", _quantized),
    bool: ("a bool", _bool),
    int: ("an int", _int),
    float: ("a float", _float),
    complex: ("a complex number", _complex),
    str: ("a string", _str),
    Ints: ("ints", lambda value: _sequence(value, _int)),
    Floats: ("floats", lambda value: _sequence(value, _float)),
    Strings: ("strings", lambda value: _sequence(value, _str)),
    Indices: ("indices", _indices),
    DType: ("a torch dtype", _dtype),
    BareWord: ("a word", _word),
    Expression: ("an expression", _expression),
    types.NoneType: ("None", _none),
}


_ALLOWED = (
    "np.ndarray (a tensor), bool, int, float, complex, str, None, or of engine.binding.arguments "
    "Array, Operand, Ints, Floats, Strings, Indices, DType"
)
"""Annotations that a layer's arguments may have, for a message."""


def _shown(value: Value) -> str:
    if isinstance(value, np.ndarray):
        return f"a tensor of shape {value.shape} and dtype {value.dtype}"
    text = spell(spec_of(value)) if isinstance(value, tuple | TensorSpec | QuantizedTensor) else repr(value)
    return text if len(text) <= 80 else f"{text[:77]}…"
