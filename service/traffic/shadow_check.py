"""Whether one version can run on the inputs of another, so that their outputs can be compared."""

from collections.abc import Sequence

from engine import Port
from service.repository.loaded_model import LoadedModel

_RANDOM = frozenset({"torch.randn", "torch.randn_like", "torch.normal"})
"""Types of operators that draw other numbers in each run, unless they have a seed."""


def why_not_shadowed(model: LoadedModel, shadow: LoadedModel) -> str | None:
    """Return in words why the outputs of two versions cannot be compared; None where they can.

    Args:
        model: the version that responds.
        shadow: the version that is run on the inputs that were decoded for the other one.
    """
    for loaded in (model, shadow):
        for operator in loaded.graph.operators:
            if operator.type in _RANDOM and "seed" not in operator.params:
                random = f"{operator.type} {operator.name}"
                return f"version {loaded.version} draws random numbers in {random}: two runs of it differ"
    for key in ("image", "text"):
        if getattr(model.config, key) != getattr(shadow.config, key):
            return (
                f"versions {model.version} and {shadow.version} prepare inputs differently: [{key}] differs"
            )
    where = f"of versions {model.version} and {shadow.version}"
    return _mismatch(f"the inputs {where}", model.graph.inputs, shadow.graph.inputs) or _mismatch(
        f"the outputs {where}", model.graph.outputs, shadow.graph.outputs
    )


def _mismatch(what: str, ports: Sequence[Port], others: Sequence[Port]) -> str | None:
    """Return how ports differ that are to have equal shapes and types, in order."""
    if len(ports) != len(others):
        return f"{what} are {len(ports)} and {len(others)}"
    for port, other in zip(ports, others, strict=True):
        if (port.shape, port.dtype) != (other.shape, other.dtype):
            return f"{what} differ: {_word(port)} and {_word(other)}"
    return None


def _word(port: Port) -> str:
    shape = "of any shape" if port.shape is None else str(list(port.shape)).replace("None", "?")
    return f"{port.operator} {port.dtype} {shape}"
