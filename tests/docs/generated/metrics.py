"""The metrics that the server itself counts, read from the answer of a running application."""

import asyncio

from prometheus_client import Metric
from prometheus_client.parser import text_string_to_metric_families

from tests.docs.generated.application import DIGIT, client
from tests.docs.generated.markdown import table

_OURS = ("nv_inference_", "kuiper_", "http_server_")
_OF_SAMPLES = {"le"}


def render() -> str:
    """Return the table of metrics."""
    families = text_string_to_metric_families(asyncio.run(_read()))
    rows = [_row(family) for family in families if family.name.startswith(_OURS)]
    return table(["metric", "type", "labels", "meaning"], rows)


async def _read() -> str:
    async with client("numpy", "poll") as server:
        await server.post("/infer?model=digits", content=DIGIT.read_bytes())
        return (await server.get("/metrics")).text


def _row(family: Metric) -> list[str]:
    labels = {label for sample in family.samples for label in sample.labels} - _OF_SAMPLES
    name = f"{family.name}_total" if family.type == "counter" else family.name
    kind = "untyped" if family.type == "unknown" else family.type
    return [f"`{name}`", kind, ", ".join(f"`{label}`" for label in sorted(labels)), family.documentation]
