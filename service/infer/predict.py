"""`POST /v1/models/{name}:predict`: the shape of TensorFlow Serving's REST API.

{"instances": [row, …]}               answered {"predictions": [row, …]}
{"instances": [{"name": row}, …]}     rows of several inputs
{"instances": [{"b64": text}, …]}     encoded pictures; also {"name": {"b64": text}}, and `image` as the name
{"inputs": {"name": tensor}}          answered {"outputs": tensor}, or an object of several
{"inputs": {"name": {"b64": text}}}   an encoded picture, or a list of them; the name may be left out
"""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from starlette.requests import Request

from engine import RunResult, TraceLevel
from service.codec import JSON_TYPE, Decoded, Options, describe_predictions
from service.codec.binding import find_port
from service.codec.json_body import check_keys, decode_document, parse_json
from service.codec.json_document import MAX_VALUES
from service.codec.json_numbers import Numbers
from service.codec.json_tensor import parse_data
from service.codec.json_text import dump_pieces
from service.codec.response import EncodedResponse
from service.config.limits import Limits, too_large
from service.context import Peer, context_of
from service.errors import ServiceError, shown
from service.images.geometry import ImageGeometry
from service.images.url import URL_ADVICE, is_url
from service.infer.exchange import array_bytes, geometries
from service.repository.loaded_model import LoadedModel
from service.scheduling.job import Job, ProtocolName, Timestamps

_KEYS = ("instances", "inputs", "signature_name")
_IMAGE = "b64"
_ANY_PICTURE = "image"
"""A name for the input that takes pictures, whatever the graph calls it, as `POST /infer` has it."""


@dataclass(slots=True)
class PredictExchange:
    """A request to predict, and its response.

    Attributes:
        model: the model.
        request_id: id of the request.
        client: who sent it.
        limits: how much it may ask for.
        body: the request's whole body; dropped when it is decoded.
        images: where its pictures lie in the first input that has some.
        by_rows: whether it was sent, and is to be returned, row by row.
    """

    model: LoadedModel
    request_id: str
    client: Peer
    limits: Limits
    body: bytes = b""
    images: tuple[ImageGeometry, ...] = ()
    by_rows: bool = True

    name: ClassVar = ProtocolName.V1
    takes_encoded_body: ClassVar = False
    padding: ClassVar = 0

    @classmethod
    def from_request(cls, request: Request, model: LoadedModel, limits: Limits) -> "PredictExchange":
        """Return the exchange of a request whose body has not arrived yet."""
        context = context_of(request)
        return cls(model, context.request_id, context.client, limits)

    def is_unpacked_first(self, size: int) -> bool:
        """Return false: a worker decodes the body, whatever its size."""
        del size
        return False

    def call(self, body: bytes, received_ns: int) -> Job[EncodedResponse]:
        """Return the call. Raises nothing: the body is decoded later, by a worker."""
        self.body = body
        return Job(
            model=self.model,
            protocol=self.name,
            request_id=self.request_id,
            decode=self.decode,
            encode=self.encode,
            timestamps=Timestamps(received_ns),
            client=self.client,
        )

    def decode(self) -> Decoded:
        """Return the inputs of the graph.

        Raises:
            ServiceError: the body is not what the model can take.
            NeedsDecoderError: it is large, and this thread leaves those to others.
        """
        decoded = self.read()
        self.images = geometries(decoded.pictures)
        self.body = b""
        pictures = decoded.pictures if self.model.steps else ()
        return Decoded(decoded.inputs, Options(trace=TraceLevel.OFF, capture=()), pictures)

    def read(self) -> Decoded:
        """Return what the body holds; raises as `decode`."""
        self.limits.check_body(len(self.body))
        document = parse_json(self.body, None, self.limits, _KEYS)
        check_keys(document, _KEYS, "the body")
        self.by_rows = "instances" in document
        if self.by_rows == ("inputs" in document):
            raise ServiceError(400, "invalid_json", "expected one of instances and inputs in the body")
        payload = self._rows(document["instances"]) if self.by_rows else self._columns(document["inputs"])
        model = self.model
        return decode_document(payload, model.graph.inputs, model.config, self.limits)

    def encode(self, result: RunResult) -> EncodedResponse:
        """Return the response: predictions where the task's say all that the outputs do, else the outputs.

        Raises:
            ServiceError: 413 `response_too_large`; 422 `no_rows`, or where the task cannot read the outputs.
        """
        outputs, task = result.outputs, self.model.task
        size = array_bytes(outputs)
        self.limits.check_response(size)
        response: Any
        if not task.returns_outputs:
            predictions = task.predict(outputs, self.images, {})
            response = describe_predictions(predictions or ())
        else:
            response = self._split(outputs) if self.by_rows else self._named(outputs)
        key = "predictions" if self.by_rows else "outputs"
        pieces = dump_pieces({key: response}, self.limits)
        return EncodedResponse(pieces, JSON_TYPE)

    def _rows(self, instances: Any) -> dict[str, Any]:
        """Return the payload of instances, each a row of every input."""
        if isinstance(instances, Numbers):
            return {"inputs": [{"data": instances}]}
        if not isinstance(instances, list) or not instances:
            raise _no_rows("instances", instances)
        pictures = self._pictures(instances)
        if pictures is not None:
            return pictures
        if not any(isinstance(row, dict) for row in instances):
            return {"inputs": [{"data": instances}]}
        names = list(instances[0]) if isinstance(instances[0], dict) else []
        if not all(isinstance(row, dict) and row.keys() == set(names) for row in instances):
            message = "the instances have different keys; expected the names of the same inputs in each"
            raise ServiceError(400, "invalid_json", message)
        return {
            "inputs": {name: _column([row[name] for row in instances], name, self.limits) for name in names}
        }

    def _columns(self, inputs: Any) -> dict[str, Any]:
        """Return the payload of inputs, each a whole tensor or pictures."""
        name, column = None, inputs
        if isinstance(inputs, dict) and len(inputs) == 1 and _IMAGE not in inputs:
            ((name, column),) = inputs.items()
        if column == []:
            raise _no_rows("inputs", column)
        cells = column if isinstance(column, list) else [column]
        pictures = self._pictures(cells if name is None else [{name: cell} for cell in cells])
        if pictures is not None:
            return pictures
        return {"inputs": inputs if isinstance(inputs, dict) else [{"data": inputs}]}

    def _pictures(self, rows: list[Any]) -> dict[str, Any] | None:
        """Return the payload of rows that are encoded pictures, by the name of an input or without; else None.

        Raises:
            ServiceError: 422 `unknown_input` where there is no such input.
        """
        if not rows or not all(isinstance(row, dict) and len(row) == 1 for row in rows):
            return None
        if all(_is_picture(row) for row in rows):
            return {"images": [row[_IMAGE] for row in rows]}
        (name,) = rows[0]
        if not all(row.keys() == {name} and _is_picture(row[name]) for row in rows):
            return None
        if name != _ANY_PICTURE:
            port = find_port(self.model.graph.inputs, name)
            if len(rows) == 1:
                return {"inputs": {port.operator: rows[0][name][_IMAGE]}}
        return {"images": [row[name][_IMAGE] for row in rows]}

    def _split(self, outputs: Any) -> Any:
        """Return the outputs row by row."""
        if (
            any(not isinstance(one, np.ndarray) or one.ndim == 0 for one in outputs)
            or len({len(one) for one in outputs}) != 1
        ):
            message = "the outputs of the model have no rows of their own; send inputs instead of instances"
            raise ServiceError(422, "no_rows", message, {"expected": "inputs"})
        if len(outputs) == 1:
            return outputs[0]
        names = [port.operator for port in self.model.graph.outputs]
        return [dict(zip(names, rows, strict=True)) for rows in zip(*outputs, strict=True)]

    def _named(self, outputs: Any) -> Any:
        """Return the outputs as whole tensors, by name where there are several."""
        if len(outputs) == 1:
            return outputs[0]
        names = [port.operator for port in self.model.graph.outputs]
        return dict(zip(names, outputs, strict=True))


def _no_rows(key: str, value: Any) -> ServiceError:
    hint = f"; {URL_ADVICE}" if is_url(value) else ""
    return ServiceError(
        400, "invalid_json", f"{key} is {shown(value)}; expected a list of one row or more{hint}"
    )


def _is_picture(value: Any) -> bool:
    return isinstance(value, dict) and value.keys() == {_IMAGE} and isinstance(value[_IMAGE], str)


def _column(values: list[Any], name: str, limits: Limits) -> list[Any]:
    """Return the rows of an input, large ones of a large document as lists again.

    Raises:
        ServiceError: 400 where they are no arrays; 413 `too_many_values`: each row is then parsed by itself.
    """
    rows, count = [], 0
    for place, value in enumerate(values):
        if isinstance(value, str):
            hint = f"; {URL_ADVICE}" if is_url(value) else ""
            expected = f'expected numbers, or a picture as {{"b64": …}}{hint}'
            raise ServiceError(
                400, "invalid_tensor", f"instances[{place}].{name[:80]} is a string; {expected}"
            )
        if not isinstance(value, Numbers):
            rows.append(value)
            continue
        if value.values is None:
            parse_data(value, None, None, limits, name)
            raise ServiceError(400, "invalid_tensor", f"{name}: data holds values other than numbers")
        count += value.values.size
        if count > MAX_VALUES:
            raise too_large("too_many_values", "the JSON", count, MAX_VALUES, "values")
        rows.append(value.values.reshape(value.nesting).tolist())
    return rows
