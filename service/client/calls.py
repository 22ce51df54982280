"""The calls that a client can make, without any input or output: a request, and how its response is read."""

import io
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypedDict, TypeVar
from urllib.parse import quote
from zipfile import BadZipFile

import numpy as np
import orjson

from service.client import tensors
from service.client.errors import ResponseError
from service.client.inputs import Array, Arrays, Inputs, Pictures, npy, npz, sort_inputs
from service.client.responses import (
    Detection,
    Explanation,
    InferResponse,
    Result,
    Trace,
    read_detections,
    read_explanation,
    read_response,
    read_trace,
)

T = TypeVar("T")

_INFER = "/infer"
_NPZ = "application/x-npz"
_JSON = "application/json"
_CAPTURED = "captured/"


class CallOptions(TypedDict, total=False):
    """What every call that runs a model may say.

    Attributes:
        model: name of the model; may be left out where only one is served.
        version: its version; by default the highest that is served, or the one that its `[traffic]` table chooses.
        deadline: seconds after which the response is of no use: the call then raises `DeadlineError`, and the server,
            which is notified, stops working on it.
    """

    model: str | None
    version: str | int | None
    deadline: float | None


def check_options(options: CallOptions) -> None:
    """Check that options are known: a misspelled version would else be served by another.

    Raises:
        TypeError: one is not.
    """
    unknown = sorted(options.keys() - CallOptions.__annotations__.keys())
    if unknown:
        raise TypeError(
            f"{', '.join(unknown)}: no such option; expected {', '.join(CallOptions.__annotations__)}"
        )


@dataclass(frozen=True, slots=True)
class Response:
    """A response."""

    status: int
    headers: Mapping[str, str]
    content: bytes

    def mapping(self) -> dict[str, Any]:
        """Return the JSON object that the body is.

        Raises:
            ResponseError: it is none.
        """
        try:
            value = orjson.loads(self.content)
        except ValueError as error:
            raise ResponseError(f"the response is not JSON: {self.content[:80]!r}") from error
        if not isinstance(value, dict):
            raise ResponseError(f"the response is not a JSON object: {self.content[:80]!r}")
        return value

    def field(self, name: str) -> Any:
        """Return a field of the JSON object that the body is.

        Raises:
            ResponseError: it has none of that name.
        """
        fields = self.mapping()
        if name not in fields:
            raise ResponseError(f"the response has no field {name!r}: {self.content[:80]!r}")
        return fields[name]

    def npz(self) -> tuple[dict[str, Any], dict[str, Array]]:
        """Return the fields of a response of `/infer` without its arrays, and the arrays by name.

        Raises:
            ResponseError: the body is no such npz file.
        """
        try:
            with np.load(io.BytesIO(self.content), allow_pickle=False) as file:
                arrays: dict[str, Any] = dict(file)
            return orjson.loads(arrays.pop("meta")), arrays
        except (ValueError, OSError, EOFError, KeyError, BadZipFile) as error:
            raise ResponseError(f"the response is not one of /infer: {error!r}") from error


@dataclass(frozen=True, slots=True)
class Parts:
    """What a request carries besides its method and its path."""

    query: Mapping[str, str | int] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    content: bytes | None = None
    pictures: tuple[bytes, ...] = ()


@dataclass(frozen=True, slots=True)
class Call(Generic[T]):
    """A request, and how its response is read.

    Attributes:
        method: its method.
        path: its path, quoted.
        prepare: makes what it carries, of the seconds that are left until its deadline, None where it has none.
        read: makes of the response what the call gives.
    """

    method: str
    path: str
    prepare: Callable[[float | None], Parts]
    read: Callable[[Response], T]


def tensor_call(arrays: Mapping[str, Array], options: CallOptions) -> Call[Result]:
    """Return the call for a model's outputs as arrays, which travel as binary tensors: the quickest of all.

    Args:
        arrays: the inputs by name, of dtypes that have datatypes.
        options: name the model.
    """

    def prepare(remaining: float | None) -> Parts:
        timeout = {} if remaining is None else {"timeout": max(1, round(remaining * 1e6))}
        body, length = tensors.encode(arrays, timeout)
        return Parts(headers={tensors.HEADER: str(length)}, content=body)

    def read(response: Response) -> Result:
        outputs = tensors.decode(response.content, response.headers.get(tensors.HEADER))
        return Result(outputs, request_id=response.headers.get("x-request-id"))

    check_options(options)
    model, version = options.get("model"), options.get("version")
    versions = "" if version is None else f"/versions/{_quoted(version)}"
    return Call("POST", f"/v2/models/{_quoted(model)}{versions}/infer", prepare, read)


def infer_call(inputs: Arrays | Pictures, options: CallOptions, capture: Sequence[str] = ()) -> Call[Result]:
    """Return the call for a model's outputs as arrays, and for operands on the way to them."""

    def read(response: Response) -> Result:
        fields, arrays = response.npz()
        captured = {name: arrays[key] for name in capture if (key := _CAPTURED + name) in arrays}
        outputs = {name: array for name, array in arrays.items() if not name.startswith(_CAPTURED)}
        return Result(outputs, captured, fields.get("request_id"))

    return _infer(
        inputs, options, {"trace": "off"} | ({"capture": ",".join(capture)} if capture else {}), read
    )


def predict_call(inputs: Inputs, options: CallOptions, top_k: int | None = None) -> Call[InferResponse]:
    """Return the call for predictions."""
    query: dict[str, str | int] = {"trace": "off"} | ({} if top_k is None else {"top_k": top_k})
    return _infer(sort_inputs(inputs), options, query, lambda response: read_response(*response.npz()))


def detect_call(inputs: Inputs, options: CallOptions) -> Call[list[list[Detection]]]:
    """Return the call for what is found in pictures."""

    def read(response: Response) -> list[list[Detection]]:
        return read_detections(read_response(*response.npz()))

    return _infer(sort_inputs(inputs), options, {"trace": "off"}, read)


def render_call(picture: Inputs, options: CallOptions) -> Call[bytes]:
    """Return the call for a picture with what was found drawn in it."""
    query = {"trace": "off"}
    return _infer(sort_inputs(picture), options, query, lambda response: response.content, "image/png")


def explain_call(
    inputs: Inputs | str, options: CallOptions, target: str | int | None, place: int, method: str | None
) -> Call[Explanation]:
    """Return the call for why a prediction is what it is."""
    if options.get("model") is None:
        raise TypeError("model: is missing; expected the name of the model that is to explain itself")
    chosen = {"target": target, "place": place or None, "method": method, "version": options.get("version")}
    query = {name: str(value) for name, value in chosen.items() if value is not None}
    path = f"/models/{_quoted(options.get('model'))}:explain"

    def read(response: Response) -> Explanation:
        return read_explanation(response.mapping())

    if isinstance(inputs, str):
        headers, body = {"accept": _JSON, "content-type": _JSON}, orjson.dumps({"text": inputs})
        return Call("POST", path, lambda remaining: Parts(query | _timeout(remaining), headers, body), read)
    return _infer(sort_inputs(inputs), options, query, read, _JSON, path)


def trace_call(inputs: Inputs, options: CallOptions, statistics: bool) -> Call[Trace]:
    """Return the call for a trace."""
    query = {"trace": "stats" if statistics else "on"}
    return _infer(sort_inputs(inputs), options, query, lambda response: read_trace(*response.npz()))


def graph_call(model: str | None, version: str | int | None) -> Call[dict[str, Any]]:
    """Return the call for a model's graph."""
    return _get("/graph", {"model": model, "version": version}, lambda response: response.mapping())


def drawing_call(model: str | None, version: str | int | None, notation: str) -> Call[str]:
    """Return the call for a drawing of a model's graph."""
    query = {"model": model, "version": version, "format": notation}
    return _get("/graph", query, lambda response: response.content.decode())


def models_call() -> Call[list[dict[str, Any]]]:
    """Return the call for all models."""

    def read(response: Response) -> list[dict[str, Any]]:
        models = response.field("models")
        if not isinstance(models, list) or not all(
            isinstance(model, dict) and "name" in model for model in models
        ):
            raise ResponseError(f"the response lists no models: {response.content[:80]!r}")
        return models

    return _get("/models", {}, read)


def model_call(name: str, version: str | int | None) -> Call[dict[str, Any]]:
    """Return the call for one model."""
    return _get(f"/models/{_quoted(name)}", {"version": version}, lambda response: response.mapping())


def names_call(options: CallOptions) -> Call[tuple[str, ...]]:
    """Return the call for the names of a model's inputs."""
    check_options(options)

    def read(response: Response) -> tuple[str, ...]:
        return tuple(port["operand"] for port in response.field("inputs"))

    return _get(f"/models/{_quoted(options.get('model'))}", {"version": options.get("version")}, read)


def named(inputs: Arrays, names: Sequence[str]) -> dict[str, Array]:
    """Return arrays by name.

    Args:
        inputs: the arrays.
        names: names of the model's inputs, in order, for arrays without names.

    Raises:
        ValueError: there are more or fewer of them.
    """
    keys = names if inputs.names is None else inputs.names
    if len(keys) != len(inputs.values):
        raise ValueError(
            f"inputs: {len(inputs.values)} arrays; the model takes {len(keys)}: {', '.join(keys)}"
        )
    return dict(zip(keys, inputs.values, strict=True))


def _get(path: str, query: Mapping[str, str | int | None], read: Callable[[Response], T]) -> Call[T]:
    given = {name: value for name, value in query.items() if value is not None}
    return Call("GET", path, lambda _: Parts(query=given), read)


def _infer(
    inputs: Arrays | Pictures,
    options: CallOptions,
    query: Mapping[str, str | int],
    read: Callable[[Response], T],
    accept: str = _NPZ,
    path: str = _INFER,
) -> Call[T]:
    check_options(options)
    chosen = {name: options.get(name) for name in ("model", "version")} if path == _INFER else {}
    asked = {**query, **{name: str(value) for name, value in chosen.items() if value is not None}}
    media_type, content = (None, None) if isinstance(inputs, Pictures) else _encoded(inputs)
    headers = {"accept": accept} | ({} if media_type is None else {"content-type": media_type})
    pictures = inputs.files if isinstance(inputs, Pictures) else ()

    def prepare(remaining: float | None) -> Parts:
        return Parts({**asked, **_timeout(remaining)}, headers, content, pictures)

    return Call("POST", path, prepare, read)


def _timeout(remaining: float | None) -> dict[str, str]:
    return {} if remaining is None else {"timeout": f"{max(remaining, 1e-6):.6f}"}


def _encoded(inputs: Arrays) -> tuple[str, bytes]:
    if inputs.names is None and len(inputs.values) == 1:
        return "application/x-npy", npy(inputs.values[0])
    names = inputs.names or [f"arr_{place}" for place in range(len(inputs.values))]
    return _NPZ, npz(dict(zip(names, inputs.values, strict=True)))


def _quoted(name: object) -> str:
    return quote(str(name), safe="")
