"""Describes predictions, each task's part of a response, for OpenAPI."""

from typing import Any

from pydantic import TypeAdapter
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import core_schema

from service.codec.options import OPTIONS_SCHEMA
from service.schemas import JsonNumber
from service.tasks import described_tasks

_REFERENCE = "#/components/schemas/{model}"
_NUMBER = TypeAdapter[Any](JsonNumber).json_schema()


class _PredictionSchema(GenerateJsonSchema):
    """Describes predictions as responses show them: numbers may be NaN or infinite, tuples and arrays are lists."""

    def float_schema(self, schema: core_schema.FloatSchema) -> JsonSchemaValue:
        del schema
        return dict(_NUMBER)

    def tuple_schema(self, schema: core_schema.TupleSchema) -> JsonSchemaValue:
        items = [self.generate_inner(item) for item in schema["items_schema"]]
        same = all(item == items[0] for item in items)
        return {"type": "array", "items": items[0]} if same else super().tuple_schema(schema)

    def is_instance_schema(self, schema: core_schema.IsInstanceSchema) -> JsonSchemaValue:
        del schema
        return {"type": "array", "items": dict(_NUMBER)}


def describe_predictions(schema: dict[str, Any]) -> None:
    """Add the schemas of all tasks' predictions to a description."""
    schemas = schema["components"]["schemas"]
    references = []
    for task in described_tasks().values():
        if task.prediction is not None:
            described = TypeAdapter(task.prediction).json_schema(
                ref_template=_REFERENCE, mode="serialization", schema_generator=_PredictionSchema
            )
            schemas |= described.pop("$defs", {})
            schemas[task.prediction.__name__] = described
            references.append({"$ref": _REFERENCE.format(model=task.prediction.__name__)})
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
