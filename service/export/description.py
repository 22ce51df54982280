"""Writes `model.toml`: what can be told of a model from its graph, its outputs, and what the user said."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from engine import Array, Port
from service.config.model_config import FILE_NAME, ModelConfigError, load_model_config
from service.config.regular_file import read_text
from service.export.errors import ExportError
from service.export.input_spec import InputSpec
from service.export.preset import LISTS, PRESETS, Preset, Value, class_names
from service.export.text_description import TOKENIZER, text_tables
from service.tasks import TaskModel, open_task, task_class, task_names

_LABELS = "labels.txt"


@dataclass(frozen=True, slots=True)
class Wishes:
    """What the user says of a model.

    Attributes:
        task: name of its task; None for what can be told.
        labels: a file with one label per line, or `imagenet` or `coco`; None for those of the preset.
        preset: name of a preset; None for none.
        tokenizer: a `tokenizer.json`, for a model that takes text; None for none.
        description: a sentence for people; None for what it was exported from.
    """

    task: str | None = None
    labels: str | None = None
    preset: str | None = None
    tokenizer: Path | None = None
    description: str | None = None


def check_wishes(wishes: Wishes) -> None:
    """Check what can be checked before the export.

    Raises:
        ExportError: there is no such preset, task or file.
    """
    if wishes.preset is not None and wishes.preset not in PRESETS:
        raise ExportError(f"there is no preset {wishes.preset!r}; expected {', '.join(PRESETS)}")
    if wishes.task is not None and wishes.task not in task_names():
        raise ExportError(f"there is no task {wishes.task!r}; expected {', '.join(task_names())}")
    if wishes.labels is not None:
        _labels(wishes.labels)
    if wishes.tokenizer is not None and not wishes.tokenizer.is_file():
        raise ExportError(f"there is no file {wishes.tokenizer}")


def describe(
    folder: Path, title: str, specs: Sequence[InputSpec], outputs: Sequence[Array], wishes: Wishes
) -> list[str]:
    """Write `model.toml`, with labels beside it.

    Args:
        folder: where to.
        title: what the model was exported from.
        specs: its inputs.
        outputs: what it made of an example.
        wishes: what the user said.

    Returns:
        What the user may want to add, a sentence each.

    Raises:
        ExportError: a file cannot be read.
    """
    preset = PRESETS[wishes.preset] if wishes.preset is not None else None
    labels, notes = _chosen_labels(wishes, preset, outputs)
    task = wishes.task or _task(preset, labels, outputs, wishes)
    lines = [f"description = {_quoted(wishes.description or f'Exported from {title}.')}"]
    if task != "raw":
        lines.insert(0, f'task = "{task}"')
    if labels and task_class(task).keys.takes_labels:
        (folder / _LABELS).write_text("\n".join(labels) + "\n", encoding="utf-8")
        lines.append(f'labels = "{_LABELS}"')
    if wishes.tokenizer is not None:
        (folder / TOKENIZER).write_bytes(wishes.tokenizer.read_bytes())
    picture = _picture(specs)
    if preset is not None and picture is not None:
        lines += ["", "[image]", *_image(picture, preset)]
    elif picture is not None:
        notes.append(
            "it seems to take pictures; --preset tells how they are prepared, so that clients can send them"
        )
    if wishes.tokenizer is not None:
        sizes = specs[0].shape[1:] if specs else ()
        fixed = sizes[0] if sizes and not specs[0].is_open[1] else None
        lines += text_tables(wishes.tokenizer, fixed, task, outputs[0].ndim == 2)
    if task.endswith("classification"):
        lines += ["", f"[{task}]", f"softmax = {_spelled(not _are_probabilities(outputs[0]))}"]
    if any(any(spec.is_open) for spec in specs):
        shapes = [list(spec.shape) for spec in specs]
        lines += ["", "[warm_up]", f"shapes = [{shapes if len(shapes) > 1 else shapes[0]}]"]
    (folder / FILE_NAME).write_text("\n".join(lines) + "\n", encoding="utf-8")
    return notes


def check_description(folder: Path, inputs: Sequence[Port], outputs: Sequence[Port]) -> str:
    """Check what was written as a server does that loads it; return the task.

    Raises:
        ExportError: it does not fit the graph.
    """
    try:
        config = load_model_config(folder)
        open_task(TaskModel(config, inputs, outputs))
    except ModelConfigError as error:
        raise ExportError(str(error).replace(str(folder / FILE_NAME), FILE_NAME)) from error
    return config.task


def _chosen_labels(
    wishes: Wishes, preset: Preset | None, outputs: Sequence[Array]
) -> tuple[list[str], list[str]]:
    """Return the labels, and what is to be said of them."""
    if wishes.labels is not None:
        return _labels(wishes.labels), []
    if preset is None or preset.labels is None:
        return [], []
    names, count = class_names(preset.labels), _classes(outputs)
    if preset.task != "classification" or count == len(names):
        return names, []
    return [], [
        f"it has {count} classes and no labels; --labels names a file with one per line"
    ] if count else []


def _task(preset: Preset | None, labels: Sequence[str], outputs: Sequence[Array], wishes: Wishes) -> str:
    if wishes.tokenizer is not None:
        wanted = "text-classification" if labels else "text-embedding"
        return wanted if wanted in task_names() else "raw"
    if preset is not None and preset.task != "classification":
        return preset.task if preset.task in task_names() else "raw"
    is_wished = bool(labels) or (preset is not None and preset.labels is not None)
    return "classification" if is_wished and _classes(outputs) else "raw"


def _classes(outputs: Sequence[Array]) -> int:
    """Return how many classes the first output has; 0 where it is no list of them."""
    shape = outputs[0].shape if outputs else ()
    return shape[1] if len(shape) >= 2 and all(size == 1 for size in shape[2:]) else 0


def _are_probabilities(output: Array) -> bool:
    """Return whether the scores of each row are probabilities already."""
    rows = output.reshape(len(output), -1).astype(np.float64)
    return bool((rows >= 0).all() and np.allclose(rows.sum(axis=1), 1, atol=1e-3))


def _picture(specs: Sequence[InputSpec]) -> InputSpec | None:
    """Return the input that takes pictures; None where that is not clear."""
    spec = specs[0] if len(specs) == 1 else None
    is_picture = spec is not None and len(spec.shape) == 4 and spec.shape[1] in (1, 3) and spec.dtype == "f32"
    return spec if is_picture else None


def _image(spec: InputSpec, preset: Preset) -> list[str]:
    keys: dict[str, Value] = dict(preset.image)
    if spec.shape[1] == 1:
        mean_of_three = [key for key, value in keys.items() if isinstance(value, tuple) and len(value) > 1]
        keys = {"colour": "gray"} | {key: value for key, value in keys.items() if key not in mean_of_three}
    size = f"size = [{spec.shape[2]}, {spec.shape[3]}]    # height, width"
    return [size, *(f"{key} = {_spelled(value)}" for key, value in keys.items())]


def _labels(wish: str) -> list[str]:
    if wish in LISTS:
        return class_names(wish)
    try:
        labels = [line.strip() for line in read_text(Path(wish), "utf-8-sig").rstrip().splitlines()]
    except (OSError, ValueError) as error:
        raise ExportError(
            f"--labels {wish} cannot be read: {error}; expected a text file with one label per line, or "
            + " or ".join(LISTS)
        ) from error
    if not labels or "" in labels:
        line = labels.index("") + 1 if labels else 1
        raise ExportError(f"--labels {wish}: line {line} is empty; expected one label per line")
    return labels


def _spelled(value: Value) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple):
        return f"[{', '.join(map(str, value))}]"
    return _quoted(value) if isinstance(value, str) else str(value)


def _quoted(text: str) -> str:
    plain = "".join(c if c.isprintable() else " " for c in text)
    return '"' + plain.replace("\\", "\\\\").replace('"', '\\"') + '"'
