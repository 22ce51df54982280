"""An example for each operation of the OpenAPI description: parameters and a body that work as they are."""

from base64 import b64encode
from collections.abc import Iterable, Mapping
from io import BytesIO
from typing import Any

from engine import Array, Port
from service.codec import JSON_TYPE
from service.description.examples import Examples, sample_arrays, sample_image
from service.repository.loaded_model import LoadedModel
from service.repository.sample_files import sample_files
from service.v2.datatypes import datatype_of

_WITH_PICTURES = ("/compare", "/models/{name}:explain")
"""Operations that take the bodies of `POST /infer`."""


def describe_calls(paths: Mapping[str, Any], models: Iterable[LoadedModel], bodies: Examples) -> None:
    """Add examples to the operations of a description, all for one model.

    Args:
        paths: the operations, changed in place.
        models: the models that are served; the first one with an example of a picture, else of an array, is taken.
        bodies: examples of the bodies of `POST /infer`.
    """
    known = sorted(models, key=lambda model: sample_image(model) is None)
    model = next((model for model in known if sample_arrays(model)), None)
    if model is None:
        return
    values, documents = _values(model), _documents(model)
    for path, operations in paths.items():
        for operation in operations.values():
            for parameter in operation.get("parameters", ()):
                name = parameter["name"]
                value = values.get(
                    "operator" if path.startswith("/graph/operators") and name == "name" else name
                )
                if value is not None and (parameter.get("required") or name in _ALWAYS.get(path, ())):
                    parameter["example"] = value
            content = operation.get("requestBody", {}).get("content", {})
            if path in _WITH_PICTURES:
                _add(content, _of_model(bodies, model))
            elif path in documents:
                _add(content, {JSON_TYPE: {model.name: {"summary": model.name, "value": documents[path]}}})


_ALWAYS = {
    **dict.fromkeys(("/infer", "/graph", "/graph/schedule", "/graph/operators/{name}"), ("model",)),
    "/compare": ("model", "with_backend"),
}
"""Optional parameters that an operation has an example of: without them, it works with one model only."""


def _values(model: LoadedModel) -> dict[str, str]:
    """Return parameter -> value."""
    samples = sample_files(model)
    values = {
        "name": model.name,
        "model": model.name,
        "version": model.version,
        "operator": model.graph.inputs[0].operator,
        "with_backend": "numpy",
    }
    return values | ({"file": samples[0].name} if samples else {})


def _documents(model: LoadedModel) -> dict[str, Any]:
    """Return path -> body, as JSON."""
    arrays, picture = sample_arrays(model), sample_image(model)
    predict = {"instances": [_row(arrays)]}
    infer = {"inputs": [_tensor(port, arrays[port.operator]) for port in model.graph.inputs]}
    documents: dict[str, Any] = {"/v2/repository/index": {"ready": True}, "/v2/logging": {}}
    documents |= {f"/v2/repository/models/{{name}}/{action}": {} for action in ("load", "unload")}
    documents |= {path: {} for path in ("/v2/trace/setting", "/v2/models/{name}/trace/setting")}
    for place in ("{name}", "{name}/versions/{version}"):
        documents |= {f"/v1/models/{place}:predict": predict, f"/v2/models/{place}/infer": infer}
    if picture is not None:
        stream = BytesIO()
        picture.save(stream, "PNG")
        documents["/v1/models/{name}:explain"] = {
            "instances": [{"b64": b64encode(stream.getvalue()).decode()}]
        }
    return documents | {"/expression": {"text": "add(mul(@0,2),1)", "values": [3]}}


def _row(arrays: Mapping[str, Array]) -> Any:
    """Return the first row of each input, or of the only one."""
    rows = {name: array[0].tolist() for name, array in arrays.items()}
    return rows if len(rows) > 1 else next(iter(rows.values()))


def _tensor(port: Port, array: Array) -> dict[str, Any]:
    shape, data = list(array.shape), array.ravel().tolist()
    return {"name": port.operand, "shape": shape, "datatype": datatype_of(port), "data": data}


def _of_model(bodies: Examples, model: LoadedModel) -> Examples:
    """Return the examples that belong to a model."""
    return {
        media_type: {name: example for name, example in examples.items() if example["x-model"] == model.name}
        for media_type, examples in bodies.items()
    }


def _add(content: dict[str, Any], examples: Examples) -> None:
    for media_type, found in examples.items():
        if media_type in content and found:
            content[media_type]["examples"] = found
