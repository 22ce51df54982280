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
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice, product
from typing import Any

import numpy as np

from engine import Array, RuntimeGraph, StopSignal, TensorSpec, TraceLevel
from service.codec import Decoded, Picture, describe_predictions
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
    if method == "words":
        found: dict[str, Any] = {"words": _leave_words_out(scorer, decoded.texts[0], limits)}
    else:
        image = _Image(decoded.inputs, decoded.pictures)
        layer, heatmap = (_score_cam if method == "score-cam" else _occlude)(scorer, image, question)
        rows = heatmap.astype(np.float64).round(6).tolist()
        found = {"layer": layer, "region": image.region, "heatmap": rows}
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
        runs: inputs that the model was run on.
    """

    def __init__(self, model: LoadedModel, decoded: Decoded, question: Question, stop: StopSignal) -> None:
        self.model, self.inputs, self.stop, self.runs = model, decoded.inputs, stop, 0
        if model.steps:
            names = ", ".join(step.model.name for step in model.steps)
            problem = f"model {model.name!r} is a pipeline; explain the models of its steps: {names}"
            raise _not_explainable(problem)
        if model.task.all_scores is None:
            problem = f"the task {model.task.name!r} of model {model.name!r} has predictions without scores"
            raise _not_explainable(problem)
        if (rows := count_rows(decoded.inputs)) != 1:
            raise _not_explainable(f"the request has {rows} items; send one at a time")
        self._places = [picture.geometry for picture in decoded.pictures]
        self.target = _choose(self._predict(decoded.inputs, 1)[0], question)

    def scores(self, changes: Iterable[Any], bind: Callable[[list[Any]], Mapping[str, Array]]) -> list[float]:
        """Return the score after each of some changes to the input; `bind` returns the inputs after several of them.

        A box counts by how much it overlaps the one that is explained (as in D-RISE, Petsiuk et al., 2021).
        """
        target, rest, scores = self.target, iter(changes), list[float]()
        while some := list(islice(rest, max(1, self.model.batching.max_batch_size))):
            for item in self._predict(bind(some), len(some)):
                same = (one.probability * _overlap(one, target) for one in item if one.index == target.index)
                scores.append(max(same, default=0.0))
        return scores

    def _predict(self, inputs: Mapping[str, Array], rows: int) -> Sequence[Sequence[Scored]]:
        self.runs += rows
        task = self.model.task
        outputs = run_rows(self.model, inputs, rows, trace=TraceLevel.OFF, stop=self.stop).outputs
        # `all_scores` says that there are some, and that they have scores
        return task.predict(outputs, self._places * rows, task.all_scores or {})  # type: ignore[return-value]


class _Image:
    """The input of a model that takes one picture, or a tensor of its form.

    Attributes:
        array: (1, channels, height, width).
        part: rows and columns that show the picture.
        region: the part in pixels of the picture.
    """

    def __init__(self, inputs: Mapping[str, Array], pictures: Sequence[Picture]) -> None:
        ((self._name, self.array), *others) = inputs.items()
        if others or self.array.ndim != 4 or self.array.dtype.kind != "f":
            problem = "the model does not take one picture, (batch, channels, height, width) of floats"
            raise _not_explainable(problem)
        height, width = self.array.shape[2:]
        geometry = pictures[0].geometry if pictures else ImageGeometry(width, height, (1.0, 1.0), (0.0, 0.0))
        size, end = np.array((width, height)), np.array((geometry.width, geometry.height)) * geometry.scale
        low = np.clip(np.round(geometry.offset), 0, size - 1).astype(int)
        high = np.clip(np.round(end + geometry.offset), low + 1, size).astype(int)
        self.region: Box = tuple(geometry.to_picture(np.array((low, high), np.float64)).ravel().tolist())
        self.part = slice(low[1], high[1]), slice(low[0], high[0])
        self._filling = np.median(self.array[:, :, *self.part], (2, 3), keepdims=True)

    def bind(self, masks: list[Array]) -> dict[str, Array]:
        """Return inputs that show what masks show, 1, and hide the rest, 0, by the median of each channel."""
        kept = np.stack(masks)[:, None]
        changed = self.array * kept + self._filling * (1 - kept)
        return {self._name: changed.astype(self.array.dtype, copy=False)}


def _occlude(scorer: _Scorer, image: _Image, question: Question) -> tuple[None, Array]:
    """Return by how much the score falls where a part is hidden, the mean of the windows that hide it; no operand.

    Windows are two parts wide and high, one at each part. The heatmap has half parts.
    """
    grid = max(1, min(question.grid, *((side.stop - side.start) // 2 for side in image.part)))
    parts, halves = np.arange(grid), np.arange(2 * grid)[:, None]
    first, end = np.maximum(2 * parts - 1, 0), np.minimum(2 * parts + 3, 2 * grid)  # in half parts
    edges = [np.linspace(side.start, side.stop, 2 * grid + 1).round().astype(int) for side in image.part]

    def masks() -> Iterator[Array]:
        for window in product(*(map(slice, edge[first], edge[end]) for edge in edges)):
            mask = np.ones(image.array.shape[2:], np.float32)
            mask[window] = 0
            yield mask

    falls = scorer.target.probability - np.reshape(scorer.scores(masks(), image.bind), (grid, grid))
    covers = (first <= halves) & (halves < end)  # (half parts, windows)
    mean = covers / covers.sum(1, keepdims=True)
    return None, mean @ falls @ mean.T


def _score_cam(scorer: _Scorer, image: _Image, question: Question) -> tuple[str, Array]:
    """Return the operand whose channels are used, and the heatmap, from 0 to 1.

    A channel weighs as much as the score that the picture keeps where the channel is active, beyond that of a picture
    of which all is hidden. Weights are not put through a softmax, which hides small differences.
    """
    graph, size = scorer.model.graph, image.array.shape[2:]
    name = _find_layer(graph, image.array, question.layer)
    captured = graph.run(scorer.inputs, capture=[name], stop=scorer.stop).captured[name]
    channels = np.asarray(captured, np.float32)[0]
    order = np.argsort(-channels.var((1, 2)), kind="stable")[: question.maps]
    masks = np.concatenate([np.zeros_like(channels[:1]), channels[order]])  # the first one hides all
    masks -= masks.min((1, 2), keepdims=True)
    masks /= masks.max((1, 2), keepdims=True, initial=np.finfo(np.float32).tiny)
    scores = np.array(scorer.scores((_resized(mask, size) for mask in masks), image.bind))
    weights = np.maximum(scores - scores[0], 0)
    part = _resized(np.tensordot(weights, masks, 1), size)[image.part]
    part = _resized(part, tuple(min(side, MAX_SIDE) for side in part.shape))
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
        name: spec.nbytes
        for name, spec in graph.plan(specs).specs.items()
        if isinstance(spec, TensorSpec) and spec.dtype.kind == "f" and seen.get(name) == name
        if len(spec.shape) == 4 and min(spec.shape[2:]) > 1
    }
    if wanted is None:
        if not fitting:
            raise _not_explainable("no layer of the model has channels of several pixels; use occlusion")
        wanted = next(reversed(fitting))
    names = {name: name for name in fitting}
    for operator in graph.operators:
        if operator.outputs and operator.outputs[0].name in fitting:
            names.setdefault(operator.name, operator.outputs[0].name)
    if wanted not in names:
        problem = f"{shown(wanted)} is not a layer with channels of several pixels that a run can observe"
        nearest = did_you_mean(wanted, names)
        raise _invalid("layer", problem, f"one such as {', '.join(list(fitting)[-3:])}{nearest}")
    name = names[wanted]
    if fitting[name] > _CAPTURED_BYTES:
        raise too_large("explanation_too_large", f"layer {name!r}", fitting[name], _CAPTURED_BYTES, "bytes")
    return name


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
    scores = scorer.scores(texts, lambda some: bind_texts(some, graph.inputs, config, limits).inputs)
    whole = scorer.target.probability
    return [
        WordView(text=word[0], start=word.start(), end=word.end(), importance=whole - score)
        for word, score in zip(words, scores, strict=True)
    ]


def _choose(found: Sequence[Scored], question: Question) -> Scored:
    """Return the prediction that is asked for.

    Raises:
        ServiceError: 422 `no_such_prediction`.
    """
    target = question.target
    same = [one for one in found if target in (None, one.label)]
    same = same or [one for one in found if str(one.index) == target]
    if question.place < len(same):
        return same[question.place]
    of = "" if target is None else f" of {shown(target)}"
    hint = "" if target is None or same else did_you_mean(target, {one.label for one in found})
    message = f"there are {len(same)} predictions{of}; the one at place {question.place} is asked for{hint}"
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
