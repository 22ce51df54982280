"""Pipelines: models in a row, each step on the request's picture, on crops of it, or on tensors of earlier steps."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import accumulate
from typing import TYPE_CHECKING, Annotated, Any, Self

from pydantic import BeforeValidator, Field, model_validator

from engine import Array
from service.config.model_config import FILE_NAME, ModelConfigError
from service.config.task_keys import TaskKeys
from service.config.toml_table import TomlTable
from service.errors import ServiceError
from service.images.geometry import ImageGeometry, place_image
from service.images.preparation import ImageInput, find_image_input
from service.tasks.boxes import BoxParameters
from service.tasks.classification import ClassPrediction, PredictionView
from service.tasks.detection import Detected
from service.tasks.ocr import Line, LineView
from service.tasks.task import Prediction, Task, TaskModel
from service.tasks.text_detection import TextLine, draw_lines

if TYPE_CHECKING:
    from service.images.drawing import Drawing

Found = Sequence[Sequence[Prediction]]
"""The predictions of a step, for each item of its batch."""
_SURE = 0.9
"""Probability from which crops are rotated back."""


def _as_text(value: Any) -> Any:
    return str(value) if type(value) is int else value


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
    version: Annotated[str | None, BeforeValidator(_as_text)] = Field(default=None, pattern=r"^[1-9][0-9]*$")
    crops: str | None = None
    margin: float = Field(default=0.0, ge=0, le=1)
    upright: str | None = None
    combine: bool = False
    confidence: float = Field(default=0.0, ge=0, lt=1)
    tensors: dict[str, str] | None = Field(default=None, min_length=1)

    @property
    def takes_picture(self) -> bool:
        """Whether it takes the request's picture, or crops of it."""
        return self.tensors is None


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

    @property
    def places(self) -> dict[str, int]:
        """The place of each step, by its name."""
        return {step.name: place for place, step in enumerate(self.steps)}


class Pipeline(Task):
    """The task of models without weights, whose steps run other models of the repository.

    Args:
        model: the pipeline.
        steps: the task of each step's model, in order.

    Attributes:
        config: the steps as they are configured.
        shown: place of the step whose predictions the response holds.
        has_labels: whether these are labels of boxes.
        needs_picture: whether a step after the first takes the request's picture.
    """

    name = "pipeline"
    keys = TaskKeys(PipelineConfig)
    parameters = BoxParameters

    def __init__(self, model: TaskModel, steps: Sequence[Task] = ()) -> None:
        super().__init__(model)
        if not steps:
            expected = "a folder without .param and .bin: steps name models of other folders"
            raise ModelConfigError(FILE_NAME, "task", 'is "pipeline"', expected)
        self.config = model.config.task_table(PipelineConfig)
        self.needs_picture = any(step.takes_picture for step in self.config.steps[1:])
        self._tasks = steps
        self._places = self.config.places
        self.shown = self._places[self.config.response or self.config.steps[-1].name]
        self._ends = tuple(accumulate(len(task.model.outputs) for task in steps))
        for place in range(len(steps)):
            self._check(place)
        shown = steps[self.shown]
        self.has_labels = self.config.steps[self.shown].crops is not None
        self.draws = self.has_labels or shown.draws
        self.returns_outputs = not self.has_labels and shown.returns_outputs
        if self.has_labels and shown.view not in (PredictionView, LineView):
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
        parts = [outputs[start:end] for start, end in zip((0, *self._ends), self._ends, strict=False)]
        source = self.config.steps[self.shown].crops
        if source is None:
            return self.predict_step(self.shown, parts[self.shown], images, parameters)
        boxes = self.predict_step(self._places[source], parts[self._places[source]], images, parameters) or ()
        if not any(boxes):
            return boxes
        step = self.config.steps[self.shown]
        least = parameters.get("confidence", step.confidence) if step.combine else 0.0
        if step.combine:
            parameters = {**parameters, **(self._tasks[self.shown].all_scores or {})}
        labels = iter(self.predict_step(self.shown, parts[self.shown], (), parameters) or ())
        labelled = [[_labelled(box, next(labels, ()), step.combine) for box in item] for item in boxes]
        return [[one for one in item if not one.probability < least] for item in labelled]  # NaN is shown

    def predict_step(
        self,
        place: int,
        outputs: Sequence[Array],
        images: Sequence[ImageGeometry],
        parameters: Mapping[str, Any],
    ) -> Found | None:
        """Return the predictions of one step.

        Args:
            place: which step.
            outputs: its outputs.
            images: as for `predict`.
            parameters: as for `predict`.
        """
        task, config = self._tasks[place], self.config.steps[place]
        known = {key: value for key, value in parameters.items() if key in task.parameters.model_fields}
        if not config.takes_picture or config.crops is not None:
            images = ()
        elif place:
            images = [_geometry(task, image) for image in images]
        return task.predict(outputs, images, known)

    def rotations(self, results: Sequence[Found]) -> list[int]:
        """Return for each crop of the next step by how many degrees it is rotated clockwise.

        Args:
            results: the predictions of the steps before it.
        """
        step = self.config.steps[len(results)]
        if step.upright is None:
            return [0] * sum(map(len, results[self._places[step.crops or ""]]))
        # an item has no predictions where its scores are NaN, or below the threshold of a sigmoid
        best = [next(iter(item), None) for item in results[self._places[step.upright]]]
        return [
            int(one.label) if isinstance(one, ClassPrediction) and one.probability >= _SURE else 0
            for one in best
        ]

    def draw(self, drawing: "Drawing", predictions: Sequence[Prediction]) -> None:
        """Draw boxes with labels, or what the step that is shown draws."""
        if not self.has_labels:
            self._tasks[self.shown].draw(drawing, predictions)
            return
        draw_lines(drawing, predictions)
        for one in reversed(predictions):
            if isinstance(one, Detected):
                drawing.box(one.box, f"{one.label} {one.probability:.2f}", one.index)

    def _check(self, place: int) -> None:
        """Check that a step can take what it is configured to take.

        Raises:
            ModelConfigError: it cannot.
        """
        step, task, key = self.config.steps[place], self._tasks[place], f"pipeline.steps.{place}"
        if step.crops is not None:
            source = self._tasks[self._places[step.crops]]
            if source.view is None or "box" not in source.view.model_fields:
                problem = f"is {step.crops!r}, whose task {source.name} gives no boxes"
                raise ModelConfigError(FILE_NAME, f"{key}.crops", problem, "a step that detects")
            given = self.config.steps[self._places[step.crops]]
            if given.crops is not None or not given.takes_picture:
                problem = f"is {step.crops!r}, whose boxes are not those of the picture"
                raise ModelConfigError(FILE_NAME, f"{key}.crops", problem, "a step that takes the picture")
        if step.combine:
            self._check_labels(step, f"{key}.combine")
        if step.upright is not None:
            self._check_rotations(step, f"{key}.upright")
        if place and step.takes_picture and (task.model.config.image is None or len(task.model.inputs) != 1):
            problem = f"is {step.model!r}, which does not take one picture"
            raise ModelConfigError(FILE_NAME, f"{key}.model", problem, "a model with one input and [image]")
        if step.tensors is not None:
            self._check_tensors(step.tensors, task, f"{key}.tensors")

    def _check_labels(self, step: StepConfig, key: str) -> None:
        place = self._places.get(step.crops or "", -1)
        own = self._tasks[self._places[step.name]]
        source = self._tasks[place].model.config.labels if place >= 0 else None
        if own.view is not PredictionView or not source or set(source) != set(own.model.config.labels or ()):
            problem = "is true, and the step does not classify crops of boxes with the same labels"
            raise ModelConfigError(
                FILE_NAME, key, problem, "a classification with the labels of the detector"
            )

    def _check_rotations(self, step: StepConfig, key: str) -> None:
        place = self._places[step.upright or ""]
        labels = self._tasks[place].model.config.labels or ()
        if self.config.steps[place].crops != step.crops or self._tasks[place].view is not PredictionView:
            problem = f"is {step.upright!r}, which does not classify the same crops"
            raise ModelConfigError(FILE_NAME, key, problem, f'a classification with crops = "{step.crops}"')
        if not labels or not set(labels) <= {"0", "90", "180", "270"}:
            problem = f"is {step.upright!r}, whose labels are {', '.join(labels) or 'missing'}"
            raise ModelConfigError(FILE_NAME, key, problem, "degrees: 0, 90, 180, 270")

    def _check_tensors(self, tensors: Mapping[str, str], task: Task, key: str) -> None:
        names = {port.operator for port in task.model.inputs}
        if set(tensors) != names:
            problem = f"names {', '.join(sorted(tensors))}"
            raise ModelConfigError(
                FILE_NAME, key, problem, f"the inputs of the model: {', '.join(sorted(names))}"
            )
        for port, source in tensors.items():
            self.find_output(source, f"{key}.{port}")

    def find_output(self, source: str, key: str = "") -> tuple[int, int]:
        """Return the step and the place of an output that is called `STEP/OUTPUT`.

        Raises:
            ModelConfigError: there is none; `key` names the place of the configuration.
        """
        step, _, name = source.partition("/")
        ports = self._tasks[self._places[step]].model.outputs
        for place, port in enumerate(ports):
            if name in (port.operator, port.operand):
                return self._places[step], place
        known = ", ".join(f"{step}/{port.operator}" for port in ports)
        raise ModelConfigError(FILE_NAME, key, f"is {source!r}", f"an output of that step: {known}")


def _misnamed(key: str, value: object, expected: str) -> ValueError:
    return ValueError(f'{key} is "{value}"; expected {expected}')


def _geometry(task: Task, image: ImageGeometry) -> ImageGeometry:
    """Return where a picture lies in the input of a step that prepares it in its own way."""
    config, (port,) = task.model.config.image, task.model.inputs
    target = None if config is None else find_image_input(config, port)
    if config is None or not isinstance(target, ImageInput):
        raise ServiceError(422, "not_an_image_model", f"the model of the task {task.name} takes no pictures")
    return place_image(config, (image.width, image.height), (target.width, target.height))


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


def _labelled(box: Prediction, labels: Sequence[Prediction], is_combined: bool) -> Detected | TextLine:
    """Return a box with the best label of its crop; with its own where there is none."""
    scores = [one for one in labels if isinstance(one, ClassPrediction)]
    if is_combined and scores and isinstance(box, Detected):
        return combine(box, scores)
    place: Any = getattr(box, "box")  # noqa: B009  # each task has its own class
    for best in labels[:1]:
        if isinstance(box, TextLine) and isinstance(best, Line | ClassPrediction):
            text = best.text if isinstance(best, Line) else best.label
            return replace(box, text=text, probability=best.probability)
        if isinstance(best, ClassPrediction):
            return Detected(best.label, best.index, best.probability, place)
        if isinstance(best, Line):
            return Detected(best.text, 0, best.probability, place)
    return box if isinstance(box, Detected | TextLine) else Detected("", 0, 0.0, place)
