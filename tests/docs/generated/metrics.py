"""The metrics that the server itself counts, read from the response of a running application."""

import asyncio
from pathlib import Path
from tempfile import TemporaryDirectory

from prometheus_client import Metric
from prometheus_client.parser import text_string_to_metric_families

from tests.docs.generated.application import DIGIT, ROOT, client
from tests.docs.generated.markdown import definitions

_OURS = ("nv_inference_", "kuiper_", "http_server_")
_OF_SAMPLES = {"le"}
_TRAFFIC = '[traffic]\nweights = {"1" = 1}\nshadow = {version = "2", share = 1}\n'


def render() -> str:
    """Return the list of metrics."""
    plain, shared = (list(text_string_to_metric_families(text)) for text in asyncio.run(_read()))
    more = {family.name: family for family in shared}
    rows = [_row(family, more.get(family.name, family)) for family in plain if family.name.startswith(_OURS)]
    return definitions(rows)


async def _read() -> tuple[str, str]:
    """Return the metrics of the models, and of one whose versions share requests: that has labels which others lack."""
    async with client("numpy", "poll") as server:
        await server.post("/infer?model=digits", content=DIGIT.read_bytes())
        plain = (await server.get("/metrics")).text
    with TemporaryDirectory() as folder:
        model = Path(folder, "digits")
        model.mkdir()
        for version in ("1", "2"):
            (model / version).symlink_to(ROOT / "models/digits")
        (model / "model.toml").write_text(_TRAFFIC)
        async with client("numpy", models=Path(folder)) as server:
            await server.post("/infer", content=DIGIT.read_bytes())
            while not (await server.get("/models/digits/traffic")).json()["runs"]:
                await asyncio.sleep(0.01)
            return plain, (await server.get("/metrics")).text


def _row(family: Metric, more: Metric) -> tuple[str, str, str]:
    labels = {label for sample in (*family.samples, *more.samples) for label in sample.labels} - _OF_SAMPLES
    name = f"{family.name}_total" if family.type == "counter" else family.name
    kind = "untyped" if family.type == "unknown" else family.type
    by = f" by {', '.join(f'`{label}`' for label in sorted(labels))}" if labels else ""
    return name, kind + by, family.documentation
