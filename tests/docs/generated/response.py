"""The first response of the README: a response of a server as it was recorded, shortened.

Run: python -m tests.docs.generated.response      (asks the models of the repository, and keeps the response)
"""

import asyncio
import json
from typing import Any

from service.config.choices import BackendName
from tests.docs.generated.application import DIGIT, ROOT, client

KEPT = ROOT / "docs" / "assets" / "response.json"
LAYER = "stem.conv"
_RUNS = 51


def render() -> str:
    """Return eight lines of the recorded response, with an ellipsis where one goes on."""
    response = load()
    output = response["outputs"][0]
    head = _line(_part(output, "name", "shape", "dtype"))[:-1]
    layer = next(layer for layer in response["trace"]["layers"] if layer["name"] == LAYER)
    lines = [
        f'{{"model": "{response["model"]}", "version": "{response["version"]}",'
        f' "request_id": "{response["request_id"]}",',
        f' "predictions": [[{_line(response["predictions"][0][0])}, …]],',
        f' "outputs": [{head}, "data": [[{output["data"][0][0]}, …]]}}],',
        f' "timing": {_line(response["timing"])},',
        f' "trace": {{"total_ms": {response["trace"]["total_ms"]}, "layers": [',
        f"   …, {_line(_part(layer, 'index', 'name', 'type', 'start_ms', 'duration_ms', 'share'))[:-1]},",
        f"       {_line(_part(layer, 'multiply_adds', 'bytes', 'backend', 'fused', 'precision'))[1:-1]}, …}},",
        "   …]}, …}",
    ]
    return "\n".join(["```text", *lines, "```"])


def load() -> dict[str, Any]:
    """Return the recorded response."""
    kept: dict[str, Any] = json.loads(KEPT.read_text())
    return kept


def _part(whole: dict[str, Any], *keys: str) -> dict[str, Any]:
    return {key: whole[key] for key in keys}


def _line(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


async def record(runs: int = _RUNS, backend: BackendName = "native") -> dict[str, Any]:
    """Return the response, of several to the same request, whose run took the median time."""
    async with client(backend) as server:
        responses: list[dict[str, Any]] = [
            (await server.post("/infer?model=digits", content=DIGIT.read_bytes())).json() for _ in range(runs)
        ]
    return sorted(responses, key=lambda response: float(response["trace"]["total_ms"]))[runs // 2]


if __name__ == "__main__":
    KEPT.write_text(json.dumps(asyncio.run(record()), indent=1) + "\n")
