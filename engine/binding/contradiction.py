"""Types that shape rules add to those that a file declares, and declarations that contradict them."""

from dataclasses import dataclass

from engine.binding.bound_layer import BoundLayer
from engine.binding.results import PLACEHOLDER_EXTENTS, Declared, fits
from engine.dtypes import PNNX_COMPUTE, pnnx_name
from engine.errors import describe_problem
from engine.pnnx import TensorType
from engine.pnnx.tensor_type import format_tensor_type
from engine.spec import Spec, TensorSpec

_KINDS = {"u": "i"}
"""Kinds of dtypes that count as others: an integer is one with or without a sign."""


def missing_types(layer: BoundLayer, declared: Declared) -> dict[str, TensorType]:
    """Return types of a layer's outputs that the file does not declare, as far as its shape rule infers them.

    Args:
        layer: the layer.
        declared: operand name -> the type that the file declares, or that this function found before.
    """
    names = layer.operator.outputs
    if all(declared.get(name) is not None for name in names):
        return {}
    one, two = (layer.declared_outputs(declared, extent) for extent in PLACEHOLDER_EXTENTS)
    found = {name: _common_type(*specs) for name, *specs in zip(names, one, two, strict=True)}
    return {name: known for name, known in found.items() if known is not None and declared.get(name) is None}


@dataclass(frozen=True, slots=True)
class Contradiction:
    """A file declares of an operator's output what the operator cannot give for inputs as they are declared.

    Attributes:
        place: type and name of the operator, and the operand.
        given: what its parameters and its inputs' types give.
        known: what the file declares.
    """

    place: str
    given: TensorType
    known: TensorType

    @property
    def is_of_kind(self) -> bool:
        """Whether the dtypes are of different kinds, as of integers and floats: then it is a different operator."""
        dtypes = [PNNX_COMPUTE[each.dtype] for each in (self.given, self.known) if each.dtype != "null"]
        return len({_KINDS.get(dtype.kind, dtype.kind) for dtype in dtypes}) > 1

    def __str__(self) -> str:
        problem = f"its parameters and inputs give {format_tensor_type(self.given)}"
        return describe_problem(
            self.place, problem, f"{format_tensor_type(self.known)}, as the file declares"
        )


def find_contradiction(layer: BoundLayer, declared: Declared) -> Contradiction | None:
    """Find an output that the file declares as a layer cannot give it.

    A dynamic extent matches any; so does one that depends on dynamic extents of the inputs.

    Args:
        layer: the layer.
        declared: operand name -> its type.
    """
    names = layer.operator.outputs
    one = layer.declared_outputs(declared, PLACEHOLDER_EXTENTS[0])
    if all(fits(spec, declared.get(name)) for name, spec in zip(names, one, strict=True)):
        return None
    two = layer.declared_outputs(declared, PLACEHOLDER_EXTENTS[1])
    for name, *specs in zip(names, one, two, strict=True):
        given, known = _common_type(*specs), declared.get(name)
        if given is not None and known is not None and not _may_be(given, known):
            return Contradiction(
                f"{layer.operator.type} {layer.operator.name}, operand {name!r}", given, known
            )
    return None


def _may_be(given: TensorType, known: TensorType) -> bool:
    if known.dtype not in ("null", given.dtype) and PNNX_COMPUTE[known.dtype] != PNNX_COMPUTE[given.dtype]:
        return False
    pairs = zip(given.shape, known.shape, strict=False)
    return len(given.shape) == len(known.shape) and all(None in pair or pair[0] == pair[1] for pair in pairs)


def _common_type(one: Spec, two: Spec) -> TensorType | None:
    """Return the type of a tensor, dynamic where its specs for two placeholder extents differ."""
    if type(one) is not TensorSpec or type(two) is not TensorSpec or one.rank != two.rank:
        return None
    name = pnnx_name(one.dtype)
    if one.dtype != two.dtype or name not in PNNX_COMPUTE:
        return None
    return TensorType(tuple(a if a == b else None for a, b in zip(one.shape, two.shape, strict=True)), name)
