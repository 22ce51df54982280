"""The HTTP API, from the application's own description of it (OpenAPI)."""

import re
from collections.abc import Iterator
from itertools import groupby
from typing import Any

from service.app import create_app
from service.config.settings import Settings
from tests.docs.generated.markdown import definitions

_TITLES = {
    "inference": "Inference",
    "models": "Models and graphs",
    "health": "Health",
    "monitoring": "Metrics and traces",
}
"""Groups of endpoints in the order of the page; those of `/v2` have a page of their own."""
_WORDS = {
    "integer": "integer",
    "number": "number",
    "string": "string",
    "boolean": "boolean",
    "object": "object",
}

_WITH_OBJECTS = "inference"
"""Group of endpoints whose objects the page shows; those of the others are in the server's own `/docs`."""
_LINK = re.compile(r"\[(\w+)\]\(#\w+\)")
_USUAL = "`application/json`"
"""Media type of responses and bodies that the head of the page names, for all endpoints."""
_NUMBER = "number or `NaN`, `Infinity`, `-Infinity`"
"""How pydantic describes a float that need not be finite, which the head of the page explains."""

Schema = dict[str, Any]


def render() -> str:
    """Return a section for each group of endpoints, and the objects that responses of inference hold."""
    described = create_app(Settings()).openapi()
    parts, objects, seen = [], dict[str, Schema](), set[str]()
    for tag, title in _TITLES.items():
        parts.append(f"## {title}")
        for method, path, operation in _operations(described):
            if operation["tags"] == [tag]:
                parts += _endpoint(method, path, operation, described, seen)
                if tag == _WITH_OBJECTS:
                    for schema in _responses(operation):
                        _collect(schema, described["components"]["schemas"], objects)
    parts.append("## Objects")
    for name, found in sorted(objects.items()):
        parts += [f"### {name}", found.get("description", ""), _fields(found, seen)]
    text = "\n\n".join(part for part in parts if part)
    return _LINK.sub(lambda link: link[0] if link[1] in objects else f"`{link[1]}`", text)


def render_v2() -> str:
    """Return the list of the endpoints of the Open Inference Protocol, without those of a version of a model."""
    rows = [
        (f"{method.upper()} {path}", "", operation["description"])
        for method, path, operation in _operations(create_app(Settings()).openapi())
        if operation["tags"] == ["v2"] and "{version}" not in path
    ]
    return definitions(sorted(rows, key=lambda row: row[0].split()[::-1]))


def _operations(described: Schema) -> Iterator[tuple[str, str, Schema]]:
    for path, methods in described["paths"].items():
        for method, operation in methods.items():
            yield method, path, operation


def _responses(operation: Schema) -> list[Schema]:
    content = operation["responses"]["200"].get("content", {})
    return [kind["schema"] for kind in content.values() if "schema" in kind]


def _endpoint(method: str, path: str, operation: Schema, described: Schema, seen: set[str]) -> list[str]:
    """Return the section of an endpoint; what `seen` holds was shown in full by a section before it."""
    parts = [f"### {method.upper()} {path}", operation["description"]]
    parts.append(_parameters(operation.get("parameters", []), seen))
    if "requestBody" in operation and (kinds := _kinds(operation["requestBody"])) != _USUAL:
        parts.append(_unseen(f"**Body:** {kinds}.", seen) or "**Body:** as above.")
    if (kinds := _kinds(operation["responses"]["200"])) != _USUAL:
        parts.append(f"**Response:** {kinds}.")
    for schema in _responses(operation):
        found = described["components"]["schemas"].get(_reference(schema), {})
        if "properties" in found:
            parts.append(_unseen(_fields(found), seen) or "The object is the one above.")
    return parts


def _kinds(described: Schema) -> str:
    return ", ".join(f"`{kind}`" for kind in sorted(described["content"]))


def _parameters(parameters: list[Schema], seen: set[str]) -> str:
    """Return a list of parameters; those of a path, which their names explain, and those above are left short."""
    lines, above = list[str](), list[str]()
    for parameter in parameters:
        line = _parameter(parameter)
        if parameter["in"] == "path" and not parameter.get("description"):
            continue
        if _unseen(line, seen):
            lines.append(line)
        else:
            above.append(f"`{parameter['name']}`")
    if above:
        lines.insert(0, f"- {', '.join(above)}: as above")
    return "\n".join(lines)


def _unseen(text: str, seen: set[str]) -> str:
    """Return a text the first time, and nothing after that."""
    if text in seen:
        return ""
    seen.add(text)
    return text


def _parameter(parameter: Schema) -> str:
    schema = parameter["schema"]
    default = schema.get("default")
    value = _value(schema).removesuffix(", nullable")  # a parameter is left out rather than null
    shown = "" if default in (None, "") else f", default `{str(default).lower()}`"
    meaning = parameter.get("description", "")
    return f"- `{parameter['name']}` ({value}{shown})" + (f": {meaning}" if meaning else "")


def _fields(schema: Schema, seen: set[str] | None = None) -> str:
    """Return the list of what an object holds; neighbours that need no words share a line.

    Fields that `seen` has are left short.
    """
    lines, plain, above = list[str](), dict[str, str](), list[str]()
    for key, field in schema.get("properties", {}).items():
        value, meaning = _value(field), field.get("description", "")
        if not meaning:
            plain[f"`{key}`"] = value
            continue
        lines += _shared_line(plain)
        plain = {}
        line = f"- `{key}` ({value}): {meaning}" if value else f"- `{key}`: {meaning}"
        if seen is None or _unseen(line, seen):
            lines.append(line)
        else:
            above.append(f"`{key}`")
    lines += _shared_line(plain)
    if above:
        lines.append(f"- {', '.join(above)}: as above")
    return "\n".join(lines)


def _shared_line(kinds: dict[str, str]) -> list[str]:
    """Return the line of fields that need no words, each kind once."""
    groups = (", ".join(names) + (f" ({kind})" if kind else "") for kind, names in groupby(kinds, kinds.get))
    return [f"- {', '.join(groups)}"] if kinds else []


def _collect(schema: Any, schemas: Schema, found: dict[str, Schema], is_response: bool = True) -> None:
    """Gather the objects within a response, by the name that the page gives them."""
    if isinstance(schema, list):
        for item in schema:
            _collect(item, schemas, found, is_response)
    if not isinstance(schema, dict):
        return
    if name := _reference(schema):
        if _title(name) in found:
            return
        if not is_response:
            found[_title(name)] = schemas[name]
        _collect(schemas[name].get("properties", {}), schemas, found, is_response=False)
        is_response = is_response and "properties" not in schemas[name]
        _collect(schemas[name].get("anyOf", []), schemas, found, is_response)
        return
    for value in schema.values():
        _collect(value, schemas, found, is_response)


def _reference(schema: Schema) -> str:
    return str(schema.get("$ref", "")).rpartition("/")[2]


def _title(name: str) -> str:
    return name.rpartition("__")[2]


def _value(schema: Schema) -> str:
    """Word a JSON schema."""
    if name := _title(_reference(schema)):
        return f"[{name}](#{name.lower()})"
    if "anyOf" in schema:
        options = [option for option in schema["anyOf"] if option.get("type") != "null"]
        words = " or ".join(dict.fromkeys(map(_value, options))).replace(_NUMBER, "number")
        return words if len(options) == len(schema["anyOf"]) else f"{words}, nullable"
    if "enum" in schema:
        return ", ".join(f"`{value}`" for value in schema["enum"])
    if schema.get("type") == "array":
        return f"array of {_value(schema.get('items', {})) or 'values'}"
    return _WORDS.get(schema.get("type", ""), f"`{schema['const']}`" if "const" in schema else "")
