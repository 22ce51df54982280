"""Why a model predicts something: which parts of a picture, or which words of a text, its score depends on.

No method needs gradients; each runs the model on changed inputs and looks at the score:

- occlusion hides one part of the picture after the other (Zeiler and Fergus, "Visualizing and Understanding
  Convolutional Networks", 2014);
- Score-CAM hides what a channel of a layer is not active on, and adds up the channels by the score that remains (Wang
  et al., "Score-CAM: Score-Weighted Visual Explanations for Convolutional Neural Networks", 2020);
- words are left out of a text one at a time (Li et al., "Understanding Neural Networks through Representation Erasure",
  2016).
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from engine import Array, StopSignal, TensorSpec, TraceLevel
from service.codec import Decoded
from service.codec.texts import bind_texts
from service.config.limits import Limits, too_large
from service.errors import ServiceError, did_you_mean, shown
from service.images.geometry import ImageGeometry
from service.repository.loaded_model import LoadedModel
from service.repository.rows import count_rows, run_rows
from service.tasks.classification import ClassPrediction
from service.tasks.detection import Detected

Method = Literal["occlusion", "score-cam", "words"]
Scored = ClassPrediction | Detected
Box = tuple[float, float, float, float]
"""Left, top, right and bottom."""
MAX_RUNS = 1024
"""Maximum changed inputs of an explanation."""
MAX_SIDE = 64
"""Maximum rows and columns of a heatmap."""
_CAPTURED_BYTES = 256 << 20
_WORD = re.compile(r"\S+")


@dataclass(frozen=True, slots=True)
class Question:
    """What is to be explained, and how.

    Attributes:
        method: how; None for the one that suits the input.
        target: label, or number of the class, whose most probable prediction is explained; None for any.
        place: place of the prediction among these, 0 for the most probable one.
        grid: parts of the picture along each side, of occlusion.
        maps: channels of the layer, of Score-CAM: those that vary most.
        layer: operator or operand whose channels these are; None for the last one that has several pixels.
    """

    method: Method | None = None
    target: str | None = None
    place: int = 0
    grid: int = 8
    maps: int = 64
    layer: str | None = None


@dataclass(frozen=True, slots=True)
class Word:
    """A word of a text.

    Attributes:
        text: the word.
        start: its first character in the text.
        end: the character after its last.
        importance: by how much the score falls without it.
    """

    text: str
    start: int
    end: int
    importance: float


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why a prediction is what it is.

    Attributes:
        method: how this was found.
        target: the prediction.
        runs: inputs that the model was run on.
        heatmap: (rows, columns) over the region: by how much the score falls without each part; of Score-CAM, from 0
            to 1. None for a text.
        region: part of the picture that the model sees, in pixels of the picture; of the input where that is a tensor.
        layer: operand whose channels were used; None where none were.
        words: the words of a text.
    """

    method: Method
    target: Scored
    runs: int
    heatmap: Array | None = None
    region: Box | None = None
    layer: str | None = None
    words: tuple[Word, ...] = ()


def explain(
    model: LoadedModel, decoded: Decoded, question: Question, limits: Limits, stop: StopSignal
) -> Explanation:
    """Explain a prediction.

    Args:
        model: the model.
        decoded: one item: a picture, a tensor of the same form, or a text.
        question: what is to be explained, and how.
        limits: upper bounds on the size of a request.
        stop: asked before each layer.

    Raises:
        ServiceError: 422 `not_explainable`, `no_such_prediction` or `invalid_parameter`, 413
            `explanation_too_large`; or the task cannot read the outputs.
        InputError, LayerError: the model does not run on the input.
        RunStoppedError: `stop` said so.
    """
    if question.method != "words" and decoded.texts:
        question = replace(question, method=question.method or "words")
    if (question.method == "words") != bool(decoded.texts):
        what = "is for texts" if question.method == "words" else "is for pictures"
        raise _invalid(
            "method", f"{question.method!r} {what}; the request has another input", "another method"
        )
    scorer = _Scorer(model, decoded, question, stop)
    if question.method == "words":
        words = _leave_words_out(scorer, decoded.texts[0], limits)
        return Explanation("words", scorer.target, scorer.runs, words=words)
    image = _Image(scorer, decoded)
    if question.method == "score-cam":
        layer, heatmap = _score_cam(scorer, image, question)
        return Explanation("score-cam", scorer.target, scorer.runs, heatmap, image.region, layer)
    heatmap = _occlude(scorer, image, question.grid)
    return Explanation("occlusion", scorer.target, scorer.runs, heatmap, image.region)


class _Scorer:
    """The score of one prediction, on the input and on changed ones.

    Attributes:
        target: the prediction, in coordinates of the picture.
        score: its score.
        runs: inputs that the model was run on.
        batch: maximum inputs of a run.
    """

    def __init__(self, model: LoadedModel, decoded: Decoded, question: Question, stop: StopSignal) -> None:
        self.model, self.stop = model, stop
        self.runs = 0
        self.batch = max(1, model.batching.max_batch_size)
        if model.steps or model.task.all_scores is None:
            cure = f"explain the models of its steps: {', '.join(step.model.name for step in model.steps)}"
            raise _not_explainable(
                f"model {model.name!r} is a pipeline; {cure}"
                if model.steps
                else f"the task {model.task.name!r} of model {model.name!r} has predictions without scores"
            )
        rows = count_rows(decoded.inputs)
        if rows != 1:
            raise _not_explainable(f"the request has {rows} items; send one at a time")
        self.inputs = decoded.inputs
        outputs = self._run(decoded.inputs, 1)
        found = self._predict(outputs, ())[0]
        chosen = _choose(found, question)
        self._target = found[chosen]
        places = tuple(picture.geometry for picture in decoded.pictures)
        self.target = self._predict(outputs, places)[0][chosen]
        self.score = self._target.probability

    def scores(self, inputs: Mapping[str, Array]) -> list[float]:
        """Return the score on each row of changed inputs.

        A box counts by how much it overlaps the one that is explained (as in D-RISE, Petsiuk et al., 2021).
        """
        rows = count_rows(inputs)
        return [self._score(found) for found in self._predict(self._run(inputs, rows), ())]

    def _run(self, inputs: Mapping[str, Array], rows: int) -> Sequence[Array]:
        self.runs += rows
        return run_rows(self.model, inputs, rows, trace=TraceLevel.OFF, stop=self.stop).outputs

    def _predict(
        self, outputs: Sequence[Array], places: Sequence[ImageGeometry]
    ) -> Sequence[Sequence[Scored]]:
        # `all_scores` says that there are some, and that they have scores
        return self.model.task.predict(outputs, places, self.model.task.all_scores or {})  # type: ignore[return-value]

    def _score(self, found: Sequence[Scored]) -> float:
        target = self._target
        same = [one for one in found if one.index == target.index]
        if not isinstance(target, Detected):
            return max((one.probability for one in same), default=0.0)
        boxes = ((one.probability, one.box) for one in same if isinstance(one, Detected))
        return max((score * _overlap(box, target.box) for score, box in boxes), default=0.0)


class _Image:
    """The input of a model that takes one picture, or a tensor of its form.

    Attributes:
        name: its operand.
        array: (1, channels, height, width).
        part: rows and columns that show the picture.
        filling: (1, channels, 1, 1): the median of each channel there, which hides what it replaces.
        region: the part in pixels of the picture.
    """

    def __init__(self, scorer: _Scorer, decoded: Decoded) -> None:
        ((self.name, self.array), *others) = scorer.inputs.items()
        if others or self.array.ndim != 4 or self.array.dtype.kind != "f":
            raise _not_explainable(
                "the model does not take one picture, (batch, channels, height, width) of floats"
            )
        height, width = self.array.shape[2:]
        self.region: Box = (0.0, 0.0, float(width), float(height))
        self.part = slice(0, height), slice(0, width)
        if decoded.pictures:
            geometry = decoded.pictures[0].geometry
            low = np.maximum(geometry.offset, 0)
            size = np.array((geometry.width, geometry.height)) * geometry.scale
            high = np.minimum(np.add(geometry.offset, size), (width, height))
            (left, top), (right, bottom) = np.round((low, high)).astype(int).tolist()
            self.part = slice(top, max(bottom, top + 1)), slice(left, max(right, left + 1))
            corners = geometry.to_picture(np.array(((left, top), (right, bottom)), np.float64))
            self.region = tuple(corners.ravel().tolist())
        shown = self.array[:, :, *self.part]
        self.filling = np.median(shown, (2, 3), keepdims=True).astype(self.array.dtype)


def _occlude(scorer: _Scorer, image: _Image, grid: int) -> Array:
    """Return by how much the score falls where a part is hidden, the mean of the windows that hide it.

    Windows are two parts wide and high, one at each part. The heatmap has half parts.
    """
    extents = [
        len(range(*side.indices(size))) for side, size in zip(image.part, image.array.shape[2:], strict=True)
    ]
    grid = max(1, min(grid, min(extents) // 2))
    edges = [
        side.start + np.linspace(0, size, 2 * grid + 1).round().astype(int)
        for side, size in zip(image.part, extents, strict=True)
    ]
    spans = [slice(max(0, 2 * part - 1), 2 * part + 3) for part in range(grid)]
    windows = [(rows, columns) for rows in spans for columns in spans]
    fall, times = np.zeros((2, 2 * grid, 2 * grid))
    for start in range(0, len(windows), scorer.batch):
        some = windows[start : start + scorer.batch]
        changed = np.repeat(image.array, len(some), axis=0)
        for one, (rows, columns) in zip(changed, some, strict=True):
            hidden = (
                slice(*side[[span.start, min(span.stop, 2 * grid)]])
                for side, span in zip(edges, (rows, columns), strict=True)
            )
            one[:, *hidden] = image.filling[0]
        for window, score in zip(some, scorer.scores({image.name: changed}), strict=True):
            fall[window] += scorer.score - score
            times[window] += 1
    return fall / times


def _score_cam(scorer: _Scorer, image: _Image, question: Question) -> tuple[str, Array]:
    """Return the operand whose channels are used, and the heatmap, from 0 to 1.

    A channel weighs as much as the score that the picture keeps where the channel is active, beyond that of a picture
    of which all is hidden. Weights are not put through a softmax, which hides small differences.
    """
    name = _find_layer(scorer, question.layer)
    captured = scorer.model.graph.run(scorer.inputs, capture=[name], stop=scorer.stop).captured[name]
    channels = np.asarray(captured, np.float32)[0]
    chosen = np.argsort(-channels.var((1, 2)), kind="stable")[: question.maps]
    (nothing,) = scorer.scores({image.name: np.broadcast_to(image.filling, image.array.shape).copy()})
    heatmap = np.zeros(image.array.shape[2:], np.float32)
    for start in range(0, len(chosen), scorer.batch):
        some = chosen[start : start + scorer.batch]
        masks = np.stack([_spread(channels[channel], heatmap.shape) for channel in some])[:, None]
        changed = image.filling + (image.array - image.filling) * masks
        scores = scorer.scores({image.name: changed.astype(image.array.dtype)})
        weights = np.maximum(np.array(scores) - nothing, 0).astype(np.float32)
        heatmap += np.tensordot(weights, masks[:, 0], 1)
    part = heatmap[image.part]
    part = _resized(part, tuple(min(size, MAX_SIDE) for size in part.shape))
    part = part - part.min()
    return name, part / (part.max() or 1)


def _find_layer(scorer: _Scorer, wanted: str | None) -> str:
    """Return an operand with channels of several pixels that a run can observe: the last, if none is wanted.

    Raises:
        ServiceError: 422 `invalid_parameter` or `not_explainable`, 413 `explanation_too_large`.
    """
    graph = scorer.model.graph
    specs = [
        TensorSpec(scorer.inputs[port.operand].shape, scorer.inputs[port.operand].dtype)
        for port in graph.inputs
    ]
    plan, seen = graph.plan(specs).specs, graph.observable(specs)
    fitting: dict[str, TensorSpec] = {}
    for operand in (operand for operator in graph.execution_order for operand in operator.outputs):
        spec = plan.get(operand.name)
        if isinstance(spec, TensorSpec) and _has_maps(spec) and seen.get(operand.name) == operand.name:
            fitting[operand.name] = spec
    if wanted is None:
        if not fitting:
            raise _not_explainable("no layer of the model has channels of several pixels; use occlusion")
        name = next(reversed(fitting))
    else:
        results = {
            operator.name: operator.outputs[0].name
            for operator in graph.operators
            if operator.outputs and operator.outputs[0].name in fitting
        }
        name = wanted if wanted in fitting else results.get(wanted, "")
        if not name:
            problem = f"{shown(wanted)} is not a layer with channels of several pixels that a run can observe"
            nearest = did_you_mean(wanted, [*fitting, *results])
            raise _invalid("layer", problem, f"one such as {', '.join(list(fitting)[-3:])}{nearest}")
    size = fitting[name].nbytes
    if size > _CAPTURED_BYTES:
        raise too_large("explanation_too_large", f"layer {name!r}", size, _CAPTURED_BYTES, "bytes")
    return name


def _has_maps(spec: TensorSpec) -> bool:
    return len(spec.shape) == 4 and min(spec.shape[2:]) > 1 and spec.dtype.kind == "f"


def _spread(channel: Array, size: tuple[int, ...]) -> Array:
    """Return a channel over the whole input, from 0 to 1; zeros where it is the same everywhere."""
    low, high = channel.min(), channel.max()
    return _resized((channel - low) / (high - low if high > low else 1), size)


def _resized(plane: Array, size: tuple[int, ...]) -> Array:
    from PIL import Image  # noqa: PLC0415  # a start needs no Pillow

    rows, columns = size
    picture = Image.fromarray(np.ascontiguousarray(plane, np.float32))
    return np.asarray(picture.resize((columns, rows), Image.Resampling.BILINEAR))


def _leave_words_out(scorer: _Scorer, text: str, limits: Limits) -> tuple[Word, ...]:
    """Return by how much the score falls without each word of a text."""
    words = list(_WORD.finditer(text))
    if len(words) < 2:
        raise _not_explainable("the text has fewer than two words; none can be left out")
    if len(words) > MAX_RUNS:
        raise too_large("explanation_too_large", "the text", len(words), MAX_RUNS, "words")
    graph, config = scorer.model.graph, scorer.model.config
    scores: list[float] = []
    for start in range(0, len(words), scorer.batch):
        some = words[start : start + scorer.batch]
        texts = [text[: word.start()] + text[word.end() :].lstrip() for word in some]
        scores += scorer.scores(bind_texts(texts, graph.inputs, config, limits).inputs)
    return tuple(
        Word(word[0], word.start(), word.end(), scorer.score - score)
        for word, score in zip(words, scores, strict=True)
    )


def _choose(found: Sequence[Scored], question: Question) -> int:
    """Return the place of the prediction that is asked for.

    Raises:
        ServiceError: 422 `no_such_prediction`.
    """
    target = question.target
    same = [place for place, one in enumerate(found) if target is None or one.label == target]
    if not same and target is not None:
        same = [place for place, one in enumerate(found) if str(one.index) == target]
    if question.place < len(same):
        return same[question.place]
    of = "" if target is None else f" of {shown(target)}"
    nearest = "" if same or target is None else did_you_mean(target, {one.label for one in found})
    message = (
        f"there are {len(same)} predictions{of}; the one at place {question.place} is asked for{nearest}"
    )
    raise ServiceError(422, "no_such_prediction", message, {"target": target, "predictions": len(same)})


def _overlap(one: Box, other: Box) -> float:
    """Return the intersection over union of two boxes."""
    width = min(one[2], other[2]) - max(one[0], other[0])
    height = min(one[3], other[3]) - max(one[1], other[1])
    shared = max(0.0, width) * max(0.0, height)
    areas = sum((box[2] - box[0]) * (box[3] - box[1]) for box in (one, other))
    return shared / (areas - shared) if areas > shared else 0.0


def _invalid(parameter: str, problem: str, expected: str) -> ServiceError:
    message = f"{parameter}: {problem}; expected {expected}"
    return ServiceError(422, "invalid_parameter", message, {"parameter": parameter, "expected": expected})


def _not_explainable(problem: str) -> ServiceError:
    return ServiceError(
        422, "not_explainable", problem, {"expected": "one picture or text, and a task with scores"}
    )
