"""A request, the model that it is for, and what its response may be."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from io import BytesIO
from itertools import accumulate, pairwise
from typing import Any, TypeAlias

import numpy as np
import orjson

from engine.dtypes import Array
from service.scheduling.job import CallStatus
from service.v2.datatypes import DTYPES
from tests.soak.wire import SoakReply, SoakRequest

Identity: TypeAlias = tuple[str, str]
"""Name and version of a model."""
Reader: TypeAlias = Callable[[SoakReply], list[Array]]
"""Takes the outputs out of a response."""

TOLERANCE = 1e-5
"""Maximum difference from the serial response, relative to its largest magnitude."""
TRY_AGAIN = {"queue_full"}
"""Codes of 503 that any request for a model may meet."""
_RUN_FAILED = ("layer_failed", "input_mismatch")


@dataclass(frozen=True, slots=True)
class LoadCase:
    """A kind of request.

    Attributes:
        name: for people.
        request: what is sent.
        model: the loaded model that counts it; None where none does.
        status: of its response, where there is room.
        reads: takes the outputs out of its response; None where it has none to compare.
        codes: what errors it may meet beside its status: they are 503 or 504.
        expected: its outputs when it was asked alone; empty until then.
    """

    name: str
    request: SoakRequest
    model: Identity | None = None
    status: int = 200
    reads: Reader | None = None
    codes: frozenset[str] = frozenset(TRY_AGAIN)
    expected: Sequence[Array] = field(default_factory=tuple)

    def fault(self, reply: SoakReply) -> str | None:
        """Report what is wrong with a response; None where it is as it should be."""
        if reply.status in (503, 504) and reply.status != self.status:
            return self._refusal_fault(reply)
        if reply.status != self.status:
            return f"{self.name}: status {reply.status}, not {self.status}: {reply.body[:300]!r}"
        if self.reads is None or not self.expected:
            return None
        return self.difference(self.reads(reply))

    def difference(self, outputs: Sequence[Array]) -> str | None:
        """Report how outputs differ from those of the same request alone; None where they do not."""
        for output, expected in zip(outputs, self.expected, strict=True):
            if output.shape != expected.shape:
                return f"{self.name}: shape {output.shape}, not {expected.shape}"
            allowed = TOLERANCE * np.abs(expected).max(initial=0)
            if not np.allclose(output, expected, rtol=0, atol=allowed):
                return f"{self.name}: differs from the serial response by {np.abs(output - expected).max()}"
        return None

    def alone(self, reply: SoakReply) -> "LoadCase":
        """Return the case with the outputs of a response that it got alone.

        Raises:
            ValueError: the response is not what it should be.
        """
        problem = self.fault(reply)
        if problem is not None or reply.status != self.status:
            raise ValueError(problem or f"{self.name}: refused: {reply.body[:300]!r}")
        return self if self.reads is None else replace(self, expected=self.reads(reply))

    def _refusal_fault(self, reply: SoakReply) -> str | None:
        code = reply.code
        if code not in self.codes:
            return f"{self.name}: {reply.status} {code}: {reply.body[:300]!r}"
        if code == "queue_full" and int(reply.headers.get("retry-after", "0")) < 1:
            return f"{self.name}: {code} without Retry-After"
        return None


def ending_of(reply: SoakReply) -> tuple[CallStatus, ...]:
    """Return how the call of a response may have ended, as far as its client can show."""
    if reply.status == 200:
        return (CallStatus.SUCCESS,)
    if reply.status == 503:
        return (CallStatus.REJECTED,)
    if reply.status == 504:
        return (CallStatus.REJECTED, CallStatus.CANCELED)
    return (CallStatus.BACKEND,) if reply.code in _RUN_FAILED else (CallStatus.OTHER,)


def infer_json(reply: SoakReply) -> list[Array]:
    """Read `/infer`'s JSON."""
    return [np.array(output["data"]) for output in orjson.loads(reply.body)["outputs"]]


def infer_npz(reply: SoakReply) -> list[Array]:
    """Read `/infer`'s npz."""
    with np.load(BytesIO(reply.body)) as arrays:
        return [arrays[name] for name in arrays.files if name != "meta"]


def v2_outputs(reply: SoakReply) -> list[Array]:
    """Read the protocol's outputs, JSON or binary."""
    length = int(reply.headers.get("inference-header-content-length", len(reply.body)))
    outputs: list[dict[str, Any]] = orjson.loads(reply.body[:length])["outputs"]
    sizes = [output.get("parameters", {}).get("binary_data_size", 0) for output in outputs]
    places = pairwise(accumulate(sizes, initial=length))
    return [
        _v2_array(output, reply.body[start:stop])
        for output, (start, stop) in zip(outputs, places, strict=True)
    ]


def _v2_array(output: dict[str, Any], data: bytes) -> Array:
    dtype = DTYPES[output["datatype"]]
    flat = np.frombuffer(data, dtype) if "data" not in output else np.array(output["data"], dtype)
    return flat.reshape(output["shape"])
