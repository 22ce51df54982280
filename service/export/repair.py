"""Mends what the exporter is known to get wrong, from what the source says."""

from collections.abc import Collection, Mapping, Sequence

import numpy as np

from engine.pnnx import Attribute, Graph, Operator, read, write
from service.export.agreement import Missing
from service.export.exporter import Exported
from service.export.source import Source

_ALTERNATIVES: Mapping[str, tuple[str, tuple[str, str]]] = {
    # the formula with tanh, written out, is taken for the one with erf
    "F.gelu": ("approximate", ("none", "tanh")),
    "nn.GELU": ("approximate", ("none", "tanh")),
    "nn.MultiheadAttention": ("outputs", ("attn_output", "attn_output_weights")),
}
"""Type of an operator -> a parameter that the exporter may get wrong, and its values."""
_CHANGES = 2
"""How often an operator is changed at most: to the other value, and back."""


def restore(files: Exported, source: Source) -> None:
    """Restore what the exporter loses: weights of LayerNorm without bias, which result of attention is kept."""
    if not any(
        kind in files.param.read_text(encoding="utf-8") for kind in ("nn.LayerNorm", "nn.MultiheadAttention")
    ):
        return
    graph = read(files.param, files.bin)
    lost = [
        operator for operator in graph.operators if operator.type == "nn.LayerNorm" and not operator.attrs
    ]
    restored = [_restore_weight(operator, source) for operator in lost]
    named = [_name_result(operator, graph) for operator in graph.operators]
    if any(restored) or any(named):
        write(graph, files.param, files.bin)


def repair(files: Exported, missing: Collection[Missing], repaired: Sequence[str]) -> list[str]:
    """Give operators that compute otherwise than the source the other value of a parameter.

    A network repeats its layers: the operators of the same type after one of these, whose results cannot be compared
    yet, get it as well, and get the first value back where that is wrong.

    Args:
        files: the exporter's files, which are written again.
        missing: the operators.
        repaired: names of those that were changed before, twice where they were changed back, which is final.

    Returns:
        The names of those that are changed now.
    """
    wanted = {
        item.operator
        for item in missing
        if item.type in _ALTERNATIVES and repaired.count(item.operator) < _CHANGES
    }
    if not wanted:
        return []
    graph = read(files.param, files.bin)
    wrong: set[tuple[str, str]] = set()
    changed = []
    for operator in graph.operators:
        if operator.type not in _ALTERNATIVES:
            continue
        key, (usual, other) = _ALTERNATIVES[operator.type]
        value = other if operator.params.get(key) == other else usual
        if operator.name in wanted:
            wrong.add((operator.type, value))
        if operator.name in wanted or (operator.name not in repaired and (operator.type, value) in wrong):
            _set(operator, key, usual if value == other else other)
            changed.append(operator.name)
    write(graph, files.param, files.bin)
    return changed


def _name_result(operator: Operator, graph: Graph) -> bool:
    """Name the result of attention whose shape says nothing: its output, until a comparison says otherwise."""
    if operator.type != "nn.MultiheadAttention" or len(operator.outputs) != 1 or "outputs" in operator.params:
        return False
    known = graph.operands.get(operator.outputs[0])
    if known is None or not known.shape or known.shape[-1] != operator.params.get("embed_dim"):
        return False
    _set(operator, "outputs", "attn_output")
    return True


def _restore_weight(operator: Operator, source: Source) -> bool:
    weight = source.weight(f"{operator.name}.weight")
    if weight is None:
        return False
    _set(operator, "elementwise_affine", True)
    operator.attrs["weight"] = Attribute.from_array(weight)
    operator.attrs["bias"] = Attribute.from_array(np.zeros_like(weight))
    return True


def _set(operator: Operator, key: str, value: str | bool) -> None:
    operator.params[key] = value
    operator.spellings.pop(key, None)
