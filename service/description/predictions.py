"""Describes predictions, each task's part of a response, for OpenAPI."""

from typing import Any

from service.codec.options import OPTIONS_SCHEMA
from service.tasks import described_tasks

_REFERENCE = "#/components/schemas/{model}"


def describe_predictions(schema: dict[str, Any]) -> None:
    """Add the schemas of all tasks' predictions to a description."""
    schemas = schema["components"]["schemas"]
    references = []
    for task in described_tasks().values():
        if task.view is not None:
            described = task.view.model_json_schema(ref_template=_REFERENCE, mode="serialization")
            schemas |= described.pop("$defs", {})
            schemas[task.view.__name__] = described
            references.append({"$ref": _REFERENCE.format(model=task.view.__name__)})
    schema["components"]["schemas"] = dict(sorted(schemas.items()))
    one = references[0] if len(references) == 1 else {"anyOf": references}
    predictions = {"type": "array", "items": {"type": "array", "items": one}}
    schemas["InferenceResponse"]["properties"]["predictions"]["anyOf"][0] = predictions


def describe_parameters(schema: dict[str, Any]) -> None:
    """Add what requests may set for the tasks of models to the description of `POST /infer`."""
    operation = schema["paths"]["/infer"]["post"]
    known = {parameter["name"]: parameter for parameter in operation["parameters"]}
    for task in described_tasks().values():
        for name, described in task.parameters.model_json_schema().get("properties", {}).items():
            text = f"{described.pop('description', name)} (task {task.name})"
            for key in ("title", "default"):
                described.pop(key, None)
            given = known.get(name)
            if given is None:
                known[name] = {"name": name, "in": "query", "required": False} | {
                    "description": text,
                    "schema": described,
                }
            elif name not in OPTIONS_SCHEMA and given["schema"] != described:  # of two tasks, of other values
                options = given["schema"].get("anyOf", [given["schema"]]) + described.get(
                    "anyOf", [described]
                )
                given["schema"] = {
                    "anyOf": [one for at, one in enumerate(options) if one not in options[:at]]
                }
                given["description"] += f"; {text}"
    operation["parameters"] = list(known.values())
