"""Which blocks there are, and the files that are generated as a whole."""

from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path

from service.config.settings import describe_settings
from tests.docs.generated import (
    attacks,
    benchmark,
    chart,
    command_line,
    folders,
    fuzzing,
    http_api,
    metrics,
    model_toml,
    notebook,
    picture,
    response,
    zoo,
)
from tests.docs.generated.application import ROOT
from tests.docs.generated.blocks import names, put
from tests.golden import document


def _settings() -> str:
    """Return the list of all settings."""
    rows = []
    for doc in describe_settings():
        default = f", default `{doc.default}`" if doc.default else ""
        names = f"`{doc.flag}` (`{doc.variable}`{default})" if doc.flag else f"`{doc.variable}` (no flag)"
        rows.append(f"- {names}: {doc.text}")
    return "\n".join(rows)


BLOCKS: Mapping[str, Callable[[], str]] = {
    "accuracy": benchmark.render_accuracy,
    "attacks": attacks.render,
    "benchmark": benchmark.render,
    "check-arguments": command_line.render,
    "common-arguments": command_line.render_common,
    "commands": command_line.render_commands,
    "quantize-arguments": command_line.render_quantize,
    "folders-engine": folders.render_engine,
    "folders-service": folders.render_service,
    "fuzzing": fuzzing.render,
    "http-api": http_api.render,
    "metrics": metrics.render,
    "model-toml": model_toml.render,
    "response": response.render,
    "scaling": benchmark.render_scaling,
    "scaling-surroundings": benchmark.render_surroundings,
    "settings": _settings,
    "service-benchmark": benchmark.render_service,
    "speed-engines": benchmark.render_engines,
    "speed-servers": benchmark.render_servers,
    "v2-endpoints": http_api.render_v2,
    "zoo": zoo.render,
}
"""Name of a block -> what writes it."""

FILES: Mapping[Path, Callable[[], str]] = {
    ROOT / "docs" / "assets" / "trace.svg": picture.render,
    chart.SCHEMA: chart.render_schema,
    document.PAGE: document.render,
    notebook.NOTEBOOK: notebook.render,
}
"""Generated file -> what writes it."""


def pages() -> list[Path]:
    """Return the pages that may have generated blocks."""
    return [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def write_page(text: str) -> str:
    """Return a page with all its blocks written again."""
    for name in names(text):
        text = put(text, name, _render(name))
    return text


@cache
def _render(name: str) -> str:
    return BLOCKS[name]()
