"""The keys of `model.toml`, from the models that read it."""

import re
from collections.abc import Mapping
from inspect import cleandoc
from typing import Any

from pydantic import BaseModel

from service.config.model_config import ModelConfig
from service.config.task_keys import task_tables
from service.tasks import described_tasks
from tests.docs.generated.markdown import definitions

_TYPES = {
    "string": "string",
    "integer": "integer",
    "number": "number",
    "boolean": "boolean",
    "object": "table",
}
Row = tuple[str, str, str]
"""A key, what it may be, and its meaning."""
_ATTRIBUTE = re.compile(r"^ {4}(\w+): (.*(?:\n {8}.*)*)", re.MULTILINE)


def render() -> str:
    """Return a list of keys for the file itself, and one for each table in it."""
    parts, shown = [definitions(_rows(ModelConfig))], dict[str, list[Row]]()
    for name, kind in _tables().items():
        rows = _rows(kind)
        parts += [f"## [{name}]", (kind.__doc__ or "").partition("\n")[0]]
        base = next((other for other, theirs in shown.items() if all(row in rows for row in theirs)), None)
        if base is None:
            parts.append(definitions(rows))
        else:
            more = [row for row in rows if row not in shown[base]]
            parts.append(f"The keys are those of [`[{base}]`](#{base})" + (", and:" if more else "."))
            parts.append(definitions(more))
        shown[name] = rows
    return "\n\n".join(part for part in parts if part)


def _tables() -> Mapping[str, type[BaseModel]]:
    """Return the tables of the file by name, those of tasks after the image's."""
    described_tasks()
    own = {
        name: kind
        for name, field in ModelConfig.model_fields.items()
        if (kind := _table_of(field.annotation))
    }
    nested = {
        f"{name}.{key}": inner
        for name, kind in own.items()
        for key, field in kind.model_fields.items()
        if (inner := _table_of(field.annotation))
    }
    return {"image": own.pop("image"), **task_tables(), **own, **nested}


def _rows(kind: type[BaseModel]) -> list[Row]:
    schema = kind.model_json_schema()
    meanings = {
        name: " ".join(text.split())
        for base in reversed(kind.__mro__)  # a table may derive from another one
        for name, text in _ATTRIBUTE.findall(cleandoc(base.__doc__ or ""))
    }
    rows = []
    for name, field in kind.model_fields.items():
        if _table_of(field.annotation) is None:
            entry = schema["properties"][name]
            default = entry.get("default")
            shown = [] if default is None or default in ([], {}) else [f"default `{_toml(default)}`"]
            values = (
                ", ".join(f'`"{task}"`' for task in described_tasks())
                if name == "task"
                else _type(entry, schema)
            )
            rows.append((name, ", ".join(filter(None, [values, *shown])), meanings[name].removesuffix(".")))
    return rows


def _table_of(annotation: Any) -> type[BaseModel] | None:
    options = getattr(annotation, "__args__", (annotation,))
    return next((one for one in options if isinstance(one, type) and issubclass(one, BaseModel)), None)


def _toml(value: Any) -> str:
    if isinstance(value, str):
        return f'"{value}"'
    if isinstance(value, list):
        return f"[{', '.join(map(_toml, value))}]"
    return str(value).lower() if isinstance(value, bool) else str(value)


def _type(entry: dict[str, Any], schema: dict[str, Any]) -> str:
    """Word the JSON schema of a key."""
    if "$ref" in entry:
        return _type(schema["$defs"][entry["$ref"].rpartition("/")[2]], schema)
    if "anyOf" in entry:
        return " or ".join(word for word in (_type(option, schema) for option in entry["anyOf"]) if word)
    if "enum" in entry:
        return ", ".join(f'`"{value}"`' for value in entry["enum"])
    if "const" in entry:
        return f'`"{entry["const"]}"`'
    if entry.get("type") == "array":
        return _array(entry, schema)
    return _TYPES.get(entry.get("type", ""), "") + _bounds(entry)


def _array(entry: dict[str, Any], schema: dict[str, Any]) -> str:
    if "prefixItems" in entry:
        return f"array of {len(entry['prefixItems'])}: {_type(entry['prefixItems'][0], schema)}"
    return f"array of {_type(entry['items'], schema)}"


def _bounds(entry: dict[str, Any]) -> str:
    least = entry.get("minimum")
    bounds = [f"from {least}"] if least is not None else []
    if "exclusiveMinimum" in entry:
        bounds.append(f"above {entry['exclusiveMinimum']}")
    if "maximum" in entry:
        bounds.append(f"to {entry['maximum']}")
    return f" {' '.join(bounds)}" if bounds else ""
