"""What a `ModelInferRequest` says besides its tensors, in the terms that requests over HTTP have."""

from collections.abc import Callable
from functools import lru_cache
from typing import Any
from weakref import WeakKeyDictionary

from google.protobuf.message import DecodeError

from service.grpc.infer_form import InferForm
from service.grpc.infer_message import InferMessage, both_contents
from service.grpc.messages import ModelInferRequest
from service.grpc.wire import malformed
from service.repository.loaded_model import LoadedModel
from service.v2.document import Document, bad_request
from service.v2.request import InferRequest, parse_request

_BRIEF = 1 << 10
"""Most bytes of a head that is remembered: clients send the same one repeatedly."""
_MOST_FORMS = 256
"""Heads that are remembered of each model; those that were not sent for longest are forgotten."""


def form_of(model: LoadedModel, message: InferMessage) -> InferForm:
    """Return what a request says besides its tensors, the same object each time while it is remembered.

    Raises:
        ServiceError: 400, 413 `too_many_values`.
    """
    has_contents = tuple([part is not None for part in message.contents])
    key = message.head, message.sizes, has_contents
    if len(message.head) > _BRIEF:
        return _parse(key)
    known = _known.get(model)
    if known is None:
        known = _known[model] = lru_cache(_MOST_FORMS)(_parse)
    return known(key)


_Key = tuple[bytes, tuple[int, ...], tuple[bool, ...]]
"""A head, the size of each of the raw contents, and which inputs have contents of their own."""

_known: WeakKeyDictionary[LoadedModel, Callable[[_Key], InferForm]] = WeakKeyDictionary()


def _parse(key: _Key) -> InferForm:
    head, sizes, has_contents = key
    try:
        message = ModelInferRequest.FromString(head)
    except DecodeError as error:
        raise malformed("it is no ModelInferRequest") from error
    request = parse_request(_document(message))
    _check_contents(request, sizes, has_contents)
    return InferForm(request)


def _check_contents(request: InferRequest, sizes: tuple[int, ...], has_contents: tuple[bool, ...]) -> None:
    """Check that the tensors are all raw, one for each input, or all of them in the inputs."""
    if not sizes:
        return
    for tensor, has in zip(request.inputs, has_contents, strict=True):
        if has:
            raise both_contents(tensor.name)
    if len(sizes) != len(request.inputs):
        raise bad_request(f"the request has {len(request.inputs)} inputs and {len(sizes)} raw_input_contents")


def _document(message: Any) -> Document:
    """Return a message as the JSON part of a request with binary data would be."""
    return {
        "parameters": {**parameters_of(message), "binary_data_output": True},
        "inputs": [_input(entry) for entry in message.inputs],
        "outputs": [{"name": entry.name, "parameters": _own_parameters(entry)} for entry in message.outputs],
    }


def _input(entry: Any) -> Document:
    return {
        "name": entry.name,
        "datatype": entry.datatype,
        "shape": list(entry.shape),
        "parameters": {**_own_parameters(entry), "binary_data_size": 0},
    }


def _own_parameters(entry: Any) -> Document:
    """Return the parameters of an input or output, without those that mean something over HTTP alone."""
    kept = parameters_of(entry)
    for name in ("binary_data", "binary_data_size"):
        kept.pop(name, None)
    return kept


def parameters_of(entry: Any) -> Document:
    """Return the `parameters` of a message by name, None for those without a value."""
    values: Document = {}
    for name, parameter in entry.parameters.items():
        chosen = parameter.WhichOneof("parameter_choice")
        values[name] = None if chosen is None else getattr(parameter, chosen)
    return values
