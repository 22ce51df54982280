"""`ModelInfer` and `ModelStreamInfer`: a message is decoded to the inputs of a graph, the run encoded to a response."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from time import perf_counter_ns
from typing import Any

import orjson

from engine import RunResult, RunTrace, TraceLevel
from service.codec import Decoded, Options, describe_trace
from service.config.limits import Limits
from service.errors import ServiceError
from service.grpc.front import Incoming
from service.grpc.infer_request import raw_contents, read_request
from service.grpc.messages import ModelInferRequest, ModelInferResponse, parse
from service.grpc.wire import prefix, split
from service.repository.loaded_model import LoadedModel
from service.scheduling.job import Job, ProtocolName, Timestamps
from service.services import Services
from service.v2.batching import has_dynamic_batch
from service.v2.inputs import read_inputs
from service.v2.response import check_names, select_outputs, write_output

_SMALL_BYTES = 1 << 12
"""Maximum bytes of a request besides raw tensors that are converted on the event loop."""
_LEAST_SECONDS = 1e-3
"""Time of a request whose deadline has passed already: it ends as others do whose time is up."""
_RAW = 6
"""Number of a field of a `ModelInferResponse`."""


async def infer(services: Services, incoming: Incoming) -> bytes:
    """Run a model, and return a `ModelInferResponse`.

    Args:
        services: the parts of the server.
        incoming: the call; its message is dropped once it is parsed.

    Raises:
        ServiceError: why there is none.
        CancelledError: the client has left; its request is dropped.
    """
    return await services.scheduler.run(await _receive(services, incoming))


async def _receive(services: Services, incoming: Incoming) -> Job[bytes]:
    """Return the job of a call, which alone holds the message then."""
    received, context = perf_counter_ns(), incoming.context
    message, raw = read_message(incoming.data)
    is_small = len(incoming.data) <= _SMALL_BYTES + sum(map(len, raw))
    incoming.data, incoming.own_id = b"", message.id
    model = services.choose_model(message.model_name or None, message.model_version or None, context.headers)
    context.model = model.name
    make = partial(GrpcExchange, model, message, raw, services.limits)
    try:
        services.scheduler.check_room(model, context.client)
        if is_small:
            exchange = make()
        else:
            exchange = await services.unpacking.run(context.client, make, services.settings.timeout)
    except ServiceError as error:
        services.scheduler.record_refusal(model, ProtocolName.GRPC, context.request_id, received, error)
        raise
    return Job(
        model=model,
        protocol=ProtocolName.GRPC,
        request_id=context.request_id,
        decode=exchange.decode,
        encode=exchange.encode,
        timestamps=Timestamps(received),
        timeout=_timeout(exchange.parameters.timeout, incoming.rpc.time_remaining()),
        priority=exchange.parameters.priority,
        client=context.client,
    )


def read_message(data: bytes) -> tuple[Any, list[memoryview]]:
    """Return a `ModelInferRequest` without its raw tensors, and these.

    Raises:
        ServiceError: 400 `invalid_message`, 413 `too_many_values`.
    """
    head, raw = split(data)
    return parse(ModelInferRequest, head, len(head)), raw  # its size is checked already


class GrpcExchange:
    """An inference request by gRPC and its response.

    `decode` is called first, then `encode`, by one thread at a time.

    Args:
        model: the model.
        message: the `ModelInferRequest`, without its raw tensors.
        raw: the raw tensors.
        limits: upper bounds on its size.

    Attributes:
        parameters: what the request asks for besides inputs and outputs.

    Raises:
        ServiceError: 400 or 413: it is no request of the protocol.
    """

    def __init__(self, model: LoadedModel, message: Any, raw: Sequence[memoryview], limits: Limits) -> None:
        request = read_request(message, raw)
        self.parameters = request.parameters
        self._model = model
        self._limits = limits
        self._id = message.id
        self._outputs = request.outputs
        self._inputs = request.inputs
        self._message = None if raw else message
        self._raw = raw

    def decode(self) -> Decoded:
        """Return the inputs of the graph and what to trace; drop the message, except for what the inputs share.

        Raises:
            ServiceError: the request does not fit the model.
            NeedsDecoderError: an image is large, and this thread leaves those to others, which call this again.
        """
        inputs, graph = self._inputs, self._model.graph
        check_names(self._outputs, graph.outputs)
        parts = self._raw
        if self._message is not None:
            entries = zip(inputs, self._message.inputs, strict=True)
            parts = [raw_contents(tensor, entry.contents) for tensor, entry in entries]
        batch = has_dynamic_batch(self._model)
        decoded = read_inputs(inputs, parts, graph.inputs, self._model.config, batch, self._limits)
        self._inputs, self._message, self._raw = (), None, ()
        return replace(decoded, options=Options(trace=self.parameters.trace or TraceLevel.OFF, capture=()))

    def encode(self, result: RunResult) -> bytes:
        """Return the response, a `ModelInferResponse`.

        Raises:
            ServiceError: 400 if the run lacks an output that was asked for, or the protocol cannot express one; 413
                `response_too_large`.
        """
        outputs, ports = result.outputs, self._model.graph.outputs
        selected = select_outputs(self._outputs, outputs, ports, binary=True)
        self._limits.check_response(sum(output.array.nbytes for output in selected))
        written = [write_output(output, self._model.config.labels) for output in selected]
        trace = result.trace if self.parameters.trace else None
        pieces: list[bytes | memoryview] = [self._head([described for described, _ in written], trace)]
        for _, buffer in written:  # protobuf would copy each tensor twice
            pieces += prefix(_RAW, len(buffer or b"")), buffer or b""
        return b"".join(pieces)

    def _head(self, outputs: list[dict[str, object]], trace: RunTrace | None) -> bytes:
        """Return the response without the raw contents."""
        response = ModelInferResponse(
            model_name=self._model.name, model_version=self._model.version, id=self._id
        )
        for output in outputs:
            response.outputs.add(name=output["name"], datatype=output["datatype"], shape=output["shape"])
        if trace is not None:
            text = orjson.dumps(describe_trace(trace), option=orjson.OPT_SERIALIZE_NUMPY)
            response.parameters["trace"].string_param = text.decode()
        head: bytes = response.SerializeToString()
        return head


def _timeout(asked: float | None, remaining: float | None) -> float | None:
    """Return the seconds that a request has: what it says, or what is left until its client's deadline."""
    if remaining is None:
        return asked
    remaining = max(remaining, _LEAST_SECONDS)
    return remaining if asked is None else min(asked, remaining)
