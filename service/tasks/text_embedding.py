"""Embeddings of texts: vectors whose products say how alike texts are."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from engine import Array
from service.config.model_config import FILE_NAME, ModelConfigError
from service.config.task_keys import TaskKeys
from service.config.toml_table import TomlTable
from service.errors import ServiceError
from service.tasks.chosen_output import choose_output
from service.tasks.task import Prediction, Task, TaskModel


class TextEmbeddingConfig(TomlTable):
    """How an output becomes vectors.

    Attributes:
        output: operator or operand name of the output; default: the first output.
        pooling: reduction of (batch, tokens, features): the mean over tokens, or the first token; (batch,
            features) is pooled already.
        normalize: whether vectors are normalized to length 1.
    """

    output: str | None = None
    pooling: Literal["mean", "cls"] = "mean"
    normalize: bool = True


@dataclass(frozen=True, slots=True)
class TextVector(Prediction):
    """The vector of a text."""

    embedding: Array  # float32
    tokens: int  # 0 where the request sent ids


class TextEmbedding(Task):
    """The task of models that turn texts into vectors.

    Raises:
        ModelConfigError: the output does not exist or holds no vectors, or the tokenizer cannot be read.
    """

    name = "text-embedding"
    keys = TaskKeys(TextEmbeddingConfig)
    prediction = TextVector
    returns_outputs = False

    def __init__(self, model: TaskModel) -> None:
        super().__init__(model)
        self._options = model.config.task_table(TextEmbeddingConfig)
        self._chosen = choose_output(model.outputs, self._options.output, "text-embedding.output")
        port = model.outputs[self._chosen]
        if port.shape is not None and len(port.shape) not in (2, 3):
            expected = "(batch, features) or (batch, tokens, features)"
            raise ModelConfigError(FILE_NAME, "text-embedding.output", f"shape is {port}", expected)
        if model.config.text is not None:
            model.config.text.check()

    def predict(
        self, outputs: Sequence[Array], images: Sequence[Any], parameters: Mapping[str, Any]
    ) -> Sequence[Sequence[TextVector]]:
        """Return the vector of each text.

        Args:
            outputs: the chosen one is (batch, features) or (batch, tokens, features).
            images: for each text how many tokens its row begins with; empty where the request sent ids, of which all
                count then.
            parameters: none.

        Raises:
            ServiceError: 422 `no_vectors` where the input's size made an output of another shape.
        """
        del parameters
        lengths = [count for count in images if isinstance(count, int)]
        vectors = self._pool(outputs[self._chosen], lengths)
        if self._options.normalize:
            norms = np.sqrt(np.einsum("ij,ij->i", vectors, vectors, dtype=np.float64))
            vectors = (vectors / np.maximum(norms, 1e-12)[:, None]).astype(np.float32)
        counts = lengths or [0] * len(vectors)
        return [[TextVector(vector, count)] for vector, count in zip(vectors, counts, strict=True)]

    def _pool(self, output: Array, lengths: Sequence[int]) -> Array:
        if output.ndim == 2:
            return output.astype(np.float32, copy=False)
        if output.ndim != 3 or output.shape[1] == 0:
            message = f"the output has shape {output.shape}; vectors need (batch, tokens, features)"
            raise ServiceError(422, "no_vectors", message, {"shape": list(output.shape)})
        if self._options.pooling == "cls":
            return output[:, 0].astype(np.float32, copy=False)
        if not lengths:
            return np.asarray(output.mean(axis=1, dtype=np.float64).astype(np.float32))
        rows = zip(output, lengths, strict=True)
        return np.stack([row[:count].mean(axis=0, dtype=np.float64) for row, count in rows]).astype(
            np.float32
        )
