"""Embedding: a vector for each item, whose angles to others say how alike they are."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field

from engine import Array, Port
from service.config.model_config import FILE_NAME, ModelConfigError
from service.config.task_keys import TaskKeys
from service.config.toml_table import TomlTable
from service.errors import ServiceError
from service.images.geometry import ImageGeometry
from service.tasks.chosen_output import choose_output
from service.tasks.task import Prediction, Task, TaskModel, TaskParameters

Pooling = Literal["none", "mean", "max", "first"]
MAX_COMPARED = 64
"""Maximum items of a request that are compared with each other."""


class EmbeddingConfig(TomlTable):
    """How an output becomes vectors.

    Attributes:
        output: operator or operand name of the output; default: the first output.
        pooling: `none`: the output is (batch, length), further dimensions are 1; `mean`, `max`: over all
            positions; `first`: the first position, such as a class token. Positions are rows and columns
            of (batch, length, rows, columns), or the first of two dimensions in (batch, positions,
            length).
        normalise: whether vectors are normalized to length 1.
    """

    output: str | None = None
    pooling: Pooling = "none"
    normalise: bool = True


class EmbeddingParameters(TaskParameters):
    """What requests may set for an embedding."""

    normalise: bool | None = Field(default=None, description="whether vectors have length 1")


@dataclass(frozen=True, slots=True)
class Embedding(Prediction):
    """A vector, and its cosines with those of the request."""

    vector: tuple[float, ...]
    norm: Annotated[float, Field(description="its length before it was normalised")]
    # NaN for a vector of length 0
    cosines: Annotated[
        tuple[float, ...] | None,
        Field(description="cosines with the vectors of all items; null for one item, or very many"),
    ]


class VectorEmbedding(Task):
    """The task of models that make vectors.

    Raises:
        ModelConfigError: the chosen output does not exist, or has no shape that becomes vectors.
    """

    name = "embedding"
    keys = TaskKeys(EmbeddingConfig)
    prediction = Embedding
    parameters = EmbeddingParameters
    returns_outputs = False

    def __init__(self, model: TaskModel) -> None:
        super().__init__(model)
        self._options = model.config.task_table(EmbeddingConfig)
        self._chosen = choose_output(model.outputs, self._options.output, "embedding.output")
        self._check(model.outputs[self._chosen])

    def predict(
        self, outputs: Sequence[Array], images: Sequence[ImageGeometry], parameters: Mapping[str, Any]
    ) -> Sequence[Sequence[Embedding]]:
        """Return the vector of each item, and its cosines with those of the others.

        Args:
            outputs: the chosen one holds vectors, or vectors of positions.
            images: are not looked at.
            parameters: `normalise`; by default as configured.

        Raises:
            ServiceError: 422 `no_vector` where the input's size made an output of another shape.
        """
        del images
        vectors = pool(outputs[self._chosen], self._options.pooling)
        with np.errstate(invalid="ignore", divide="ignore"):
            norms = np.linalg.norm(vectors, axis=1)
            units = vectors / norms[:, None]
            count = len(vectors)
            cosines = (units @ units.T).clip(-1, 1).tolist() if 1 < count <= MAX_COMPARED else [None] * count
        asked = parameters.get("normalise")
        shown = units if (self._options.normalise if asked is None else asked) else vectors
        return [
            [Embedding(tuple(vector), norm, None if row is None else tuple(row))]
            for vector, norm, row in zip(shown.tolist(), norms.tolist(), cosines, strict=True)
        ]

    def remark(self, predictions: Sequence[Sequence[Prediction]]) -> str | None:
        """Name the items whose vectors have no direction."""
        norms = [one.norm for item in predictions for one in item if isinstance(one, Embedding)]
        items = [place for place, norm in enumerate(norms) if not 0 < norm < np.inf]
        if not items:
            return None
        listed = ", ".join(map(str, items))
        return f"the vector of item {listed} of the batch has no direction: its numbers are all 0, or not all finite"

    def _check(self, port: Port) -> None:
        if port.shape is not None and not _is_poolable(port.shape, self._options.pooling):
            raise ModelConfigError(
                FILE_NAME, "embedding.pooling", f"shape is {port}", _EXPECTED[self._options.pooling]
            )


_POSITIONS = "(batch, positions, length) or (batch, length, rows, columns)"
_EXPECTED: dict[Pooling, str] = {
    "none": "(batch, length), or a pooling",
    "mean": _POSITIONS,
    "max": _POSITIONS,
    "first": _POSITIONS,
}


def pool(output: Array, pooling: Pooling) -> Array:
    """Return the vectors of an output: (batch, length), in double precision.

    Raises:
        ServiceError: 422 `no_vector`.
    """
    if not _is_poolable(output.shape, pooling) or output.size == 0 or output.dtype.kind == "c":
        message = f"the output has shape {output.shape}; vectors need {_EXPECTED[pooling]}"
        raise ServiceError(422, "no_vector", message, {"shape": list(output.shape)})
    values = output.astype(np.float64)
    if pooling == "none":
        return values.reshape(len(values), -1)
    # (batch, positions, length)
    placed = values if values.ndim == 3 else values.reshape(*values.shape[:2], -1).transpose(0, 2, 1)
    if pooling == "first":
        return placed[:, 0]
    return np.asarray(placed.mean(axis=1) if pooling == "mean" else placed.max(axis=1))


def _is_poolable(shape: Sequence[int | None], pooling: Pooling) -> bool:
    if pooling == "none":
        return len(shape) >= 2 and all(extent in (1, None) for extent in shape[2:])
    return len(shape) in (3, 4)
