"""Which of a layer's results an operator's outputs are.

The exporter drops outputs that nothing reads and says nowhere which ones: a GRU with one output may give its sequence
or its last state. Nor does it keep to PyTorch's order: an LSTM without batch may give its states first. What tells is
the shape and dtype that the file declares for the outputs.
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
    """Return the places of the results that the outputs are.

    They are the first results, unless those do not fit; then every output is the first result left that fits it. Where
    one fits none, they are the first results after all.

    Args:
        results: what the layer gives for inputs of the declared types.
        outputs: what the file declares of the operator's outputs.
    """
    if all(map(_fits, results, outputs)):
        return tuple(range(len(outputs)))
    left = list(range(len(results)))
    kept: list[int] = []
    for output in outputs:
        place = next((place for place in left if _fits(results[place], output)), None)
        if place is None:
            return tuple(range(len(outputs)))
        left.remove(place)
        kept.append(place)
    return tuple(kept)


def _fits(result: Spec, declared: TensorType | None) -> bool:
    if not isinstance(result, TensorSpec) or declared is None:
        return True
    if declared.dtype != "null" and PNNX_COMPUTE[declared.dtype] != result.dtype:
        return False
    sizes = declared.shape
    return len(sizes) == result.rank and all(
        size in (None, given) for size, given in zip(sizes, result.shape, strict=True)
    )
