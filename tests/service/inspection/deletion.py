"""The deletion curve of explanations (Petsiuk et al., "RISE", 2018)."""

from pathlib import Path
from time import monotonic
from typing import Any

import numpy as np

from engine import Array, StopSignal
from service.codec import Decoded, decode
from service.config.limits import Limits
from service.inspection.explanation import explain
from service.inspection.explanation_schemas import ExplanationView, Question
from service.repository.loaded_model import LoadedModel


def asked(model: LoadedModel, decoded: Decoded, **question: Any) -> ExplanationView:
    return explain(model, decoded, Question(**question), Limits(), StopSignal(monotonic() + 60))


def relative_area(model: LoadedModel, file: Path, **question: Any) -> float:
    """Return the area under the scores while the most important parts of a picture are hidden first.

    It is relative to the mean area of random orders.
    """
    decoded = decode(
        file.read_bytes(), f"image/{file.suffix[1:]}", model.graph.inputs, model.config, Limits()
    )
    model.graph.forward(decoded.inputs)  # compiles it
    found = asked(model, decoded, **question)
    assert found.heatmap is not None
    blocks = blocked(np.array(found.heatmap))
    rng = np.random.default_rng(0)
    orders = [np.argsort(-blocks.ravel(), kind="stable"), *(rng.permutation(64) for _ in range(2))]
    areas = [area(model, decoded, found.target, order) for order in orders]
    return float(areas[0] / np.mean(areas[1:]))


def blocked(heatmap: Array) -> Array:
    """Return the means of eight times eight blocks."""
    rows, columns = (np.linspace(0, size, 9).round().astype(int) for size in heatmap.shape)
    sums = np.add.reduceat(np.add.reduceat(heatmap, rows[:-1], 0), columns[:-1], 1)
    return np.asarray(sums / np.outer(np.diff(rows), np.diff(columns)))


def area(model: LoadedModel, decoded: Decoded, target: Any, order: Array) -> float:
    """Return the mean score of a prediction while more and more of 64 blocks of the picture are hidden."""
    (name,) = decoded.inputs
    x = decoded.inputs[name].copy()
    place = decoded.pictures[0].geometry
    (left, top), (width, height) = place.offset, np.array((place.width, place.height)) * place.scale
    edges = ((top, height, x.shape[2]), (left, width, x.shape[3]))
    rows, columns = (
        np.linspace(max(0, start), min(side, start + length), 9).round().astype(int)
        for start, length, side in edges
    )
    filling = np.median(x[:, :, rows[0] : rows[-1], columns[0] : columns[-1]], (2, 3))[0]
    scores = []
    for step, block in enumerate(order):
        row, column = divmod(int(block), 8)
        x[0, :, rows[row] : rows[row + 1], columns[column] : columns[column + 1]] = filling[:, None, None]
        if step % 8 == 7:
            found = model.task.predict(model.graph.forward({name: x}), [place], model.task.all_scores or {})
            same: list[Any] = [one for one in (found or [[]])[0] if one.label == target["label"]]  # type: ignore[attr-defined]
            scores.append(max((one.probability * near(one, target) for one in same), default=0.0))
    return float(np.mean(scores))


def near(one: Any, target: Any) -> bool:
    """Whether a box has its middle in the one that is explained; anything else always has."""
    if not hasattr(one, "box"):
        return True
    x, y = (one.box[0] + one.box[2]) / 2, (one.box[1] + one.box[3]) / 2
    left, top, right, bottom = target["box"]
    return bool(left < x < right and top < y < bottom)
