"""One request to `POST /v1/embeddings` and its response, in the form of OpenAI's API."""

import base64
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import numpy as np
import orjson
from pydantic import BaseModel, Field, ValidationError

from engine import RunResult, TraceLevel
from service.codec import JSON_TYPE, Decoded, Options
from service.codec.response import EncodedResponse
from service.codec.texts import bind_texts
from service.config.limits import Limits
from service.config.wording import problem_of
from service.errors import ServiceError
from service.repository.loaded_model import LoadedModel
from service.tasks.text_embedding import TextEmbedding, TextVector

MAX_BYTES = 4 << 20
"""Longest body: it is parsed before it is known which model it is for."""
_OPTIONS = Options(trace=TraceLevel.OFF, capture=())


class EmbeddingRequest(BaseModel):
    """The body of a request."""

    # an error for each of a million items would take seconds
    input: str | Annotated[list[str], Field(fail_fast=True)] = Field(description="a text, or several")
    model: str | None = Field(default=None, description="name of a model of the task text-embedding")
    encoding_format: Literal["float", "base64"] = Field(
        default="float", description="numbers, or float32 in base64, lowest byte first"
    )
    dimensions: int | None = Field(default=None, ge=1, description="the model's own number, or nothing")
    user: str | None = Field(default=None, description="is not looked at")

    @property
    def texts(self) -> list[str]:
        """The texts, one at least."""
        return [self.input] if isinstance(self.input, str) else self.input


class EmbeddingView(BaseModel):
    """The vector of a text."""

    object: Literal["embedding"]
    index: int
    embedding: list[float] | str


class EmbeddingUsage(BaseModel):
    """How many tokens the texts had."""

    prompt_tokens: int
    total_tokens: int


class EmbeddingResponse(BaseModel):
    """The response to a request."""

    object: Literal["list"]
    data: list[EmbeddingView]
    model: str
    usage: EmbeddingUsage


def parse_embedding_request(body: bytes) -> EmbeddingRequest:
    """Read a body.

    Raises:
        ServiceError: 400 `invalid_json`, 413 `body_too_large`, 422 `invalid_parameter`.
    """
    if len(body) > MAX_BYTES:
        message = (
            f"the body has {len(body)} bytes; the maximum is {MAX_BYTES} here: send fewer texts at a time"
        )
        raise ServiceError(413, "body_too_large", message, {"limit": MAX_BYTES, "unit": "bytes"})
    try:
        return EmbeddingRequest.model_validate(orjson.loads(body))
    except orjson.JSONDecodeError as error:
        details = {"line": error.lineno, "column": error.colno}
        raise ServiceError(400, "invalid_json", f"the body is not JSON: {error}", details) from error
    except ValidationError as error:
        fault = error.errors(include_url=False)[0]
        place = str(fault["loc"][0]) if fault["loc"] else "the body"
        problem = f"{place}: {problem_of(fault)}; expected a text or a list of texts as input"
        raise ServiceError(422, "invalid_parameter", problem, {"name": place}) from error


@dataclass(slots=True)
class EmbeddingExchange:
    """A request for the vectors of texts. A worker calls `decode`, then `encode`.

    Attributes:
        model: the model.
        request: what was asked for.
        limits: how much it may ask for.
        token_counts: how many tokens each text has, once it is decoded.
    """

    model: LoadedModel
    request: EmbeddingRequest
    limits: Limits
    token_counts: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        """Check that the model makes vectors of texts.

        Raises:
            ServiceError: 422 `not_a_text_model`.
        """
        if not isinstance(self.model.task, TextEmbedding) or self.model.config.text is None:
            message = (
                f"the model {self.model.name!r} makes no vectors of texts; expected one whose model.toml has "
                'task = "text-embedding" and a [text] table'
            )
            raise ServiceError(422, "not_a_text_model", message, {"model": self.model.name})

    def decode(self) -> Decoded:
        """Return the inputs.

        Raises:
            ServiceError: the texts are not what the model can take.
        """
        graph, config = self.model.graph, self.model.config
        decoded = bind_texts(self.request.texts, graph.inputs, config, self.limits, _OPTIONS)
        self.token_counts = decoded.token_counts
        return decoded

    def encode(self, result: RunResult) -> EncodedResponse:
        """Return the response.

        Raises:
            ServiceError: 422 where the outputs are no vectors, or have another number of dimensions than asked for.
        """
        counts: Sequence[Any] = self.token_counts
        predicted = self.model.task.predict(result.outputs, counts, {}) or ()
        vectors = [one for item in predicted for one in item if isinstance(one, TextVector)]
        width = vectors[0].embedding.size if vectors else 0
        wanted = self.request.dimensions
        if wanted is not None and wanted != width:
            message = (
                f"dimensions is {wanted}; the model's vectors have {width}: ask for these, or leave it out"
            )
            raise ServiceError(422, "invalid_parameter", message, {"name": "dimensions", "expected": width})
        tokens = sum(vector.tokens for vector in vectors)
        document = {
            "object": "list",
            "data": [
                {"object": "embedding", "index": index, "embedding": self._spelled(vector.embedding)}
                for index, vector in enumerate(vectors)
            ],
            "model": self.model.name,
            "usage": {"prompt_tokens": tokens, "total_tokens": tokens},
        }
        return EncodedResponse((orjson.dumps(document, option=orjson.OPT_SERIALIZE_NUMPY),), JSON_TYPE)

    def _spelled(self, vector: Any) -> Any:
        plain = np.ascontiguousarray(vector, "<f4")
        if self.request.encoding_format == "base64":
            return base64.b64encode(plain.tobytes()).decode()
        return plain
