"""Models of PyTorch: a TorchScript file, or a function that makes a module."""

import importlib
import inspect
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from engine import Array
from service.export.errors import ExportError
from service.export.extra import need
from service.export.input_spec import InputSpec
from service.export.source import Result, Source, check_count
from service.export.torch_graph import input_names, lines_of, results_of, said_by

_FACTORY = "a function without required arguments that returns a torch.nn.Module, as package.module:function"


class TorchScriptSource(Source):
    """A TorchScript file, as `torch.jit.trace(…).save(…)` and `torch.jit.script(…).save(…)` write it.

    Args:
        path: the file.

    Raises:
        ExportError: it cannot be read, or holds something else.
    """

    runtime = "PyTorch"

    def __init__(self, path: Path) -> None:
        self.title = f"{path.name}, TorchScript"
        self._module = _load(path)

    def inputs(self, given: Sequence[InputSpec]) -> list[InputSpec]:
        """Return the inputs as given, with their names."""
        names = input_names(self._module)
        check_count(given, names, self.title)
        return [replace(spec, name=name) for spec, name in zip(given, names, strict=True)]

    def run(self, arrays: Sequence[Array]) -> list[Array]:
        """Return the outputs of the module."""
        return _run(self._module, arrays)

    def results(self, arrays: Sequence[Array]) -> list[Result]:
        """Return the tensors of the module's graph."""
        return results_of(self._module, arrays)

    def save(self, folder: Path, arrays: Sequence[Array]) -> Path:
        """Write the module, on the CPU and in float32."""
        del arrays
        path = folder / "model.pt"
        self._module.save(str(path))
        return path

    def lines_of(self, kind: str) -> list[str]:
        """Return the lines of the model that use an operator."""
        return lines_of(self._module, kind)


class FactorySource(Source):
    """A function that makes a module, `package.module:function`; the current folder is looked into as well.

    Args:
        text: where the function is.

    Raises:
        ExportError: there is no such function, or it makes no module.
    """

    runtime = "PyTorch"

    def __init__(self, text: str) -> None:
        self.title = f"{text}, PyTorch"
        self._module = _make(text)
        self._traced: Any = None

    def inputs(self, given: Sequence[InputSpec]) -> list[InputSpec]:
        """Return the inputs as given, called as `forward` calls them: it does not tell how many it takes."""
        if not given:
            raise ExportError(
                f"{self.title}: the shapes of the inputs are needed; give --input, as 1,3,224,224"
            )
        names = _argument_names(self._module)
        if len(names) < len(given):
            return list(given)
        return [replace(spec, name=name) for spec, name in zip(given, names, strict=False)]

    def run(self, arrays: Sequence[Array]) -> list[Array]:
        """Return the outputs of the module itself, not of its trace."""
        with _plain_transformers():
            return _run(self._module, arrays)

    def results(self, arrays: Sequence[Array]) -> list[Result]:
        """Return the tensors of the trace; none before there is one."""
        return [] if self._traced is None else results_of(self._traced, arrays)

    def save(self, folder: Path, arrays: Sequence[Array]) -> Path:
        """Trace the module and write the trace."""
        torch = need("torch")
        module = _with_flat_outputs(self._module, arrays)
        try:
            with warnings.catch_warnings(), torch.no_grad(), _plain_transformers():
                warnings.simplefilter(
                    "ignore"
                )  # about numbers that are taken from shapes, which are checked here
                tensors = tuple(torch.from_numpy(array.copy()) for array in arrays)
                self._traced = torch.jit.trace(module, tensors, check_trace=False, strict=False)
        except Exception as error:  # whatever the module's own code raises
            raise ExportError(f"{self.title} cannot be traced: {said_by(error)}") from error
        path = folder / "model.pt"
        self._traced.save(str(path))
        return path

    def lines_of(self, kind: str) -> list[str]:
        """Return the lines of the model that use an operator."""
        return [] if self._traced is None else lines_of(self._traced, kind)


def _argument_names(module: Any) -> list[str]:
    """Return the names of the arguments of `forward`; none where they are not all given by place."""
    arguments = list(inspect.signature(module.forward).parameters.values())
    by_place = [argument for argument in arguments if argument.kind is argument.POSITIONAL_OR_KEYWORD]
    return [argument.name for argument in by_place] if by_place == arguments else []


def _with_flat_outputs(module: Any, arrays: Sequence[Array]) -> Any:
    """Return a module that can be traced: one whose outputs are a dict, or an object with fields, gives a tuple."""
    torch = need("torch")
    with torch.no_grad():
        outputs = module(*(torch.from_numpy(array.copy()) for array in arrays))
    if isinstance(outputs, torch.Tensor | tuple | list):
        return module
    base: Any = torch.nn.Module

    class Flat(base):  # type: ignore[misc]  # torch is imported late
        def __init__(self) -> None:
            super().__init__()
            self.model = module

        def forward(self, *inputs: Any) -> Any:
            return tuple(_tensors(self.model(*inputs)))

    return Flat().eval()


@contextmanager
def _plain_transformers() -> Iterator[None]:
    """Keep attention and encoder layers as operators of their own, rather than as one that only PyTorch knows."""
    torch = need("torch")
    before = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)
    try:
        yield
    finally:
        torch.backends.mha.set_fastpath_enabled(before)


def _load(path: Path) -> Any:
    if not path.is_file():
        raise ExportError(f"there is no file {path}")
    torch = need("torch")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about the successor of TorchScript
            module = torch.jit.load(str(path), map_location="cpu")
    except (RuntimeError, ValueError, OSError) as error:
        raise ExportError(
            f"{path.name} is no TorchScript file: {said_by(error)}. A file of weights alone (a state_dict) does not "
            "say what to compute: write a function that builds the module and loads them, and give its name as "
            "package.module:function"
        ) from error
    return module.eval().float()


def _make(text: str) -> Any:
    torch = need("torch")
    name, _, function = text.partition(":")
    sys.path.insert(0, str(Path.cwd()))
    try:
        made = getattr(importlib.import_module(name), function)
        module = made() if not isinstance(made, torch.nn.Module) else made
    except (ImportError, AttributeError, ValueError) as error:
        raise ExportError(f"{text}: {said_by(error)}; expected {_FACTORY}") from error
    except Exception as error:  # whatever the function's own code raises
        raise ExportError(f"{text} raised {type(error).__name__}: {said_by(error)}") from error
    finally:
        sys.path.remove(str(Path.cwd()))
    if not isinstance(module, torch.nn.Module):
        raise ExportError(f"{text} returned a {type(module).__name__}; expected {_FACTORY}")
    return module.to("cpu").eval().float()


def _run(module: Any, arrays: Sequence[Array]) -> list[Array]:
    torch = need("torch")
    try:
        with torch.no_grad(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            outputs = module(*(torch.from_numpy(array.copy()) for array in arrays))
    except Exception as error:  # whatever the module's own code raises
        shapes = ", ".join(str(array.shape) for array in arrays)
        raise ExportError(f"the model does not run on {shapes}: {said_by(error)}") from error
    return [tensor.numpy() for tensor in _tensors(outputs)]


def _tensors(outputs: Any) -> Iterator[Any]:
    """Yield the tensors of outputs, in order, however they are nested."""
    torch = need("torch")
    if isinstance(outputs, torch.Tensor):
        yield outputs
    elif isinstance(outputs, dict):
        for value in outputs.values():
            yield from _tensors(value)
    elif isinstance(outputs, tuple | list):
        for value in outputs:
            yield from _tensors(value)
