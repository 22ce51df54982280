"""Pipelines: models in a row, each step on the request's picture, on crops of it, or on tensors of earlier steps."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, replace
from itertools import chain, islice
from operator import attrgetter
from typing import TYPE_CHECKING, Annotated, Any, Self

from pydantic import Field, model_validator

from engine import Array
from service.config.model_config import FILE_NAME, ModelConfigError
from service.config.task_keys import TaskKeys
from service.config.toml_table import TomlTable
from service.images.geometry import ImageGeometry, place_image
from service.tasks.boxes import BoxParameters
from service.tasks.classification import ClassPrediction
from service.tasks.detection import Detected, draw_boxes
from service.tasks.ocr import Line
from service.tasks.score_map import input_size
from service.tasks.task import Prediction, Task, TaskModel
from service.tasks.text_detection import TextLine, draw_lines

if TYPE_CHECKING:
    from service.images.drawing import Drawing

Found = Sequence[Sequence[Prediction]]
"""The predictions of a step, for each item of its batch."""
_SURE = 0.9
"""Probability from which crops are rotated back."""


class StepConfig(TomlTable):
    """A step of a pipeline.

    Attributes:
        name: name of the step, which prefixes those of its operators and outputs.
        model: model of the repository that the step runs.
        version: version of that model; default: the one that serves requests without a version.
        crops: earlier step whose boxes are cut from the picture; all crops are one batch.
        margin: with `crops`, part of a box's width and height that is added on each side.
        upright: with `crops`, earlier step that classifies the same crops, whose labels are the degrees by which a
            crop is rotated clockwise: 0, 90, 180 or 270. This step takes the crops rotated back, where that step's
            probability is at least 0.9.
        combine: with `crops`, whether the detector's opinion counts for a box's label beside the classifier's: the
            probabilities of both are multiplied. Both have the same labels.
        confidence: with `combine`, minimum probability of a box's label by both; a request's `confidence` replaces it.
        tensors: for each input of the model the output of an earlier step, as `STEP/OUTPUT`. Without `crops`
            and `tensors` a step takes the request's picture; the first one takes what its model takes.
    """

    name: str = Field(pattern=r"^[A-Za-z0-9_-]+$")
    model: str
    version: str | None = Field(
        default=None, strict=False, coerce_numbers_to_str=True, pattern=r"^[1-9][0-9]*$"
    )
    crops: str | None = None
    margin: float = Field(default=0.0, ge=0, le=1)
    upright: str | None = None
    combine: bool = False
    confidence: float = Field(default=0.0, ge=0, lt=1)
    tensors: dict[str, str] | None = Field(default=None, min_length=1)

    @property
    def takes_picture(self) -> bool:
        """Whether it takes the request's picture, whole."""
        return self.crops is None and self.tensors is None


class PipelineConfig(TomlTable):
    """Which models run in a row.

    Attributes:
        steps: the steps, in order.
        response: step whose predictions the response holds; default: the last one.
    """

    steps: Annotated[tuple[StepConfig, ...], Field(strict=False, min_length=1)]
    response: str | None = None

    @model_validator(mode="after")
    def _check_steps(self) -> Self:
        """Check that steps refer to earlier ones only, so that there is no cycle."""
        names: list[str] = []
        for place, step in enumerate(self.steps):
            if step.name in names:
                raise _misnamed(f"steps.{place}.name", step.name, "a name of its own")
            earlier = f"an earlier step: {', '.join(names)}" if names else "none of crops and tensors"
            if step.crops is not None and step.tensors is not None:
                raise ValueError(f"steps.{place} has both crops and tensors; expected one of them")
            if step.crops is not None and step.crops not in names:
                raise _misnamed(f"steps.{place}.crops", step.crops, earlier)
            if step.upright is not None and (step.crops is None or step.upright not in names):
                raise _misnamed(f"steps.{place}.upright", step.upright, f"with crops, {earlier}")
            if step.confidence and not step.combine:
                raise _misnamed(f"steps.{place}.confidence", step.confidence, "combine = true beside it")
            for port, source in (step.tensors or {}).items():
                if source.partition("/")[0] not in names:
                    raise _misnamed(f"steps.{place}.tensors.{port}", source, earlier)
            names.append(step.name)
        if self.response not in (None, *names):
            raise _misnamed("response", self.response, f"a step: {', '.join(names)}")
        return self


class Pipeline(Task):
    """The task of models without weights, whose steps run other models of the repository.

    Args:
        model: the pipeline.
        steps: the task of each step's model, in order.

    Attributes:
        outputs: the step of each output and its place there, by both of its names, as `STEP/OUTPUT`.
        shown: name of the step whose predictions the response holds.
        has_labels: whether these are labels of boxes.
        needs_picture: whether a step after the first takes the request's picture, or crops of it.
    """

    name = "pipeline"
    keys = TaskKeys(PipelineConfig)
    parameters = BoxParameters

    def __init__(self, model: TaskModel, steps: Sequence[Task] = ()) -> None:
        super().__init__(model)
        if not steps:
            expected = "a folder without .param and .bin: steps name models of other folders"
            raise ModelConfigError(FILE_NAME, "task", 'is "pipeline"', expected)
        config = model.config.task_table(PipelineConfig)
        self._steps = {step.name: step for step in config.steps}
        self._tasks = dict(zip(self._steps, steps, strict=True))
        self.outputs = {
            f"{name}/{alias}": (name, place)
            for name, task in self._tasks.items()
            for place, port in enumerate(task.model.outputs)
            for alias in (port.operand, port.operator)
        }
        for place, step in enumerate(config.steps):
            for key, problem, expected in chain(self._crop_faults(step), self._input_faults(place, step)):
                raise ModelConfigError(FILE_NAME, f"pipeline.steps.{place}.{key}", problem, expected)
        self.needs_picture = any(step.tensors is None for step in config.steps[1:])
        self.shown = config.response or config.steps[-1].name
        self.has_labels = self._steps[self.shown].crops is not None
        shown = self._tasks[self.shown]
        self.draws = self.has_labels or shown.draws
        self.returns_outputs = not self.has_labels and shown.returns_outputs
        if self.has_labels and shown.prediction not in (ClassPrediction, Line):
            problem = f"the step takes crops, and its task {shown.name} gives no labels"
            expected = "a step of the task classification or ocr"
            raise ModelConfigError(FILE_NAME, "pipeline.response", problem, expected)

    def predict(
        self, outputs: Sequence[Array], images: Sequence[ImageGeometry], parameters: Mapping[str, Any]
    ) -> Found | None:
        """Return the predictions of the step that is shown; of one that takes crops, boxes with its labels.

        Args:
            outputs: those of all steps, in order.
            images: where each picture lies in the input of the first step.
            parameters: for the steps that know them.

        Raises:
            ServiceError: as the steps' tasks.
        """
        rest = iter(outputs)
        parts = {name: [*islice(rest, len(task.model.outputs))] for name, task in self._tasks.items()}
        step = self._steps[self.shown]
        if step.crops is None:
            return self.predict_step(step.name, parts[step.name], images, parameters)
        boxes = self.predict_step(step.crops, parts[step.crops], images, parameters) or ()
        if not any(boxes):
            return boxes
        least = parameters.get("confidence", step.confidence) if step.combine else 0.0
        if step.combine:
            parameters = {**parameters, **(self._tasks[step.name].all_scores or {})}
        labels = iter(self.predict_step(step.name, parts[step.name], (), parameters) or ())
        labelled = [[_labelled(box, next(labels, ()), step.combine) for box in item] for item in boxes]
        return [[one for one in item if not one.probability < least] for item in labelled]  # NaN is shown

    def predict_step(
        self,
        name: str,
        outputs: Sequence[Array],
        images: Sequence[ImageGeometry],
        parameters: Mapping[str, Any],
    ) -> Found | None:
        """Return the predictions of one step.

        Args:
            name: which step.
            outputs: its outputs.
            images: as for `predict`.
            parameters: as for `predict`.
        """
        task, config = self._tasks[name], self._tasks[name].model.config.image
        known = {key: value for key, value in parameters.items() if key in task.parameters.model_fields}
        if not self._steps[name].takes_picture:
            images = ()
        elif name != next(iter(self._steps)) and config and (size := input_size(task.model)):
            # a later step prepares the picture in its own way
            images = [place_image(config, (image.width, image.height), size) for image in images]
        return task.predict(outputs, images, known)

    @staticmethod
    def rotations(directions: Found) -> list[int]:
        """Return by how many degrees crops are rotated clockwise whose directions a step has predicted."""
        # an item has no predictions where its scores are NaN, or below the threshold of a sigmoid
        best = [next(iter(item), None) for item in directions]
        return [
            int(one.label) if isinstance(one, ClassPrediction) and one.probability >= _SURE else 0
            for one in best
        ]

    def draw(self, drawing: "Drawing", predictions: Sequence[Prediction]) -> None:
        """Draw boxes with labels, or what the step that is shown draws."""
        if self.has_labels:
            draw_lines(drawing, predictions)
            draw_boxes(drawing, predictions)
        else:
            self._tasks[self.shown].draw(drawing, predictions)

    def _crop_faults(self, step: StepConfig) -> Iterator[tuple[str, str, str]]:
        """Yield why a step cannot take crops as it is configured to: the key, what is wrong, what is expected."""
        own, labels = self._tasks[step.name], set[str]()
        if step.crops is not None:
            source = self._tasks[step.crops]
            labels = set(source.model.config.labels or ())
            if source.prediction is None or "box" not in map(attrgetter("name"), fields(source.prediction)):
                problem = f"is {step.crops!r}, whose task {source.name} gives no boxes"
                yield "crops", problem, "a step that detects"
            if not self._steps[step.crops].takes_picture:
                problem = f"is {step.crops!r}, whose boxes are not those of the picture"
                yield "crops", problem, "a step that takes the picture"
        are_same = own.prediction is ClassPrediction and labels == set(own.model.config.labels or ())
        if step.combine and not (labels and are_same):
            problem = "is true, and the step does not classify crops of boxes with the same labels"
            yield "combine", problem, "a classification with the labels of the detector"
        if step.upright is not None:
            turn = self._tasks[step.upright]
            if self._steps[step.upright].crops != step.crops or turn.prediction is not ClassPrediction:
                problem = f"is {step.upright!r}, which does not classify the same crops"
                yield "upright", problem, f'a classification with crops = "{step.crops}"'
            degrees = turn.model.config.labels or ()
            if not degrees or not set(degrees) <= {"0", "90", "180", "270"}:
                problem = f"is {step.upright!r}, whose labels are {', '.join(degrees) or 'missing'}"
                yield "upright", problem, "degrees: 0, 90, 180, 270"

    def _input_faults(self, place: int, step: StepConfig) -> Iterator[tuple[str, str, str]]:
        """Yield why the model of a step cannot take its inputs; as `_crop_faults`."""
        model = self._tasks[step.name].model
        if step.tensors is None:
            if place and (model.config.image is None or len(model.inputs) != 1):
                problem = f"is {step.model!r}, which does not take one picture"
                yield "model", problem, "a model with one input and [image]"
            return
        names = sorted(port.operator for port in model.inputs)
        if sorted(step.tensors) != names:
            problem = f"names {', '.join(sorted(step.tensors))}"
            yield "tensors", problem, f"the inputs of the model: {', '.join(names)}"
        for port, source in step.tensors.items():
            if source not in self.outputs:
                earlier = self._tasks[source.partition("/")[0]].model.outputs
                known = ", ".join(f"{source.partition('/')[0]}/{output.operator}" for output in earlier)
                yield f"tensors.{port}", f"is {source!r}", f"an output of that step: {known}"


def _misnamed(key: str, value: object, expected: str) -> ValueError:
    return ValueError(f'{key} is "{value}"; expected {expected}')


def combine(box: Detected, scores: Sequence[ClassPrediction]) -> Detected:
    """Return a box with the label that is most probable by both its detector and the scores of its crop.

    A label's probability is the product of both, over the sum of these products. What the detector leaves may be that
    of any one other label.

    Args:
        box: what the detector found.
        scores: of all classes; one at least.
    """
    rest = 1 - box.probability
    joint = [one.probability * (box.probability if one.label == box.label else rest) for one in scores]
    total = sum(joint)
    probability, best = max(zip(joint, scores, strict=True), key=lambda pair: pair[0])
    return Detected(best.label, best.index, probability / total if total else 0.0, box.box)


def _labelled(box: Any, labels: Sequence[Prediction], is_combined: bool) -> Detected | TextLine:
    """Return a box with the best label of its crop; with its own where there is none."""
    scores = [one for one in labels if isinstance(one, ClassPrediction)]
    if is_combined and scores and isinstance(box, Detected):
        return combine(box, scores)
    best = next(iter(labels), None)
    if not isinstance(best, Line | ClassPrediction):
        return box if isinstance(box, Detected | TextLine) else Detected("", 0, 0.0, box.box)
    text, index = (best.text, 0) if isinstance(best, Line) else (best.label, best.index)
    if isinstance(box, TextLine):
        return replace(box, text=text, probability=best.probability)
    return Detected(text, index, best.probability, box.box)
