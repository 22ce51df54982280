"""The model that a command names, and the inputs that it runs on."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from engine import PNNX_COMPUTE, Array, InputError, RuntimeGraph, TensorSpec, files_at
from engine.check import UNREADABLE, array_problem, choose_shapes, load_inputs, trial_inputs
from service.codec.conversion import convert
from service.commands.failure import CommandError, CommandUsageError, url_hint
from service.config.model_config import load_model_config
from service.config.settings import load_settings
from service.config.store_url import folder_of
from service.errors import did_you_mean
from service.pictures import prepare_picture
from service.repository.model_loader import PIPELINE
from service.tasks.pipeline import PipelineConfig

Model = Annotated[
    str,
    typer.Argument(help="folder of a model, its .param file, or the name of a model in the folder of models"),
]
_SOURCE = re.compile(r"\.(pt|pt2|pth|torchscript|onnx|safetensors)$|^[\w./\\-]+:[A-Za-z_][\w.]*$")
"""What `kuiper export` takes in place of a model: a file of PyTorch or ONNX, `file.py:Class`, `timm:name`."""
_LONGEST_NAME = 16
"""Characters of the longest name of a model that heads a column."""

Threads = Annotated[int, typer.Option(min=1, max=1024, metavar="N", help="Threads of a run.")]
Shapes = Annotated[
    list[str] | None,
    typer.Option(
        "--shape",
        metavar="DIMS",
        help="Shape of an input, as 1,3,224,224; repeat it for each.",
        show_default=False,
    ),
]
InputFile = Annotated[
    Path | None,
    typer.Argument(
        help="a picture, an .npy or an .npz; random numbers if it is left out", show_default=False
    ),
]


def find_model(name: str) -> Path:
    """Return the folder or the `.param` file of a model.

    Args:
        name: its path; or its name in the folder of models that the settings name.

    Raises:
        CommandError: there is none.
    """
    path = Path(name)
    if _SOURCE.search(name) and not path.is_dir():
        raise CommandError(f"{name}: is the source of a model; export it first: kuiper export {name}")
    if path.is_dir() or (path.is_file() and path.suffix == ".param"):
        return path
    models = folder_of(load_settings({}).models)
    if len(path.parts) == 1 and (models / name).is_dir():
        return models / name
    folders = models.iterdir() if models.is_dir() else ()
    known = sorted(each.name for each in folders if each.is_dir() and not each.name.startswith("."))
    there = f"; in {models} there are {', '.join(known)}" if known else ""
    there += did_you_mean(path.name, known) + url_hint(name)
    raise CommandError(f"{name}: is not a model; expected its folder, its .param file or its name{there}")


def model_folder(name: str) -> Path:
    """Return the folder of a model, or a folder of models; the arguments and errors are those of `model_files`."""
    path = find_model(name)
    _refuse_pipeline(path, name)
    return path if path.is_dir() else path.parent


def model_files(name: str) -> tuple[Path, Path]:
    """Return the `.param` and the `.bin` of a model; of its versions, the highest.

    Raises:
        CommandError: there is no such model, or it is a pipeline, which has no graph of its own.
        InputError: its folder does not hold the files of one model.
    """
    path = find_model(name)
    try:
        return files_at(path)
    except InputError:
        _refuse_pipeline(path, name)
        raise


def is_pipeline(path: Path) -> bool:
    """Return whether a folder holds a pipeline, whose steps are models beside it.

    Raises:
        ModelConfigError: its `model.toml` cannot be read.
    """
    return path.is_dir() and load_model_config(path).task == PIPELINE


def _refuse_pipeline(path: Path, name: str) -> None:
    if is_pipeline(path):
        steps = load_model_config(path).task_table(PipelineConfig).steps
        models = ", ".join(step.model for step in steps)
        raise CommandError(f"{name}: is a pipeline; name the model of one of its steps: {models}")


def open_model(name: str, threads: int = 1, backend: str | None = None) -> RuntimeGraph:
    """Return the built graph of a model; of its versions, the highest.

    Raises:
        CommandError: there is no such model.
        KuiperError: it cannot be read or built.
    """
    param, binary = model_files(name)
    graph = RuntimeGraph(param, binary, threads=threads, backend=backend)
    graph.build()
    return graph


@dataclass(frozen=True, slots=True)
class RunInputs:
    """Arrays to run a graph on, in the order of its inputs.

    Attributes:
        arrays: the arrays.
        source: where they are from, in words.
    """

    arrays: list[Array]
    source: str

    @property
    def specs(self) -> list[TensorSpec]:
        """Their shapes and dtypes."""
        return [TensorSpec(array.shape, array.dtype) for array in self.arrays]


def run_inputs(graph: RuntimeGraph, file: Path | None, shapes: Sequence[str] | None) -> RunInputs:
    """Return what to run a graph on: the arrays or the picture of a file, else random numbers.

    Args:
        graph: a built graph.
        file: a picture, an `.npy` or an `.npz`; None for random numbers.
        shapes: shapes of random inputs, as texts; none for those that the model declares.

    Raises:
        CommandUsageError: a shape is none, or no shape is known.
        CommandError: the file cannot be read.
        InputError, ServiceError: it does not fit the model.
    """
    if file is None:
        return random_inputs(graph, [parse_shape(text) for text in shapes or ()])
    if shapes:
        raise CommandUsageError(f"--shape: is for random numbers; {file} has shapes of its own")
    if file.suffix == ".npz":
        arrays = load_inputs(graph, file)
        return RunInputs(_as_declared(graph, _in_order(graph, arrays), file), str(file))
    if file.suffix == ".npy":
        try:
            loaded = np.load(file, allow_pickle=False)
        except UNREADABLE as error:
            raise CommandError(f"{file}: {array_problem(error)}; expected an .npy of numbers") from error
        return RunInputs(_as_declared(graph, [loaded], file), str(file))
    return RunInputs([prepare_picture(file, graph.param_path.parent, graph.inputs)], str(file))


def random_inputs(graph: RuntimeGraph, shapes: Sequence[tuple[int, ...]]) -> RunInputs:
    """Return random inputs of these shapes, the same each time; of those that the model declares, where none are given.

    Raises:
        CommandUsageError: no shape is known.
        InputError, LayerError: the graph does not run on such shapes, or the run would take too much memory.
    """
    choice = choose_shapes(graph.inputs, shapes, graph.param_path)
    if choice.specs is None:
        raise CommandUsageError(choice.source)
    graph.plan(choice.specs)  # refuses what does not fit into memory before it is drawn
    names = [port.operand for port in graph.inputs]
    trial = next(iter(trial_inputs(dict(zip(names, choice.specs, strict=True)))))
    return RunInputs([trial.arrays[name] for name in names], f"numbers that are {trial.kind}")


def parse_shape(text: str) -> tuple[int, ...]:
    """Read a shape such as `1,3,224,224`.

    Raises:
        CommandUsageError: it is none.
    """
    try:
        shape = tuple(int(dim) for dim in text.split(","))
    except ValueError:
        shape = (-1,)
    if any(dim < 0 for dim in shape):
        raise CommandUsageError(
            f"{text!r}: is not a shape; expected whole numbers with commas between, as 1,3,224,224"
        )
    return shape


def shape_text(shape: Sequence[int | None] | None) -> str:
    """Return a shape as text: dynamic dimensions as `?`, a shape that is not known as a hyphen."""
    return "-" if shape is None else "x".join("?" if dim is None else str(dim) for dim in shape) or "scalar"


def short_names(first: str, second: str) -> tuple[str, str]:
    """Return names for the headings of two models: those of their folders, where they differ and are short."""
    names = Path(first).name, Path(second).name
    return names if names[0] != names[1] and max(map(len, names)) <= _LONGEST_NAME else ("first", "second")


def _as_declared(graph: RuntimeGraph, arrays: list[Array], file: Path) -> list[Array]:
    """Return arrays in the dtypes that the inputs declare, converted as a server converts those of a request.

    Raises:
        ServiceError: one is of another kind, or holds a number too large.
    """
    if len(arrays) != len(graph.inputs):
        return arrays  # the run shows how many there are to be
    return [
        convert(array, PNNX_COMPUTE[port.dtype], f"{file}, for input {port.operand!r},")
        if port.dtype
        else array
        for array, port in zip(arrays, graph.inputs, strict=True)
    ]


def _in_order(graph: RuntimeGraph, arrays: list[Array] | dict[str, Array]) -> list[Array]:
    if isinstance(arrays, list):
        return arrays
    missing = [port for port in graph.inputs if port.operand not in arrays and port.operator not in arrays]
    if missing:
        raise InputError(f"the file has no array for input {', '.join(map(str, missing))}")
    return [arrays[port.operand if port.operand in arrays else port.operator] for port in graph.inputs]
