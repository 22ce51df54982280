"""One inference request by gRPC: its message is decoded to the inputs of a graph, the run encoded to a response."""

from dataclasses import replace

import orjson

from engine import RunTrace, TraceLevel
from service.codec import Decoded, Options, describe_trace
from service.config.limits import Limits
from service.grpc.contents import raw_contents
from service.grpc.infer_form import RAW, id_field
from service.grpc.infer_message import InferMessage
from service.grpc.infer_request import form_of
from service.grpc.messages import ModelInferResponse
from service.grpc.wire import prefix
from service.repository.loaded_model import LoadedModel
from service.scheduling.job import RunOutcome
from service.v2.batching import is_batch_open
from service.v2.inputs import read_inputs
from service.v2.parameters import InferParameters
from service.v2.response import check_names, select_outputs, write_output

_NOTHING = memoryview(b"")


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
        self._message: InferMessage | None = message
        self._id = message.id
        self._limits = limits
        self._form = form_of(model, message)

    @property
    def parameters(self) -> InferParameters:
        """What the request asks for besides inputs and outputs."""
        return self._form.request.parameters

    def decode(self) -> Decoded:
        """Return the inputs of the graph and what to trace; drop the message, except for what the inputs share.

        Raises:
            ServiceError: the request does not fit the model.
            NeedsDecoderError: an image is large, and this thread leaves those to others.
        """
        message = self._message
        if message is None:
            raise RuntimeError("the request is decoded already")
        inputs = self._form.read(message.raw) if message.raw else None
        decoded = self._read(message) if inputs is None else Decoded(inputs)
        self._message = None
        return replace(decoded, options=Options(trace=self.parameters.trace or TraceLevel.OFF, capture=()))

    def encode(self, outcome: RunOutcome) -> bytes:
        """Return the response, a `ModelInferResponse`.

        Raises:
            ServiceError: 400 if the run lacks an output that was asked for, or the protocol cannot express one; 413
                `response_too_large`.
        """
        outputs, trace = outcome.result.outputs, outcome.result.trace
        shown = trace if self.parameters.trace else None
        if shown is None:
            response = self._form.respond(self._id, outputs)
            if response is not None:
                return response
        requested = self._form.request.outputs
        selected = select_outputs(requested, outputs, self._model.graph.outputs, binary=True)
        self._limits.check_response(sum(output.array.nbytes for output in selected))
        written = [write_output(output, self._model.config.labels) for output in selected]
        head = self._head([described for described, _ in written], shown)
        buffers = [buffer or b"" for _, buffer in written]
        if shown is None and not any(output.requested.classes for output in selected):
            arrays = [output.array for output in selected]
            if [len(buffer) for buffer in buffers] == [array.nbytes for array in arrays]:
                self._form.remember_response(outputs, arrays, head)
        pieces: list[bytes | memoryview] = [head, id_field(self._id)]
        for buffer in buffers:
            pieces += prefix(RAW, len(buffer)), buffer
        return b"".join(pieces)

    def _read(self, message: InferMessage) -> Decoded:
        """Return the inputs of a request in the usual way."""
        request, graph = self._form.request, self._model.graph
        check_names(request.outputs, graph.outputs)
        parts = message.raw or [
            raw_contents(tensor, _NOTHING if contents is None else contents, self._limits)
            for tensor, contents in zip(request.inputs, message.contents, strict=True)
        ]
        open_batch = is_batch_open(self._model)
        decoded = read_inputs(
            request.inputs, parts, graph.inputs, self._model.config, open_batch, self._limits
        )
        if message.raw:
            self._form.remember_inputs(graph.inputs)
        return decoded

    def _head(self, outputs: list[dict[str, object]], trace: RunTrace | None) -> bytes:
        """Return the response without its id and the raw contents."""
        response = ModelInferResponse(model_name=self._model.name, model_version=self._model.version)
        for output in outputs:
            response.outputs.add(name=output["name"], datatype=output["datatype"], shape=output["shape"])
        if trace is not None:
            text = orjson.dumps(describe_trace(trace), option=orjson.OPT_SERIALIZE_NUMPY)
            response.parameters["trace"].string_param = text.decode()
        head: bytes = response.SerializeToString()
        return head
