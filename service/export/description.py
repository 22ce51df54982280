"""Writes `model.toml`: what is known of a model from its graph, its outputs, and what the user said."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from engine import Array, RuntimeGraph
from service.config.model_config import FILE_NAME, ModelConfigError, load_model_config
from service.export.errors import ExportError
from service.export.input_spec import InputSpec
from service.export.labels import choose_labels, count_classes
from service.export.preset import Preset, Value
from service.export.source import Source
from service.export.text_description import TOKENIZER, pooling, text_table
from service.export.wishes import Wishes
from service.tasks import TaskModel, open_task, task_class, task_names

_LABELS = "labels.txt"


def describe(
    folder: Path, source: Source, specs: Sequence[InputSpec], outputs: Sequence[Array], wishes: Wishes
) -> list[str]:
    """Write `model.toml`, with labels beside it.

    Args:
        folder: where to.
        source: what the model was exported from.
        specs: its inputs.
        outputs: what it made of an example.
        wishes: what the user said.

    Returns:
        What the user may want to add, a sentence each.

    Raises:
        ExportError: a file cannot be read.
    """
    known = source.known
    preset = wishes.known_preset or known.preset
    tokenizer = wishes.tokenizer or known.tokenizer
    labels, notes = choose_labels(wishes, source, outputs)
    task = wishes.task or known.task or _task(preset, labels, outputs, tokenizer)
    lines = [f"description = {_quoted(wishes.description or f'Exported from {source.title}.')}"]
    if task != "raw":
        lines.insert(0, f'task = "{task}"')
    if labels and task_class(task).keys.takes_labels:
        (folder / _LABELS).write_text("\n".join(labels) + "\n", encoding="utf-8")
        lines.append(f'labels = "{_LABELS}"')
    picture = _picture(specs)
    if preset is not None and picture is not None:
        lines += ["", "[image]", *_image(picture, preset)]
    elif picture is not None:
        notes.append(
            "it seems to take pictures; --preset says how they are prepared, so that clients can send them"
        )
    if tokenizer is not None:
        (folder / TOKENIZER).write_bytes(tokenizer.read_bytes())
        lines += text_table(tokenizer, _fixed_length(specs) or known.max_length)
    table = _table(task, labels, outputs, tokenizer) | (dict(known.table) if task == known.task else {})
    if table:
        lines += ["", f"[{task}]", *(f"{key} = {_spelled(value)}" for key, value in table.items())]
    if any(any(spec.is_dynamic) for spec in specs):
        shapes = [list(spec.shape) for spec in specs]
        lines += ["", "[warm_up]", f"shapes = [{shapes if len(shapes) > 1 else shapes[0]}]"]
    (folder / FILE_NAME).write_text("\n".join(lines) + "\n", encoding="utf-8")
    return [*notes, *known.notes]


def check_description(folder: Path, graph: RuntimeGraph) -> str:
    """Check what was written as a server does that loads it; return the task.

    Raises:
        ExportError: it does not fit the graph.
    """
    try:
        config = load_model_config(folder)
        open_task(TaskModel(config, graph.inputs, graph.outputs, graph.operators))
    except ModelConfigError as error:
        raise ExportError(str(error).replace(str(folder / FILE_NAME), FILE_NAME)) from error
    return config.task


def _task(
    preset: Preset | None, labels: Sequence[str], outputs: Sequence[Array], tokenizer: Path | None
) -> str:
    if tokenizer is not None:
        wanted = "text-classification" if labels else "text-embedding"
        return wanted if wanted in task_names() else "raw"
    if preset is not None and preset.task != "classification":
        return preset.task if preset.task in task_names() else "raw"
    is_wished = bool(labels) or (preset is not None and preset.labels is not None)
    return "classification" if is_wished and count_classes(outputs) else "raw"


def _table(
    task: str, labels: Sequence[str], outputs: Sequence[Array], tokenizer: Path | None
) -> dict[str, Value]:
    """Return keys of the task's table, as far as an example of the outputs shows them."""
    if task.endswith("classification"):
        return {"softmax": not _are_probabilities(outputs[0])}
    if task == "text-embedding" and tokenizer is not None and outputs[0].ndim != 2:
        return {"pooling": pooling(tokenizer)}
    if task == "embedding" and outputs[0].ndim > 2 and max(outputs[0].shape[2:]) > 1:
        return {"pooling": "first" if outputs[0].ndim == 3 else "mean"}
    if task == "ocr":
        return _reading(outputs[0], len(labels))
    return {}


def _fixed_length(specs: Sequence[InputSpec]) -> int | None:
    """Return how many tokens a model takes where their number is not dynamic."""
    sizes = specs[0].shape[1:] if specs else ()
    return sizes[0] if sizes and not specs[0].is_dynamic[1] else None


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


def _reading(output: Array, characters: int) -> dict[str, Value]:
    """Return the keys of `[ocr]`, as an output (batch, steps, characters) shows them."""
    if output.ndim != 3:
        return {}
    has_space = output.shape[2] == characters + 2
    are_logits = not _are_probabilities(output.reshape(-1, output.shape[2]))
    return {"blank": 0, "space": has_space, "softmax": are_logits}


def _spelled(value: Value) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple):
        return f"[{', '.join(map(str, value))}]"
    return _quoted(value) if isinstance(value, str) else str(value)


def _quoted(text: str) -> str:
    plain = "".join(c if c.isprintable() else " " for c in text)
    return '"' + plain.replace("\\", "\\\\").replace('"', '\\"') + '"'
