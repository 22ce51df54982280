"""The OpenAPI description as a page of plain HTML; a script of the server's own adds forms that try each call."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape
from typing import Any, TypeAlias

OpenApiObject: TypeAlias = Mapping[str, Any]

_METHODS = ("get", "post", "put", "patch", "delete")


def render_docs(description: OpenApiObject) -> str:
    """Render an OpenAPI description as a page of HTML: operations by tag, schemas and examples."""
    info = description["info"]
    title = escape(f"{info['title']} {info['version']}")
    parts = [
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width">',
        f'<title>{title}</title><link rel="icon" href="docs/icon.svg">',
        '<link rel="stylesheet" href="docs/page.css">',
        '<script type="module" src="docs/try.js"></script></head><body>',
        f"<h1>{title}</h1>{_paragraphs(info.get('description', ''))}",
        '<p><a href="openapi.json">openapi.json</a> is this page for programs.</p>',
        *_operations(description["paths"]),
        *_schemas(description.get("components", {}).get("schemas", {})),
        "</body></html>\n",
    ]
    return "".join(parts)


def _operations(paths: OpenApiObject) -> Iterator[str]:
    by_tag: dict[str, list[str]] = {}
    for path, operations in paths.items():
        for method in _METHODS:
            if method in operations:
                operation = operations[method]
                tag = operation.get("tags", ["other"])[0]
                by_tag.setdefault(tag, []).append(_operation(path, method, operation))
    for tag, rendered in by_tag.items():
        yield f"<h2>{escape(tag)}</h2>"
        yield from rendered


def _operation(path: str, method: str, operation: OpenApiObject) -> str:
    anchor = escape(f"{method}{path}")
    head = (
        f'<summary><span class="method {method}">{method.upper()}</span> <code>{escape(path)}</code> '
        f"{escape(operation.get('summary', ''))}</summary>"
    )
    parts = [
        _paragraphs(operation.get("description", "")),
        _parameters(operation.get("parameters", ())),
        *_request(operation.get("requestBody", {})),
        _responses(operation.get("responses", {})),
    ]
    return f'<details id="{anchor}">{head}{"".join(parts)}</details>'


def _parameters(parameters: Iterable[OpenApiObject]) -> str:
    rows = [
        (
            _code(parameter["name"]),
            escape(parameter["in"]) + (", needed" if parameter.get("required") else ""),
            _type(parameter.get("schema", {})),
            _inline(parameter.get("description", "")),
        )
        for parameter in parameters
    ]
    return _table("Parameters", rows)


def _request(body: OpenApiObject) -> Iterator[str]:
    content = body.get("content", {})
    if not content:
        return
    yield "<h4>Body</h4>"
    yield _paragraphs(body.get("description", ""))
    for media_type, described in content.items():
        yield f"<details><summary>{_code(media_type)} {_type(described.get('schema', {}))}</summary>"
        yield _fields(described.get("schema", {}))
        for example in described.get("examples", {}).values():
            yield from _example(example)
        yield "</details>"


def _example(example: OpenApiObject) -> Iterator[str]:
    yield f"<h4>{escape(example.get('summary', 'example'))}</h4>"
    if command := example.get("description", "").strip("`"):
        yield f"<pre>{escape(command)}</pre>"
    if "externalValue" in example:
        yield f'<p><a href="{escape(example["externalValue"])}" download>body</a></p>'
    if "value" in example:
        value = example["value"]
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        yield f"<details><summary>body</summary><pre>{escape(text)}</pre></details>"


def _responses(responses: OpenApiObject) -> str:
    rows = [
        (
            _code(status),
            _inline(response.get("description", "")),
            "<br>".join(
                f"{_code(media_type)} {_type(described.get('schema', {}))}"
                for media_type, described in response.get("content", {}).items()
            ),
        )
        for status, response in sorted(responses.items())
    ]
    return _table("Responses", rows)


def _schemas(schemas: OpenApiObject) -> Iterator[str]:
    if schemas:
        yield "<h2>schemas</h2>"
    for name, schema in schemas.items():
        shown = f"<summary><code>{escape(name)}</code> {_inline(schema.get('description', ''))}</summary>"
        yield f'<details id="{_anchor(name)}">{shown}{_fields(schema)}</details>'


def _fields(schema: OpenApiObject) -> str:
    needed = schema.get("required", ())
    rows = [
        (
            _code(name) + (" needed" if name in needed else ""),
            _type(field),
            _inline(field.get("description", "")) + _fields(field.get("items", field)),
        )
        for name, field in schema.get("properties", {}).items()
    ]
    return _table("", rows)


def _type(schema: Any) -> str:
    """Render a schema in a few words, with links to named schemas."""
    if not isinstance(schema, Mapping):
        return "anything" if schema else "nothing"
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return f'<a href="#{_anchor(name)}">{escape(name)}</a>'
    for key in ("anyOf", "oneOf", "allOf"):
        if key in schema:
            return " or ".join(dict.fromkeys(_type(part) for part in schema[key]))
    if "enum" in schema or "const" in schema:
        values = schema.get("enum", [schema.get("const")])
        return " or ".join(_code(json.dumps(value)) for value in values) + _default(schema)
    if schema.get("type") == "array":
        return f"array of {_type(schema.get('items', {}))}"
    kind = schema.get("type", "anything")
    kind = " or ".join(kind) if isinstance(kind, list) else kind
    return escape("bytes" if schema.get("format") == "binary" else kind) + _default(schema)


def _default(schema: OpenApiObject) -> str:
    default = schema.get("default")
    return "" if default is None else f", by default {_code(json.dumps(default))}"


def _table(title: str, rows: Sequence[tuple[str, ...]]) -> str:
    if not rows:
        return ""
    lines = "".join(f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>" for row in rows)
    return (f"<h4>{title}</h4>" if title else "") + f"<table>{lines}</table>"


def _paragraphs(text: str) -> str:
    """Render text with its paragraphs."""
    return "".join(f"<p>{_inline(paragraph)}</p>" for paragraph in filter(None, text.split("\n\n")))


def _inline(text: str) -> str:
    """Render text with `code`, the only markup that the description uses."""
    pieces = enumerate(escape(text).split("`"))
    return "".join(f"<code>{piece}</code>" if index % 2 else piece for index, piece in pieces)


def _code(text: str) -> str:
    return f"<code>{escape(text)}</code>"


def _anchor(name: str) -> str:
    return escape(f"schema-{name}")
