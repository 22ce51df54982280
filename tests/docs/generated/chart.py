"""The Helm chart's schema, whose settings are the server's own."""

import json
from collections.abc import Iterator
from typing import Any

from service.config.settings import Settings
from tests.docs.generated.application import ROOT

CHART = ROOT / "deploy" / "helm" / "kuiper-serve"
SCHEMA = CHART / "values.schema.json"
OWNED = frozenset(
    (
        *(
            "config",
            "host",
            "port",
            "models",
            "model_name",
            "grpc_port",
            "drain_delay_seconds",
        ),
        *("api_keys", "api_keys_file", "admin_keys", "admin_keys_file"),
        *("ssl_certfile", "ssl_keyfile", "ssl_keyfile_password", "ssl_ca_certs"),
    )
)
"""Settings that the chart sets by itself, from values of its own."""
_KEPT = ("type", "enum", "items", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "pattern")


def render_schema() -> str:
    """Return the schema as it is written by hand, with the settings that there are now."""
    schema = json.loads(SCHEMA.read_text(encoding="utf-8"))
    schema["properties"]["settings"]["properties"] = _settings()
    return json.dumps(schema, indent=2, ensure_ascii=False) + "\n"


def leaves(
    schema: dict[str, Any], path: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], dict[str, Any]]]:
    """Yield the path of each value that has a description, in order, and its schema."""
    for name, entry in schema["properties"].items():
        if "description" in entry:
            yield (*path, name), entry
        if "properties" in entry and (name != "resources"):
            yield from leaves(entry, (*path, name))


def _settings() -> dict[str, Any]:
    described = Settings.model_json_schema()["properties"]
    return {
        name: {"description": entry["description"], **{key: entry[key] for key in _KEPT if key in entry}}
        for name, entry in described.items()
        if name not in OWNED
    }
