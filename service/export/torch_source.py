"""Models of PyTorch: a TorchScript file, or a module."""

import inspect
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

from engine import Array
from service.export.errors import ExportError
from service.export.extra import need
from service.export.input_spec import InputSpec
from service.export.source import Known, Result, Source, check_archive, named_specs
from service.export.torch_graph import (
    input_names,
    lines_of,
    perturbed,
    respell,
    results_of,
    said_by,
    weight_of,
    weights_to_file,
)
from service.export.ultralytics import CONFIG, known_of, read_config, specs_of

_WHOLE_NUMBERS = "; an input of whole numbers is given with its type, as --input 1,16:i64"


class _TorchSource(Source):
    """A module whose weights may rest in a file.

    Args:
        module: the module.
    """

    runtime = "PyTorch"

    def __init__(self, module: Any) -> None:
        self._kept = module
        self._restore: Callable[[], None] | None = None

    def _restore_weights(self) -> None:
        restore, self._restore = self._restore, None
        if restore is not None:
            restore()

    @property
    def _module(self) -> Any:
        """The module, with its weights in memory."""
        self._restore_weights()
        return self._kept

    def rest(self, folder: Path) -> None:
        """Keep large weights in a file of a folder until they are needed again."""
        self._restore = weights_to_file(self._module, folder)

    def perturbed(self) -> AbstractContextManager[None]:
        """Flip the last bit of each weight for the duration of the block."""
        return perturbed(self._module)


class TorchScriptSource(_TorchSource):
    """A TorchScript file, as `torch.jit.trace(…).save(…)` and `torch.jit.script(…).save(…)` write it.

    Args:
        path: the file.

    Raises:
        ExportError: it cannot be read, or holds something else.
    """

    def __init__(self, path: Path) -> None:
        self.title = f"{path.name}, TorchScript"
        module, self._config = _load(path)
        super().__init__(module)
        if self._config:
            self.title = f"{path.name}, TorchScript of Ultralytics"
            self.known = known_of(self._config)

    def inputs(self, given: Sequence[InputSpec]) -> list[InputSpec]:
        """Return the inputs as given, else those of Ultralytics' table, with their names."""
        names = input_names(self._module)
        stated = specs_of(self._config, names[0]) if self._config and len(names) == 1 else []
        return named_specs(given or stated, [InputSpec((), (), "", name) for name in names], self.title)

    def run(self, arrays: Sequence[Array]) -> list[Array]:
        """Return the outputs of the module."""
        return _run(self._module, arrays)

    def results(self, arrays: Sequence[Array]) -> list[Result]:
        """Return the tensors of the module's graph."""
        return results_of(self._module, arrays)

    def weight(self, name: str) -> Array | None:
        """Return a weight of the module."""
        return weight_of(self._module, name)

    def save(self, folder: Path, arrays: Sequence[Array]) -> Path:
        """Write the module, on the CPU and in float32."""
        del arrays
        path = folder / "model.pt"
        respell(self._module)
        self._module.save(str(path))
        return path

    def lines_of(self, kind: str) -> list[str]:
        """Return the lines of the model that use an operator."""
        return lines_of(self._module, kind)


class ModuleSource(_TorchSource):
    """A module, which is traced for the exporter.

    Args:
        title: what it is, for people.
        module: the module.
        specs: its inputs as far as its origin states them; none where it does not.
        traced: the module that is traced, where that is another spelling of the same.
        known: what else its origin states.
    """

    def __init__(
        self,
        title: str,
        module: Any,
        specs: Sequence[InputSpec] = (),
        traced: Any = None,
        known: Known | None = None,
    ) -> None:
        self.title = title
        self.known = known or Known()
        super().__init__(module)
        self._specs = specs
        self._to_trace = module if traced is None else traced
        self._traced: Any = None

    def inputs(self, given: Sequence[InputSpec]) -> list[InputSpec]:
        """Return the inputs as given, else those that the module's origin states; names are those of `forward`."""
        if self._specs:
            return named_specs(given, self._specs, self.title) if given else list(self._specs)
        if not given:
            raise ExportError(
                f"{self.title}: the shapes of the inputs are needed; give --input, as 1,3,224,224"
            )
        names = _argument_names(self._module)[: len(given)]
        unnamed = [""] * (len(given) - len(names))
        declared = [InputSpec((), (), "", name) for name in (*names, *unnamed)]
        return named_specs(given, declared, self.title)

    def run(self, arrays: Sequence[Array]) -> list[Array]:
        """Return the outputs of the module itself, not of its trace."""
        with _plain_transformers():
            return _run(self._module, arrays)

    @property
    def _trace(self) -> Any:
        """The trace, with its weights in memory, which are the module's."""
        self._restore_weights()
        return self._traced

    def results(self, arrays: Sequence[Array]) -> list[Result]:
        """Return the tensors of the trace; none before there is one."""
        return [] if self._traced is None else results_of(self._trace, arrays)

    def weight(self, name: str) -> Array | None:
        """Return a weight by its name in the trace; None before there is one."""
        return None if self._traced is None else weight_of(self._trace, name)

    def save(self, folder: Path, arrays: Sequence[Array]) -> Path:
        """Trace the module and write the trace."""
        torch = need("torch")
        module = _with_flat_outputs(self._to_trace, arrays)
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
        respell(self._traced)
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


def _load(path: Path) -> tuple[Any, Mapping[str, Any]]:
    """Return a module, and the table of Ultralytics in its file; an empty one where there is none."""
    weights = (
        ". A file of weights alone (a state_dict) does not say what to compute: write a function that builds the "
        "module and loads them, and give its name as file.py:function or package.module:function; for one of "
        f"Ultralytics, yolo export model={path.name} format=torchscript writes a file that does"
    )
    check_archive(path, "a TorchScript file", weights)
    torch = need("torch")
    extra = {CONFIG: ""}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about the successor of TorchScript
            module = torch.jit.load(str(path), map_location="cpu", _extra_files=extra)
    except (RuntimeError, ValueError, OSError) as error:
        raise ExportError(f"{path.name} is not a TorchScript file: {said_by(error)}{weights}") from error
    return module.eval().float(), read_config(extra[CONFIG])


def _run(module: Any, arrays: Sequence[Array]) -> list[Array]:
    torch = need("torch")
    try:
        with torch.no_grad(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            outputs = module(*(torch.from_numpy(array.copy()) for array in arrays))
    except Exception as error:  # whatever the module's own code raises
        shapes = ", ".join(str(array.shape) for array in arrays)
        hint = _WHOLE_NUMBERS if " Long" in str(error) and any(a.dtype.kind == "f" for a in arrays) else ""
        raise ExportError(f"the model does not run on {shapes}: {said_by(error)}{hint}") from error
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
