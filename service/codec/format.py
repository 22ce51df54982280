"""The interface of payload formats: the kinds of bodies that requests can have, and some of them responses too."""

import base64
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from re import Pattern
from time import perf_counter_ns
from typing import TYPE_CHECKING, Any, ClassVar

from engine import Array, Port
from service.codec.decoded import Decoded
from service.codec.response import ResponseDocument
from service.config.limits import Limits
from service.config.model_config import ModelConfig

if TYPE_CHECKING:
    from PIL import Image

Clock = Callable[[], int]
JsonSchema = Mapping[str, Any]
"""A JSON schema, as OpenAPI has it."""

BINARY_SCHEMA: JsonSchema = {"type": "string", "format": "binary"}


@dataclass(frozen=True, slots=True)
class RequestBody:
    """A request's body, and the model that it is decoded for.

    Attributes:
        data: the whole body, never empty.
        ports: the graph's inputs, as `graph.inputs` gives them.
        config: the model's configuration.
        limits: upper bounds on the request's size.
        parameters: those of the `Content-Type`, by their names in lower case.
        dynamic_batch: whether the first dimension of the inputs may have any extent, even if the file fixes it.
    """

    data: bytes
    ports: Sequence[Port]
    config: ModelConfig
    limits: Limits
    parameters: Mapping[str, str] = field(default_factory=dict)
    dynamic_batch: bool = False

    @property
    def charset(self) -> str | None:
        """The body's charset; None if the `Content-Type` names none."""
        return self.parameters.get("charset")


@dataclass(frozen=True, slots=True)
class Sample:
    """A valid request for a model, from which formats make examples.

    Attributes:
        image: an image of the size that the model's only input takes; None if the model takes no images.
        arrays: one for each input, by operator name; empty if it is not known on what shapes the model runs.
        text: a text; None if the model takes no texts.
    """

    image: "Image.Image | None"
    arrays: Mapping[str, Array]
    text: str | None = None


@dataclass(frozen=True, slots=True)
class Example:
    """An example of a body.

    Attributes:
        media_type: which media type of its format it is for.
        title: what it shows; unique within the media type.
        value: the body as OpenAPI shows it: text and JSON as they are, bytes in base64.
        curl: the options of curl that send such a body.
    """

    media_type: str
    title: str
    value: Any
    curl: str


class Format(ABC):
    """A payload format. One instance serves all requests, in several threads at once.

    Attributes:
        name: its key in the registry.
        media_types: the media types that it is described and offered under.
        aliases: other media types that are taken for it.
        signatures: patterns of a body's first bytes; they show the format where the `Content-Type` does not.
    """

    name: ClassVar[str]
    media_types: ClassVar[tuple[str, ...]]
    aliases: ClassVar[tuple[str, ...]] = ()
    signatures: ClassVar[tuple[Pattern[bytes], ...]] = ()

    def matches(self, body: bytes) -> bool:
        """Return whether a body begins as one of this format."""
        return any(signature.match(body) for signature in self.signatures)

    @abstractmethod
    def decode(self, body: RequestBody) -> Decoded:
        """Return the inputs of the graph, and the options that the body holds beside them.

        Raises:
            ServiceError: 400, 413, 415 or 422; never anything else, whatever the bytes.
        """

    @abstractmethod
    def schema(self) -> JsonSchema:
        """Return the OpenAPI schema of a request's body."""

    def examples(self, sample: Sample) -> Iterator[Example]:
        """Yield bodies that hold `sample`; none if the format cannot hold it."""
        del sample
        yield from ()


class ResponseFormat(Format):
    """A payload format that responses can have as well."""

    @abstractmethod
    def encode(
        self,
        response: ResponseDocument,
        received_ns: int,
        clock: Clock = perf_counter_ns,
        limits: Limits | None = None,
    ) -> Sequence[bytes | memoryview]:
        """Serialise a response, and fill in `timing.encode_ms` and `timing.total_ms`.

        Args:
            response: what `build_response` gave.
            received_ns: `perf_counter_ns` of the moment when the request was complete.
            clock: for tests.
            limits: how large the response may be; None for any size.

        Returns:
            The response's body, in pieces that are sent one after the other.

        Raises:
            ServiceError: 413 `response_too_large`.
        """

    def response_schema(self) -> JsonSchema:
        """Return the OpenAPI schema of a response's body."""
        return BINARY_SCHEMA


def curl_file(media_type: str, name: str) -> str:
    """Return the options of curl that send a file as a body."""
    return f"-H 'Content-Type: {media_type}' --data-binary @{name}"


def base64_text(data: bytes) -> str:
    """Return bytes as OpenAPI shows them in an example."""
    return base64.b64encode(data).decode()
