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
    """Return the kept answer as JSON, with an ellipsis where it goes on."""
    answer = load()
    best = ",\n    ".join(_line(one) for one in answer["predictions"][0][:2])
    output = answer["outputs"][0]
    data = ", ".join(map(str, output["data"][0][:3]))
    head = {key: output[key] for key in ("name", "shape", "dtype")}
    layer = next(layer for layer in answer["trace"]["layers"] if layer["name"] == LAYER)
    lines = [
        "{",
        *(f'  "{key}": {json.dumps(answer[key])},' for key in ("model", "version", "request_id")),
        '  "predictions": [[',
        f"    {best}, …]],",
        f'  "images": [{_line(answer["images"][0])}],',
        f'  "outputs": [{_line(head)[:-1]}, "data": [[{data}, …]]}}],',
        f'  "timing": {_line(answer["timing"])},',
        '  "trace": {',
        f'    "total_ms": {answer["trace"]["total_ms"]},',
        '    "layers": [',
        "      …,",
        f"      {_layer(layer)},",
        "      …]",
        "  }",
        "}",
    ]
    return "\n".join(["```text", *lines, "```"])


def load() -> dict[str, Any]:
    """Return the kept answer."""
    kept: dict[str, Any] = json.loads(KEPT.read_text())
    return kept


def _layer(layer: dict[str, Any]) -> str:
    parts = [f"{json.dumps(key)}: {_line(value)}" for key, value in layer.items()]
    lines, line = [], ""
    for part in parts:
        if line and len(line) + len(part) > 88:
            lines.append(line)
            line = ""
        line += f", {part}" if line else part
    return "{" + ",\n       ".join([*lines, line]) + "}"


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
