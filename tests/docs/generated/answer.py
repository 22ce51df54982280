"""The first answer of the README: an answer of a server as it was recorded, shortened.

Run: python -m tests.docs.generated.answer      (asks the models of the repository, and keeps the answer)
"""

import asyncio
import json
from typing import Any

from service.config.choices import BackendName
from tests.docs.generated.application import DIGIT, ROOT, client

KEPT = ROOT / "docs" / "assets" / "answer.json"
LAYER = "stem.conv"
_RUNS = 51


def render() -> str:
    """Return eight lines of the kept answer, with an ellipsis where one goes on."""
    answer = load()
    output = answer["outputs"][0]
    head = _line(_part(output, "name", "shape", "dtype"))[:-1]
    layer = next(layer for layer in answer["trace"]["layers"] if layer["name"] == LAYER)
    lines = [
        f'{{"model": "{answer["model"]}", "version": "{answer["version"]}", "request_id": "{answer["request_id"]}",',
        f' "predictions": [[{_line(answer["predictions"][0][0])}, …]],',
        f' "outputs": [{head}, "data": [[{output["data"][0][0]}, …]]}}],',
        f' "timing": {_line(answer["timing"])},',
        f' "trace": {{"total_ms": {answer["trace"]["total_ms"]}, "layers": [',
        f"   …, {_line(_part(layer, 'index', 'name', 'type', 'start_ms', 'duration_ms', 'share'))[:-1]},",
        f"       {_line(_part(layer, 'multiply_adds', 'bytes', 'backend', 'fused', 'precision'))[1:-1]}, …}},",
        "   …]}, …}",
    ]
    return "\n".join(["```text", *lines, "```"])


def load() -> dict[str, Any]:
    """Return the kept answer."""
    kept: dict[str, Any] = json.loads(KEPT.read_text())
    return kept


def _part(whole: dict[str, Any], *keys: str) -> dict[str, Any]:
    return {key: whole[key] for key in keys}


def _line(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


async def record(runs: int = _RUNS, backend: BackendName = "native") -> dict[str, Any]:
    """Return the answer, of several to the same request, whose run took the median time."""
    async with client(backend) as server:
        answers: list[dict[str, Any]] = [
            (await server.post("/infer?model=digits", content=DIGIT.read_bytes())).json() for _ in range(runs)
        ]
    return sorted(answers, key=lambda answer: float(answer["trace"]["total_ms"]))[runs // 2]


if __name__ == "__main__":
    KEPT.write_text(json.dumps(asyncio.run(record()), indent=1) + "\n")
