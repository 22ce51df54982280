"""Which of a layer's results an operator keeps.

The exporter drops outputs that nothing reads and says nowhere which ones: a GRU with one output may give its sequence
or its last state. What tells is the shape and dtype that the file declares for the outputs that are left.
"""

from collections.abc import Mapping, Sequence

from engine.dtypes import PNNX_COMPUTE
from engine.pnnx import TensorType
from engine.spec import Spec, TensorSpec

Declared = Mapping[str, TensorType | None]
"""Operand name -> the type that the file declares."""

_STAND_IN = 97
"""Stands for extents that the file leaves open; unlike any that it gives."""


def declared_specs(names: Sequence[str], declared: Declared) -> list[TensorSpec] | None:
    """Return the declared types of operands as specs, or None if the file does not tell all of them."""
    types = [declared.get(name) for name in names]
    if any(known is None or known.dtype == "null" for known in types):
        return None
    return [
        TensorSpec(
            tuple(_STAND_IN if size is None else size for size in known.shape), PNNX_COMPUTE[known.dtype]
        )
        for known in types
        if known is not None
    ]


def kept_results(results: Sequence[Spec], outputs: Sequence[TensorType | None]) -> tuple[int, ...]:
    """Return the places of the results that the outputs are, in order.

    Of several ways to match them the first; without one, the first results.

    Args:
        results: what the layer gives for inputs of the declared types.
        outputs: what the file declares of the operator's outputs.
    """
    kept: list[int] = []
    for place, result in enumerate(results):
        if len(kept) < len(outputs) and _fits(result, outputs[len(kept)]):
            kept.append(place)
    return tuple(kept) if len(kept) == len(outputs) else tuple(range(len(outputs)))


def _fits(result: Spec, declared: TensorType | None) -> bool:
    if not isinstance(result, TensorSpec) or declared is None:
        return True
    if declared.dtype != "null" and PNNX_COMPUTE[declared.dtype] != result.dtype:
        return False
    sizes = declared.shape
    return len(sizes) == result.rank and all(
        size in (None, given) for size, given in zip(sizes, result.shape, strict=True)
    )
