"""One inference request by gRPC: its message is decoded to the inputs of a graph, the run encoded to a response."""

from dataclasses import replace

import orjson

from engine import RunTrace, TraceLevel
from service.codec import Decoded, Options, describe_trace
from service.config.limits import Limits
from service.grpc.infer_message import InferMessage
from service.grpc.infer_request import raw_contents, read_head
from service.grpc.messages import ModelInferResponse
from service.grpc.wire import prefix
from service.repository.loaded_model import LoadedModel
from service.scheduling.job import RunOutcome
from service.v2.batching import has_dynamic_batch
from service.v2.inputs import read_inputs
from service.v2.parameters import InferParameters
from service.v2.response import check_names, select_outputs, write_output

_RAW = 6
"""Number of a field of a `ModelInferResponse`."""


class GrpcExchange:
    """An inference request by gRPC and its response.

    `decode` is called first, then `encode`, by one thread at a time.

    Args:
        model: the model.
        message: the request.
        limits: upper bounds on its size.

    Raises:
        ServiceError: 400 or 413: it is no request of the protocol.
    """

    def __init__(self, model: LoadedModel, message: InferMessage, limits: Limits) -> None:
        self._model = model
        self._id = message.id
        self._limits = limits
        self._request, self._contents = read_head(message)
        self._raw = message.raw

    @property
    def parameters(self) -> InferParameters:
        """What the request asks for besides inputs and outputs."""
        return self._request.parameters

    def decode(self) -> Decoded:
        """Return the inputs of the graph and what to trace; drop the message, except for what the inputs share.

        Raises:
            ServiceError: the request does not fit the model.
            NeedsDecoderError: an image is large, and this thread leaves those to others.
        """
        tensors, graph, config = self._request.inputs, self._model.graph, self._model.config
        check_names(self._request.outputs, graph.outputs)
        parts = self._raw or [
            raw_contents(tensor, contents) for tensor, contents in zip(tensors, self._contents, strict=True)
        ]
        decoded = read_inputs(
            tensors, parts, graph.inputs, config, has_dynamic_batch(self._model), self._limits
        )
        self._raw = self._contents = ()
        return replace(decoded, options=Options(trace=self.parameters.trace or TraceLevel.OFF, capture=()))

    def encode(self, outcome: RunOutcome) -> bytes:
        """Return the response, a `ModelInferResponse`.

        Raises:
            ServiceError: 400 if the run lacks an output that was asked for, or the protocol cannot express one; 413
                `response_too_large`.
        """
        outputs, ports = outcome.result.outputs, self._model.graph.outputs
        selected = select_outputs(self._request.outputs, outputs, ports, binary=True)
        self._limits.check_response(sum(output.array.nbytes for output in selected))
        written = [write_output(output, self._model.config.labels) for output in selected]
        trace = outcome.result.trace if self.parameters.trace else None
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
