"""Operators that the exporter left as they were: where they are in the model, and what can be done."""

from engine import UnsupportedOperator, UnsupportedOperatorError
from service.export.source import Source

_SHOWN = 3
_WHOLE_MODULES = (
    "it is a module that was kept whole, or that the exporter could not look into: trace the model in place of "
    "scripting it"
)
_CURES = {
    "prim::If": "it branches on its data, which a trace does not: torch.jit.trace records one branch",
    "prim::Loop": "it loops over its data, which a trace unrolls: use torch.jit.trace",
    "aten::grid_sampler": "use torch.nn.functional.grid_sample, which the exporter knows",
}
_GENERAL = (
    "write it in terms of operators that are listed in docs/reference/operators.md, or add a layer for it as "
    "docs/guides/own-operator.md describes"
)


def explain(error: UnsupportedOperatorError, source: Source) -> str:
    """Return what the exporter left untranslated, with lines of the model and advice, a sentence for each type."""
    by_type: dict[str, list[UnsupportedOperator]] = {}
    for operator in error.operators:
        by_type.setdefault(operator.type, []).append(operator)
    return "; ".join(_sentence(kind, operators, source) for kind, operators in by_type.items())


def _sentence(kind: str, operators: list[UnsupportedOperator], source: Source) -> str:
    lines = source.lines_of(kind)
    listed = f", from {', '.join(lines[:_SHOWN])}" if lines else ""
    near = f" (nearest that is known: {', '.join(operators[0].nearest)})" if operators[0].nearest else ""
    times = f"{len(operators)} times" if len(operators) > 1 else "once"
    return f"the exporter left {kind} {times}{listed}{near}: {_cure(kind)}"


def _cure(kind: str) -> str:
    is_module = "." in kind and "::" not in kind and not kind.startswith(("torch.", "F.", "Tensor.", "nn."))
    return _CURES.get(kind) or (_WHOLE_MODULES if is_module else _GENERAL)
