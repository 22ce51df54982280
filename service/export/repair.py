"""Mends what the exporter is known to get wrong, from what the source says."""

from collections.abc import Collection, Mapping

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


def repair(files: Exported, missing: Collection[Missing], repaired: Collection[str]) -> list[str]:
    """Give operators that compute otherwise than the source the other value of a parameter.

    Args:
        files: the exporter's files, which are written again.
        missing: the operators.
        repaired: names of those that had another value before.

    Returns:
        The names of those that have another value now.
    """
    wanted = {item.operator for item in missing if item.type in _ALTERNATIVES}.difference(repaired)
    if not wanted:
        return []
    graph = read(files.param, files.bin)
    changed = [operator for operator in graph.operators if operator.name in wanted]
    for operator in changed:
        key, (usual, other) = _ALTERNATIVES[operator.type]
        _set(operator, key, usual if operator.params.get(key) == other else other)
    write(graph, files.param, files.bin)
    return [operator.name for operator in changed]


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
