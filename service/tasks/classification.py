"""Classification: which of several classes each item of a batch belongs to."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isnan
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from pydantic import Field, model_validator

from engine import Array, Port
from service.config.model_config import FILE_NAME, ModelConfig, ModelConfigError
from service.config.task_keys import TaskKeys
from service.config.toml_table import TomlTable
from service.errors import ServiceError
from service.images.geometry import ImageGeometry
from service.tasks.chosen_output import choose_output
from service.tasks.task import Prediction, Task, TaskModel, TaskParameters

if TYPE_CHECKING:
    from service.images.drawing import Drawing

_LISTED = 10
"""Maximum items that a remark lists."""


MAX_PREDICTIONS = 1 << 19
"""Maximum predictions of a response, over all its items."""


class ClassificationConfig(TomlTable):
    """How an output becomes predictions.

    Attributes:
        output: operator or operand name of the (batch, classes) output; default: the first output.
        softmax: whether the output holds logits of exclusive classes.
        sigmoid: whether the output holds a logit per class, of which an item may have several.
        threshold: with `sigmoid`, minimum probability, unless the request sets it.
        top_k: predictions per item, unless the request sets it; with `sigmoid` all by default.
    """

    output: str | None = None
    softmax: bool = False
    sigmoid: bool = False
    threshold: float = Field(default=0.5, ge=0, le=1)
    top_k: int = Field(default=5, ge=1)

    @model_validator(mode="after")
    def _check_kind(self) -> Self:
        if self.softmax and self.sigmoid:
            raise ValueError("softmax and sigmoid are both true; expected one of them")
        if "threshold" in self.model_fields_set and not self.sigmoid:
            raise ValueError("threshold is given; expected sigmoid = true")
        return self

    @property
    def count(self) -> int | None:
        """Predictions per item, None for all that reach the threshold."""
        return self.top_k if "top_k" in self.model_fields_set or not self.sigmoid else None


@dataclass(frozen=True, slots=True)
class ClassPrediction(Prediction):
    """A class and how likely it is."""

    label: str  # name of the class; its index in digits where the model has no labels
    index: int  # place of the class in the output
    probability: float  # the output's value, after softmax or sigmoid where the configuration asks for one


class ClassificationParameters(TaskParameters):
    """What requests may set for a classification."""

    top_k: int | None = Field(default=None, ge=1, description="predictions per item, best first")
    threshold: float | None = Field(
        default=None,
        ge=0,
        le=1,
        description="minimum probability of a class, where items may have several",
    )


class Classification(Task):
    """The task of models that classify.

    Raises:
        ModelConfigError: the chosen output does not exist, or it holds no classes, or another number of classes than
            there are labels.
    """

    name = "classification"
    keys = TaskKeys(ClassificationConfig, takes_labels=True)
    prediction = ClassPrediction
    parameters = ClassificationParameters
    draws = True

    def __init__(self, model: TaskModel) -> None:
        super().__init__(model)
        self._options = model.config.task_table(ClassificationConfig)
        self._labels = model.config.labels or ()
        self._chosen = choose_output(model.outputs, self._options.output, "classification.output")
        self._port = model.outputs[self._chosen]
        self._check(self._port, model.config)

    def predict(
        self, outputs: Sequence[Array], images: Sequence[ImageGeometry], parameters: Mapping[str, Any]
    ) -> Sequence[Sequence[ClassPrediction]]:
        """Name the most probable classes of each item of the batch, best first; NaN comes last.

        An item of which every score is NaN has no predictions: the order of its classes would mean nothing.

        Args:
            outputs: the chosen one is (batch, classes), (classes,) or (batch, classes, 1, …).
            images: are not looked at.
            parameters: `top_k`: how many; `threshold`: how probable at least; by default as configured.

        Raises:
            ServiceError: 422 `no_classes` where the input's size made an output of another shape, `invalid_parameter`
                for a threshold where classes exclude each other; 413 `response_too_large` for more than
                `MAX_PREDICTIONS`.
        """
        del images
        scores = _scores(outputs[self._chosen], self._port)
        least = self._least(parameters.get("threshold"))
        if self._options.softmax:
            scores = _softmax(scores)
        elif self._options.sigmoid:
            scores = _sigmoid(scores)
        count = parameters.get("top_k") or self._options.count
        order = np.argsort(-scores, axis=1, kind="stable")[:, :count]
        if order.size > MAX_PREDICTIONS:
            raise _too_many(order.shape)
        best = np.take_along_axis(scores, order, axis=1)
        return [
            []
            if values and isnan(values[0])
            else [
                ClassPrediction(self._label(index), index, value)
                for index, value in zip(indices, values, strict=True)
                if least is None or value >= least
            ]
            for indices, values in zip(order.tolist(), best.tolist(), strict=True)
        ]

    @property
    def all_scores(self) -> Mapping[str, Any]:
        """As many predictions as there are classes, whatever their probability."""
        return {"top_k": MAX_PREDICTIONS} | ({"threshold": 0.0} if self._options.sigmoid else {})

    def draw(self, drawing: "Drawing", predictions: Sequence[Prediction]) -> None:
        """Draw a bar for each class, as long as it is probable."""
        found = [one for one in predictions if isinstance(one, ClassPrediction)]
        drawing.bars([(one.label, one.probability, one.index) for one in found])

    def remark(self, predictions: Sequence[Sequence[Prediction]]) -> str | None:
        """Name the items that have no predictions."""
        if all(predictions):
            return None
        items = [index for index, item in enumerate(predictions) if not item]
        listed = ", ".join(map(str, items[:_LISTED])) + (", …" if len(items) > _LISTED else "")
        noun = "items" if len(items) > 1 else "item"
        score = "a score that reaches the threshold" if self._options.sigmoid else "a score that is a number"
        return f"no class of {noun} {listed} of the batch has {score}: there are no predictions"

    def _least(self, asked: float | None) -> float | None:
        """Return how probable predictions are at least; None where that is no matter."""
        if self._options.sigmoid:
            return self._options.threshold if asked is None else asked
        if asked is not None:
            message = (
                "parameter 'threshold' is given, but the model's classes exclude each other; expected top_k"
            )
            raise ServiceError(
                422, "invalid_parameter", message, {"parameter": "threshold", "expected": "top_k"}
            )
        return None

    def _label(self, index: int) -> str:
        return self._labels[index] if index < len(self._labels) else str(index)

    @staticmethod
    def _check(port: Port, config: ModelConfig) -> None:
        if port.shape is None:
            return
        # further dimensions may be 1; anything larger would not be a list of classes
        if len(port.shape) == 0 or any(dim not in (1, None) for dim in port.shape[2:]):
            raise ModelConfigError(FILE_NAME, "classification.output", f"shape is {port}", "(batch, classes)")
        classes = port.shape[1] if len(port.shape) > 1 else port.shape[0]
        if config.labels is not None and classes is not None and classes != len(config.labels):
            expected = f"{classes}, the classes of output {port}"
            raise ModelConfigError(FILE_NAME, "labels", f"there are {len(config.labels)}", expected)


def _too_many(shape: tuple[int, ...]) -> ServiceError:
    items, count = shape
    message = (
        f"the response would hold {count} predictions for each of {items} items; the maximum is {MAX_PREDICTIONS}: "
        "ask for fewer with top_k, or send fewer items"
    )
    return ServiceError(413, "response_too_large", message, {"limit": MAX_PREDICTIONS, "unit": "predictions"})


def _scores(output: Array, port: Port) -> Array:
    """Return an output as (batch, classes) in double precision."""
    shape = output.shape
    if output.ndim == 1:
        shape = (1, *shape)
    if len(shape) < 2 or any(dim != 1 for dim in shape[2:]) or output.dtype.kind == "c":
        message = f"output {port.operand} has shape {output.shape}; predictions need (batch, classes)"
        raise ServiceError(422, "no_classes", message, {"output": port.operand, "shape": list(output.shape)})
    return output.reshape(shape[:2]).astype(np.float64)


def _sigmoid(logits: Array) -> Array:
    """Return 1 / (1 + exp(-x)); by the hyperbolic tangent, which overflows nowhere."""
    return np.asarray(0.5 + 0.5 * np.tanh(0.5 * logits))


def _softmax(logits: Array) -> Array:
    """Return exp(x) / sum(exp(x)) along the classes; x is shifted by its maximum so that nothing overflows."""
    if logits.shape[1] == 0:
        return logits
    with np.errstate(invalid="ignore"):
        powers = np.exp(logits - logits.max(axis=1, keepdims=True))
        return np.asarray(powers / powers.sum(axis=1, keepdims=True))
