"""What a file declares of its operands, and what shape rules add to it where it declares nothing."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from engine.dtypes import PNNX_COMPUTE, pnnx_name
from engine.pnnx import Operator, TensorType
from engine.results import STAND_INS, Declared
from engine.spec import Spec, TensorSpec

if TYPE_CHECKING:
    from engine.binding import BoundLayer


def missing_types(layer: "BoundLayer", declared: Declared) -> dict[str, TensorType]:
    """Return types of a layer's outputs that the file does not declare, as far as its shape rule tells them.

    Args:
        layer: the layer.
        declared: operand name -> the type that the file declares, or that this function found before.
    """
    names = layer.operator.outputs
    if all(declared.get(name) is not None for name in names):
        return {}
    one, two = (layer.declared_outputs(declared, extent) for extent in STAND_INS)
    found = {name: _common_type(*specs) for name, *specs in zip(names, one, two, strict=True)}
    return {name: known for name, known in found.items() if known is not None and declared.get(name) is None}


def _common_type(one: Spec, two: Spec) -> TensorType | None:
    """Return the type of a tensor, open where its specs for two open extents differ."""
    if type(one) is not TensorSpec or type(two) is not TensorSpec or one.rank != two.rank:
        return None
    name = pnnx_name(one.dtype)
    if one.dtype != two.dtype or name not in PNNX_COMPUTE:
        return None
    return TensorType(tuple(a if a == b else None for a, b in zip(one.shape, two.shape, strict=True)), name)


def tied_weights(operator: Operator, inputs: Sequence[int], declared: Declared) -> list[int]:
    """Return which inputs may be weights that modules share: the exporter gives them as attribute and operand both."""
    shapes = {attribute.shape for attribute in operator.attrs.values()}
    types = {index: declared.get(operator.inputs[index]) for index in inputs}
    return [index for index, known in types.items() if known is not None and known.shape in shapes]
