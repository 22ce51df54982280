"""Reading of lines of text: the best path of a connectionist temporal classification (Graves et al., 2006)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
from pydantic import Field

from engine import Array, Port
from service.config.model_config import FILE_NAME, ModelConfigError
from service.config.task_keys import TaskKeys
from service.config.toml_table import TomlTable
from service.errors import ServiceError
from service.images.geometry import ImageGeometry
from service.tasks.chosen_output import choose_output
from service.tasks.task import Prediction, Task, TaskModel


class OcrConfig(TomlTable):
    """How an output becomes text; `labels` are the characters.

    Attributes:
        output: operator or operand name of the output: (batch, steps, characters); default: the first
            output.
        steps_first: whether the output is (steps, batch, characters).
        blank: index of the CTC blank; the other characters follow in the order of `labels`.
        space: whether a space follows the last of `labels`.
        softmax: whether the output holds logits.
    """

    output: str | None = None
    steps_first: bool = False
    blank: int = Field(default=0, ge=0)
    space: bool = False
    softmax: bool = False


@dataclass(frozen=True, slots=True)
class Line(Prediction):
    """A line of text."""

    text: str
    probability: Annotated[
        float, Field(description="mean over the characters that were read; 0 where there is none")
    ]


class LineReading(Task):
    """The task of models that read lines of text.

    Raises:
        ModelConfigError: the chosen output does not exist, or has another shape or number of characters; there are no
            labels.
    """

    name = "ocr"
    keys = TaskKeys(OcrConfig, takes_labels=True, labels_are_characters=True)
    prediction = Line
    returns_outputs = False

    def __init__(self, model: TaskModel) -> None:
        super().__init__(model)
        self._options = model.config.task_table(OcrConfig)
        self._chosen = choose_output(model.outputs, self._options.output, "ocr.output")
        if model.config.labels is None:
            raise ModelConfigError(
                FILE_NAME, "labels", "there are none", "the characters that the model reads"
            )
        characters = [*model.config.labels, *(" " if self._options.space else "")]
        if self._options.blank > len(characters):
            raise ModelConfigError(
                FILE_NAME, "ocr.blank", f"is {self._options.blank}", f"at most {len(characters)}"
            )
        characters.insert(self._options.blank, "")
        self._characters = np.array(characters, dtype=object)
        self._check(model.outputs[self._chosen])

    def predict(
        self, outputs: Sequence[Array], images: Sequence[ImageGeometry], parameters: Mapping[str, Any]
    ) -> Sequence[Sequence[Line]]:
        """Read the line of each item.

        Args:
            outputs: the chosen one holds for each step how probable each character is.
            images: are not looked at.
            parameters: there are none.

        Raises:
            ServiceError: 422 `no_text` where the input's size made an output of another shape.
        """
        del images, parameters
        output = outputs[self._chosen]
        if output.ndim != 3 or output.shape[2] != len(self._characters) or output.dtype.kind != "f":
            message = f"the output has shape {output.shape}; expected (batch, steps, {len(self._characters)})"
            raise ServiceError(422, "no_text", message, {"shape": list(output.shape)})
        steps = output.transpose(1, 0, 2) if self._options.steps_first else output
        return [[self._read(item)] if _is_readable(item) else [] for item in steps.astype(np.float64)]

    def remark(self, predictions: Sequence[Sequence[Prediction]]) -> str | None:
        """Name the items that could not be read."""
        items = ", ".join(str(place) for place, item in enumerate(predictions) if not item)
        return (
            f"the scores of item {items} of the batch are not all numbers: there is no text"
            if items
            else None
        )

    def _read(self, scores: Array) -> Line:
        """Read the best path: of a character in several steps running, one is read; blanks part equal characters."""
        if self._options.softmax:
            scores = np.exp(scores - scores.max(axis=1, keepdims=True))
            scores /= scores.sum(axis=1, keepdims=True)
        best = scores.argmax(axis=1)
        is_read = best != self._options.blank
        is_read[1:] &= best[1:] != best[:-1]
        text = "".join(self._characters[best[is_read]])
        probability = float(scores.max(axis=1)[is_read].mean()) if is_read.any() else 0.0
        return Line(text, probability)

    def _check(self, port: Port) -> None:
        if port.shape is None:
            return
        if len(port.shape) != 3:
            raise ModelConfigError(FILE_NAME, "ocr.output", f"shape is {port}", "(batch, steps, characters)")
        count, characters = port.shape[2], len(self._characters)
        if count not in (None, characters):
            expected = f"{count}, the characters of output {port} with the blank"
            problem = (
                f"there are {characters} with the blank{' and the space' if self._options.space else ''}"
            )
            raise ModelConfigError(FILE_NAME, "labels", problem, expected)


def _is_readable(scores: Array) -> bool:
    """Return whether each step has a most probable character; minus infinity rules a character out."""
    best = scores.max(axis=1)  # NaN where a score is
    return bool(np.isfinite(best).all())
