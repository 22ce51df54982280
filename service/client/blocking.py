"""The client for threads."""

import ssl
import time
from collections.abc import Sequence
from types import TracebackType
from typing import Any, Literal, Self, TypeVar, Unpack

import httpx

from service.client import calls
from service.client.calls import Call, CallOptions, Response
from service.client.input_names import InputNames
from service.client.inputs import Arrays, Inputs, sort_inputs
from service.client.responses import Detection, Explanation, InferResponse, Result, Trace
from service.client.retries import Attempts, Retries, rest_of
from service.client.transport import (
    client_options,
    read,
    receive,
    request_options,
    wait_after_failure,
    wait_after_response,
)

T = TypeVar("T")


class Client:
    """A client of a server, for any number of threads; it keeps connections open until it is closed.

    All calls raise the errors of `service.client`; `OSError` where a picture's file cannot be read; and `TypeError` or
    `ValueError` for inputs that are none.

    Args:
        base_url: address of the server.
        key: an API key of it.
        retries: how long calls are tried again where the server has no room.
        verify: whether, or by which certificates, the server's certificate is checked.
        transport: what sends requests; by default httpx's own.
    """

    def __init__(
        self,
        base_url: str = "http://127.0.0.1:8000",
        *,
        key: str | None = None,
        retries: Retries | None = None,
        verify: ssl.SSLContext | bool = True,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        self._http = httpx.Client(transport=transport, **client_options(base_url, key, verify))
        self._retries = Retries() if retries is None else retries
        self._names = InputNames()

    def infer(self, inputs: Inputs, *, capture: Sequence[str] = (), **options: Unpack[CallOptions]) -> Result:
        """Run a model and return its outputs as arrays; they travel as binary tensors.

        Args:
            inputs: arrays or pictures.
            capture: names of operands on the way to the outputs that are returned as well.
            **options: model, version and deadline.
        """
        sorted_inputs = sort_inputs(inputs)
        if not isinstance(sorted_inputs, Arrays) or not self._names.suffices(sorted_inputs, options, capture):
            return self._call(calls.infer_call(sorted_inputs, options, capture), options.get("deadline"))
        begun = time.monotonic()
        names = self._input_names(sorted_inputs, options)
        call = calls.tensor_call(calls.named(sorted_inputs, names), options)
        with self._names.forgotten_on_refusal(options):
            return self._call(call, rest_of(options.get("deadline"), begun))

    def predict(
        self, inputs: Inputs, *, top_k: int | None = None, **options: Unpack[CallOptions]
    ) -> InferResponse:
        """Run a model and return what its outputs mean, by the model's task.

        Args:
            inputs: arrays or pictures.
            top_k: predictions of each item; by default as many as the model's configuration says.
            **options: model, version and deadline.
        """
        return self._call(calls.predict_call(inputs, options, top_k), options.get("deadline"))

    def detect(self, pictures: Inputs, **options: Unpack[CallOptions]) -> list[list[Detection]]:
        """Return for each picture what is found in it, with boxes in its own pixels.

        Args:
            pictures: one picture or several.
            **options: model, version and deadline.
        """
        return self._call(calls.detect_call(pictures, options), options.get("deadline"))

    def render(self, picture: Inputs, **options: Unpack[CallOptions]) -> bytes:
        """Return a picture as PNG with what was found drawn in it: boxes, labels, keypoints or a mask.

        Args:
            picture: the picture.
            **options: model, version and deadline.
        """
        return self._call(calls.render_call(picture, options), options.get("deadline"))

    def explain(
        self,
        inputs: Inputs | str,
        *,
        target: str | int | None = None,
        place: int = 0,
        method: Literal["occlusion", "score-cam", "words"] | None = None,
        **options: Unpack[CallOptions],
    ) -> Explanation:
        """Return which parts of a picture, or which words of a text, a prediction depends on.

        Args:
            inputs: one picture, one array of its form, or a text.
            target: label or number of the class to explain; by default that of the most probable prediction.
            place: place of the prediction among those of the target, 0 for the most probable one.
            method: by default occlusion for a picture, and leaving out words for a text.
            **options: model, which is required, version and deadline.
        """
        call = calls.explain_call(inputs, options, target, place, method)
        return self._call(call, options.get("deadline"))

    def trace(self, inputs: Inputs, *, statistics: bool = False, **options: Unpack[CallOptions]) -> Trace:
        """Run a model and return what every layer did.

        Args:
            inputs: arrays or pictures.
            statistics: whether to return statistics of every output, which lengthens the run.
            **options: model, version and deadline.
        """
        return self._call(calls.trace_call(inputs, options, statistics), options.get("deadline"))

    def graph(self, model: str | None = None, version: str | int | None = None) -> dict[str, Any]:
        """Return a model's graph: its nodes, operands and execution order."""
        return self._call(calls.graph_call(model, version))

    def draw(
        self,
        model: str | None = None,
        version: str | int | None = None,
        notation: Literal["dot", "mermaid"] = "mermaid",
    ) -> str:
        """Return a drawing of a model's graph, for Graphviz or Mermaid."""
        return self._call(calls.drawing_call(model, version, notation))

    def models(self) -> list[dict[str, Any]]:
        """Return all models of the server, those that are not served as well."""
        return self._call(calls.models_call())

    def model(self, name: str, version: str | int | None = None) -> dict[str, Any]:
        """Return one model: its inputs, outputs, labels, size and state."""
        return self._call(calls.model_call(name, version))

    def close(self) -> None:
        """Close all connections."""
        self._http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def _input_names(self, inputs: Arrays, options: CallOptions) -> Sequence[str]:
        known = self._names.find(inputs, options)
        if known is not None:
            return known
        return self._names.keep(options, self._call(calls.names_call(options), options.get("deadline")))

    def _call(self, call: Call[T], deadline: float | None = None) -> T:
        attempts = Attempts(self._retries, deadline)
        while True:
            try:
                response = self._send(call, attempts)
            except httpx.RequestError as error:
                wait = wait_after_failure(error, attempts)
            else:
                busy = wait_after_response(response, attempts)
                if busy is None:
                    return read(call, response)
                wait = busy
            time.sleep(wait)

    def _send(self, call: Call[T], attempts: Attempts) -> Response:
        with self._http.stream(call.method, call.path, **request_options(call, attempts)) as response:
            return receive(response, attempts)
