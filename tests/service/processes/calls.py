"""Clients that call a server by gRPC all the time, each on connections of its own, and keep what went wrong."""

import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from time import monotonic
from typing import Any

import grpc
import numpy as np
from tritonclient.grpc import service_pb2

from tests.service.grpc.servers import INFER, reported
from tests.service.server.client_threads import PAUSE, ClientThreads
from tests.service.server.process import SOON

ROW = np.array([[1, -2, 3]], np.float32)
OWN = (("grpc.use_local_subchannel_pool", 1),)
"""Channels share connections otherwise."""


def message(values: Any = ROW, model: str = "vector") -> bytes:
    """Return a request for a model whose input is named 0."""
    entry = service_pb2.ModelInferRequest.InferInputTensor(
        name="0", datatype="FP32", shape=list(values.shape)
    )
    asked = service_pb2.ModelInferRequest(
        model_name=model, inputs=[entry], raw_input_contents=[values.tobytes()]
    )
    written = asked.SerializeToString()
    assert isinstance(written, bytes)
    return written


def values_of(response: bytes) -> list[float]:
    """Return the numbers of the only output."""
    (output,) = service_pb2.ModelInferResponse.FromString(response).raw_output_contents
    return [float(value) for value in np.frombuffer(output, np.float32)]


@contextmanager
def channels(address: str, count: int) -> Iterator[list[grpc.Channel]]:
    """Yield so many connections."""
    opened = [grpc.insecure_channel(address, options=OWN) for _ in range(count)]
    try:
        yield opened
    finally:
        for channel in opened:
            channel.close()


@dataclass
class Caller:
    """What a client saw.

    Attributes:
        responses: how many calls were answered.
        errors: how many were not, by status code, error code and sentence; a connection is counted once.
        longest: seconds of its slowest call.
    """

    responses: int = 0
    errors: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    longest: float = 0.0


class Callers(ClientThreads):
    """Clients that run the model `vector` until the context ends.

    Args:
        address: where the server answers gRPC.
        count: how many.
    """

    def __init__(self, address: str, count: int = 6) -> None:
        self._address = address
        self._counted = threading.Condition()
        self.callers = [Caller() for _ in range(count)]
        super().__init__(count)

    @property
    def answered(self) -> int:
        """How many calls were answered."""
        return sum(caller.responses for caller in self.callers)

    @property
    def errors(self) -> Counter[tuple[str, str, str]]:
        """Why others were not."""
        return sum((caller.errors for caller in self.callers), Counter())

    def until_answered(self, count: int) -> None:
        """Return when each client has got so many responses more."""
        wanted = [caller.responses + count for caller in self.callers]
        with self._counted:
            assert self._counted.wait_for(
                lambda: all(
                    caller.responses >= least for caller, least in zip(self.callers, wanted, strict=True)
                ),
                SOON,
            ), self.callers

    def _run(self, number: int) -> None:
        caller = self.callers[number]
        while not self._stopped.is_set():
            with channels(self._address, 1) as (channel,):
                self._call_on(channel, caller)

    def _call_on(self, channel: grpc.Channel, caller: Caller) -> None:
        """Call until a call fails: gRPC may begin another one yet on a connection that it knows to have ended."""
        call, data = channel.unary_unary(INFER), message()
        while not self._stopped.wait(PAUSE):
            began = monotonic()
            try:
                assert values_of(call(data, timeout=SOON)) == [1, 0, 3]
                with self._counted:
                    caller.responses += 1
                    self._counted.notify_all()
            except grpc.RpcError as error:
                caller.errors[reported(error)] += 1
                return
            finally:
                caller.longest = max(caller.longest, monotonic() - began)
