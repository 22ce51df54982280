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
from base64 import b64encode
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from engine import Array, RuntimeGraph, StopSignal, TensorSpec, TraceLevel
from service.codec import Decoded, describe_predictions
from service.codec.texts import bind_texts
from service.config.limits import Limits, too_large
from service.errors import ServiceError, did_you_mean, shown
from service.images.geometry import ImageGeometry
from service.infer.rendering import render_heatmap
from service.inspection.explanation_schemas import ExplanationView, Question, WordView
from service.repository.loaded_model import LoadedModel
from service.repository.rows import count_rows, run_rows
from service.tasks.boxes import Box
from service.tasks.classification import ClassPrediction
from service.tasks.detection import Detected

Scored = ClassPrediction | Detected
MAX_RUNS = 1024
"""Maximum changed inputs of an explanation."""
MAX_SIDE = 64
"""Maximum rows and columns of a heatmap."""
_CAPTURED_BYTES = 256 << 20
_DECIMALS = 6
"""Those of a heatmap's elements."""


def explain(
    model: LoadedModel, decoded: Decoded, question: Question, limits: Limits, stop: StopSignal
) -> ExplanationView:
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
    method = question.method or ("words" if decoded.texts else "occlusion")
    if (method == "words") != bool(decoded.texts):
        what = "is for texts" if method == "words" else "is for pictures"
        raise _invalid("method", f"{method!r} {what}; the request has another input", "another method")
    scorer = _Scorer(model, decoded, question, stop)
    found: dict[str, Any] = {}
    if method == "words":
        found["words"] = _leave_words_out(scorer, decoded.texts[0], limits)
    else:
        image = _Image(scorer, decoded)
        if method == "score-cam":
            found["layer"], heatmap = _score_cam(scorer, image, question)
        else:
            heatmap = _occlude(scorer, image, question.grid)
        found["region"] = image.region
        found["heatmap"] = heatmap.astype(np.float64).round(_DECIMALS).tolist()
        if decoded.pictures and model.config.image:
            overlay = render_heatmap(decoded.pictures[0], heatmap, image.region, model.config.image, limits)
            found["overlay"] = b64encode(overlay).decode()
    target = describe_predictions([[scorer.target]])[0][0]
    return ExplanationView(
        model=model.name, version=model.version, method=method, target=target, runs=scorer.runs, **found
    )


class _Scorer:
    """The score of one prediction, on the input and on changed ones.

    Attributes:
        target: the prediction, in coordinates of the picture.
        score: its score.
        runs: inputs that the model was run on.
        batch: maximum inputs of a run.
    """

    def __init__(self, model: LoadedModel, decoded: Decoded, question: Question, stop: StopSignal) -> None:
        self.model, self.inputs, self.stop, self.runs = model, decoded.inputs, stop, 0
        self.batch = max(1, model.batching.max_batch_size)
        if model.steps:
            names = ", ".join(step.model.name for step in model.steps)
            problem = f"model {model.name!r} is a pipeline; explain the models of its steps: {names}"
            raise _not_explainable(problem)
        if model.task.all_scores is None:
            problem = f"the task {model.task.name!r} of model {model.name!r} has predictions without scores"
            raise _not_explainable(problem)
        rows = count_rows(decoded.inputs)
        if rows != 1:
            raise _not_explainable(f"the request has {rows} items; send one at a time")
        outputs = self._run(decoded.inputs, 1)
        found = self._predict(outputs, ())[0]
        chosen = _choose(found, question)
        self._target, self.score = found[chosen], found[chosen].probability
        places = tuple(picture.geometry for picture in decoded.pictures)
        self.target = self._predict(outputs, places)[0][chosen]

    def scores(self, inputs: Mapping[str, Array]) -> list[float]:
        """Return the score on each row of changed inputs.

        A box counts by how much it overlaps the one that is explained (as in D-RISE, Petsiuk et al., 2021).
        """
        target, found = self._target, self._predict(self._run(inputs, count_rows(inputs)), ())
        same = ([one for one in item if one.index == target.index] for item in found)
        return [max((one.probability * _overlap(one, target) for one in item), default=0.0) for item in same]

    def _run(self, inputs: Mapping[str, Array], rows: int) -> Sequence[Array]:
        self.runs += rows
        return run_rows(self.model, inputs, rows, trace=TraceLevel.OFF, stop=self.stop).outputs

    def _predict(
        self, outputs: Sequence[Array], places: Sequence[ImageGeometry]
    ) -> Sequence[Sequence[Scored]]:
        # `all_scores` says that there are some, and that they have scores
        return self.model.task.predict(outputs, places, self.model.task.all_scores or {})  # type: ignore[return-value]


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
            problem = "the model does not take one picture, (batch, channels, height, width) of floats"
            raise _not_explainable(problem)
        size = np.array(self.array.shape[:1:-1])  # width, height
        low, high = corners = np.array(((0, 0), size))
        if decoded.pictures:
            geometry = decoded.pictures[0].geometry
            end = np.add(geometry.offset, np.array((geometry.width, geometry.height)) * geometry.scale)
            low = np.clip(np.round(geometry.offset), 0, size - 1).astype(int)
            high = np.clip(np.round(end), low + 1, size).astype(int)
            corners = geometry.to_picture(np.array((low, high), np.float64))
        self.region: Box = tuple(corners.astype(float).ravel().tolist())
        self.part = slice(low[1], high[1]), slice(low[0], high[0])
        shown = self.array[:, :, *self.part]
        self.filling = np.median(shown, (2, 3), keepdims=True).astype(self.array.dtype)


def _occlude(scorer: _Scorer, image: _Image, grid: int) -> Array:
    """Return by how much the score falls where a part is hidden, the mean of the windows that hide it.

    Windows are two parts wide and high, one at each part. The heatmap has half parts.
    """
    grid = max(1, min(grid, *((side.stop - side.start) // 2 for side in image.part)))
    y, x = (
        side.start + np.linspace(0, side.stop - side.start, 2 * grid + 1).round().astype(int)
        for side in image.part
    )
    spans = [slice(max(0, 2 * part - 1), min(2 * part + 3, 2 * grid)) for part in range(grid)]
    windows = [(rows, columns) for rows in spans for columns in spans]
    fall, times = np.zeros((2, 2 * grid, 2 * grid))
    for start in range(0, len(windows), scorer.batch):
        some = windows[start : start + scorer.batch]
        changed = np.repeat(image.array, len(some), axis=0)
        for one, (rows, columns) in zip(changed, some, strict=True):
            one[:, y[rows.start] : y[rows.stop], x[columns.start] : x[columns.stop]] = image.filling[0]
        for window, score in zip(some, scorer.scores({image.name: changed}), strict=True):
            fall[window] += scorer.score - score
            times[window] += 1
    return fall / times


def _score_cam(scorer: _Scorer, image: _Image, question: Question) -> tuple[str, Array]:
    """Return the operand whose channels are used, and the heatmap, from 0 to 1.

    A channel weighs as much as the score that the picture keeps where the channel is active, beyond that of a picture
    of which all is hidden. Weights are not put through a softmax, which hides small differences.
    """
    name = _find_layer(scorer.model.graph, image.array, question.layer)
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


def _find_layer(graph: RuntimeGraph, x: Array, wanted: str | None) -> str:
    """Return an operand with channels of several pixels that a run can observe: the last, if none is wanted.

    Raises:
        ServiceError: 422 `invalid_parameter` or `not_explainable`, 413 `explanation_too_large`.
    """
    specs = [TensorSpec(x.shape, x.dtype)]
    seen = graph.observable(specs)
    fitting = {
        name: spec
        for name, spec in graph.plan(specs).specs.items()
        if isinstance(spec, TensorSpec) and spec.dtype.kind == "f" and seen.get(name) == name
        if len(spec.shape) == 4 and min(spec.shape[2:]) > 1
    }
    operators = {
        operator.name: operator.outputs[0].name
        for operator in graph.operators
        if operator.outputs and operator.outputs[0].name in fitting
    }
    if wanted is None:
        if not fitting:
            raise _not_explainable("no layer of the model has channels of several pixels; use occlusion")
        wanted = next(reversed(fitting))
    name = wanted if wanted in fitting else operators.get(wanted, "")
    if not name:
        problem = f"{shown(wanted)} is not a layer with channels of several pixels that a run can observe"
        nearest = did_you_mean(wanted, [*fitting, *operators])
        raise _invalid("layer", problem, f"one such as {', '.join(list(fitting)[-3:])}{nearest}")
    size = fitting[name].nbytes
    if size > _CAPTURED_BYTES:
        raise too_large("explanation_too_large", f"layer {name!r}", size, _CAPTURED_BYTES, "bytes")
    return name


def _spread(channel: Array, size: tuple[int, ...]) -> Array:
    """Return a channel over the whole input, from 0 to 1; zeros where it is the same everywhere."""
    low, high = channel.min(), channel.max()
    return _resized((channel - low) / (high - low if high > low else 1), size)


def _resized(plane: Array, size: tuple[int, ...]) -> Array:
    from PIL import Image  # noqa: PLC0415  # a start needs no Pillow

    rows, columns = size
    picture = Image.fromarray(np.ascontiguousarray(plane, np.float32))
    return np.asarray(picture.resize((columns, rows), Image.Resampling.BILINEAR))


def _leave_words_out(scorer: _Scorer, text: str, limits: Limits) -> list[WordView]:
    """Return by how much the score falls without each word of a text."""
    words = list(re.finditer(r"\S+", text))
    if len(words) < 2:
        raise _not_explainable("the text has fewer than two words; none can be left out")
    if len(words) > MAX_RUNS:
        raise too_large("explanation_too_large", "the text", len(words), MAX_RUNS, "words")
    graph, config = scorer.model.graph, scorer.model.config
    texts = [text[: word.start()] + text[word.end() :].lstrip() for word in words]
    scores: list[float] = []
    for start in range(0, len(texts), scorer.batch):
        some = texts[start : start + scorer.batch]
        scores += scorer.scores(bind_texts(some, graph.inputs, config, limits).inputs)
    return [
        WordView(text=word[0], start=word.start(), end=word.end(), importance=scorer.score - score)
        for word, score in zip(words, scores, strict=True)
    ]


def _choose(found: Sequence[Scored], question: Question) -> int:
    """Return the place of the prediction that is asked for.

    Raises:
        ServiceError: 422 `no_such_prediction`.
    """
    target = question.target
    same = [place for place, one in enumerate(found) if target in (None, one.label)]
    if not same:
        same = [place for place, one in enumerate(found) if str(one.index) == target]
    if question.place < len(same):
        return same[question.place]
    message = f"there are {len(same)} predictions" + ("" if target is None else f" of {shown(target)}")
    message += f"; the one at place {question.place} is asked for"
    if target is not None and not same:
        message += did_you_mean(target, {one.label for one in found})
    raise ServiceError(422, "no_such_prediction", message, {"target": target, "predictions": len(same)})


def _overlap(one: Scored, other: Scored) -> float:
    """Return the intersection over union of two boxes; 1 for predictions that have none."""
    if not isinstance(one, Detected) or not isinstance(other, Detected):
        return 1.0
    first, second = np.array(one.box), np.array(other.box)
    shared = np.maximum(np.minimum(first, second)[2:] - np.maximum(first, second)[:2], 0).prod()
    union = sum((box[2:] - box[:2]).prod() for box in (first, second)) - shared
    return float(shared / union) if union > 0 else 0.0


def _invalid(parameter: str, problem: str, expected: str) -> ServiceError:
    message = f"{parameter}: {problem}; expected {expected}"
    return ServiceError(422, "invalid_parameter", message, {"parameter": parameter, "expected": expected})


def _not_explainable(problem: str) -> ServiceError:
    expected = "one picture or text, and a task with scores"
    return ServiceError(422, "not_explainable", problem, {"expected": expected})
