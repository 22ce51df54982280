"""Results that an operator's outputs are, as far as shapes and dtypes determine them.

The exporter drops unread outputs without a record: a GRU with one output may give its sequence
or its last state. Nor does it preserve PyTorch's order: an LSTM without batch may give its states first. The shapes and
dtypes that the file declares for the outputs decide; `engine.binding.result_choice` resolves the rest.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from engine.dtypes import PNNX_COMPUTE
from engine.pnnx import TensorType
from engine.spec import Spec, TensorSpec

Declared = Mapping[str, TensorType | None]
"""Operand name -> the type that the file declares."""

ResultPlaces: TypeAlias = tuple[int, ...]
"""One of the layer's results, by place, for each output of an operator."""

PARTS = ("torch.split", "torch.chunk", "torch.tensor_split", "torch.unbind")
"""Types that take a tensor apart. What they give is one list where a scripted model hands it on as such: it has no type
in the file, which a tensor has."""

PLACEHOLDER_EXTENTS = (97, 89)
"""Placeholders of dynamic extents, unlikely in a model. An extent that differs between the two is dynamic."""


@dataclass(frozen=True, slots=True)
class Traits:
    """Properties of a layer's results for inputs of given shapes.

    Attributes:
        values: a number for each result; results with the same number are the same to the bit.
        orders: the orders in which the exporter writes the results where all of them are used as PyTorch gives them.
    """

    values: ResultPlaces
    orders: tuple[ResultPlaces, ...]


@dataclass(frozen=True, slots=True)
class Results:
    """The results of a layer of which the exporter writes any, in any order.

    Attributes:
        names: what PyTorch's documentation calls them, in PyTorch's order.
        traits: the arguments of the layer's shape rule -> what is known of the results; None where no result is ever
            the same as another, and PyTorch's order is the exporter's.
    """

    names: tuple[str, ...]
    traits: Callable[..., Traits] | None = None


def declared_specs(
    names: Sequence[str], declared: Declared, dynamic_extent: int = PLACEHOLDER_EXTENTS[0]
) -> list[TensorSpec] | None:
    """Return the declared types of operands as specs, or None if the file does not declare all of them."""
    types = [declared.get(name) for name in names]
    if any(known is None or known.dtype == "null" for known in types):
        return None
    return [
        TensorSpec(
            tuple(dynamic_extent if size is None else size for size in known.shape), PNNX_COMPUTE[known.dtype]
        )
        for known in types
        if known is not None
    ]


def kept_results(results: Sequence[Spec], outputs: Sequence[TensorType | None]) -> ResultPlaces:
    """Return the places of the results that the outputs are, where the exporter preserves the order of the results.

    They are the first results, unless those do not fit; then every output is the first result left that fits it. Where
    one fits none, they are the first results after all.

    Args:
        results: the layer's results for inputs of the declared types.
        outputs: declared types of the operator's outputs.
    """
    if all(map(fits, results, outputs)):
        return tuple(range(len(outputs)))
    left = list(range(len(results)))
    kept: list[int] = []
    for output in outputs:
        place = next((place for place in left if fits(results[place], output)), None)
        if place is None:
            return tuple(range(len(outputs)))
        left.remove(place)
        kept.append(place)
    return tuple(kept)


def fits(result: Spec, declared: TensorType | None, other: Spec = None) -> bool:
    """Return whether a result may be an operand of a declared type.

    Args:
        result: the result for inputs of the declared types, with the first placeholder for dynamic extents.
        declared: the type.
        other: the same result with the second placeholder; an extent is dynamic if and only if the two differ.
    """
    if not isinstance(result, TensorSpec) or declared is None:
        return True
    if declared.dtype != "null" and PNNX_COMPUTE[declared.dtype] != result.dtype:
        return False
    sizes = declared.shape
    if len(sizes) != result.rank:
        return False
    if isinstance(other, TensorSpec) and other.rank == result.rank:
        pairs = zip(result.shape, other.shape, strict=True)
        return sizes == tuple(one if one == two else None for one, two in pairs)
    return all(size in (None, given) for size, given in zip(sizes, result.shape, strict=True))
