"""The PyTorch code that the exporter writes beside a model, run statement by statement in double precision.

Its variables are the operands of the exported graph, so that what PyTorch makes of each of them can be compared.
"""

# mypy: disallow-subclassing-any=False

import importlib.util
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch

from engine.dtypes import Array

Step = Callable[[tuple[str, ...], Callable[[], Any]], Any]
"""Is given the names of the operands that a statement makes, and what computes them; returns their values."""

_STATEMENT = re.compile(r"^(        )((?:v_\w+|_)(?:, (?:v_\w+|_))*),? = (.+)$", re.MULTILINE)


class ExportedCode:
    """The exporter's own PyTorch code of a model, in double precision.

    Args:
        param: the `.param` that was exported; its `.bin` and code are beside it.
    """

    def __init__(self, param: Path) -> None:
        code = param.with_name("model_pnnx.py")
        stepped = param.with_name("model_stepped.py")
        stepped.write_text(_STATEMENT.sub(_stepped, code.read_text()))
        spec = importlib.util.spec_from_file_location("model_stepped", stepped)
        if spec is None or spec.loader is None:
            raise ImportError(str(stepped))
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        self._model = module.Model().double().eval()

    def run(self, inputs: Sequence[Array], step: Step) -> list[Array]:
        """Run the code on arrays, each statement by `step`; returns what it gives, nested tuples flattened."""
        self._model.step = step
        with torch.no_grad():
            response = self._model(*(_double(torch.from_numpy(array.copy())) for array in inputs))
        return [item.numpy() for item in _tensors(response)]


def _stepped(found: re.Match[str]) -> str:
    indent, names, expression = found.groups()
    operands = tuple(name.removeprefix("v_") for name in names.split(", "))
    return f"{indent}{names} = self.step({operands!r}, lambda: {expression})"


def compute_in_double(names: tuple[str, ...], compute: Callable[[], Any]) -> Any:
    """Compute a statement as it stands, float32 that it asks for as double precision."""
    del names
    return _double(compute())


def _double(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return value.double() if value.dtype == torch.float32 else value
    return type(value)(map(_double, value)) if isinstance(value, tuple | list) else value


def _tensors(value: Any) -> list[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        return [value]
    return [tensor for item in value for tensor in _tensors(item)]
