"""What every surface knows of an inference request from its head, before its body has arrived."""

from typing import Protocol

from service.repository.loaded_model import LoadedModel
from service.scheduling.answer import Answer
from service.scheduling.call import Call


class InferenceHead(Protocol):
    """An inference request whose body has not arrived yet."""

    @property
    def model(self) -> LoadedModel:
        """The model that the request names."""

    @property
    def takes_encoded_body(self) -> bool:
        """Whether the body may have a content coding, which `call` then undoes."""

    @property
    def padding(self) -> int:
        """How many zero bytes to put before the body so that the arrays in it are aligned."""

    def is_heavy(self, size: int) -> bool:
        """Return whether to make the call of a body of `size` bytes is too much work for the event loop."""

    def call(self, body: bytes, received_ns: int) -> Call[Answer]:
        """Return the call.

        Args:
            body: the whole body, with the padding in front. The call drops it once it is decoded.
            received_ns: `perf_counter_ns` of the moment when it was complete.

        Raises:
            ServiceError: the body is not what the surface takes, as far as that can be seen before it is decoded.
        """
