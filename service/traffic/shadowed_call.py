"""Keeps what a call brought and was answered, until a shadow run is made of it."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Generic, TypeVar

from engine import Array, TraceLevel
from service.codec import Decoded
from service.repository.loaded_model import LoadedModel
from service.scheduling.call import Call, RunOutcome

Payload = TypeVar("Payload")


class ShadowedCall(Generic[Payload]):
    """A call whose inputs and outputs are kept, by reference, from its decoding on.

    Args:
        call: the call.

    Attributes:
        model: the version that answers it.
        request_id: id of the request.
        inputs: operand name -> array; None where its run cannot be compared, or before it is decoded.
        outputs: the outputs; empty before they are encoded.
        seconds: how long the run took.
    """

    __slots__ = ("_call", "inputs", "model", "outputs", "request_id", "seconds")

    def __init__(self, call: Call[Payload]) -> None:
        self._call = call
        self.model: LoadedModel = call.model
        self.request_id = call.request_id
        self.inputs: Mapping[str, Array] | None = None
        self.outputs: Sequence[Array] = ()
        self.seconds = 0.0

    def call(self) -> Call[Payload]:
        """Return the call to submit in place of the one that was given; its answer is the same."""
        return replace(self._call, decode=self._decode, encode=self._encode)

    @property
    def byte_count(self) -> int:
        """Bytes of all that is kept."""
        inputs = () if self.inputs is None else self.inputs.values()
        return sum(array.nbytes for array in (*inputs, *self.outputs))

    def _decode(self) -> Decoded:
        decoded = self._call.decode()
        options = decoded.options
        if not options.capture and (options.trace or TraceLevel.OFF) < TraceLevel.STATISTICS:
            self.inputs = decoded.inputs
        return decoded

    def _encode(self, outcome: RunOutcome) -> Payload:
        answer = self._call.encode(outcome)
        self.outputs = outcome.result.outputs
        self.seconds = (outcome.timestamps.forward_end - outcome.timestamps.forward_start) / 1e9
        return answer
