"""What most processes are asked needs no FastAPI."""

import json
import subprocess
import sys
from pathlib import Path

from tests.service.server.process import ROOT, SOON

ASKED = """
import asyncio, json, sys
from pathlib import Path
from httpx import ASGITransport, AsyncClient
from service.app import create_app
from service.config.settings import Settings

async def ask() -> None:
    app = create_app(Settings(models=Path(sys.argv[1]), workers=1))
    statuses = []
    transport = ASGITransport(app)
    async with app.router.lifespan_context(app), AsyncClient(transport=transport, base_url="http://t") as client:
        for path in ("/livez", "/readyz", "/v2/health/live", "/v2/health/ready", "/metrics"):
            statuses += [(await client.get(path)).status_code, (await client.head(path)).status_code]
        body = {"inputs": [{"data": [-1, 0, 1]}]}
        statuses.append((await client.post("/infer?model=vector", json=body)).status_code)
        before = sorted({"fastapi", "service.api", "service.routes"} & sys.modules.keys())
        statuses.append((await client.get("/models")).status_code)
        print(json.dumps([statuses, before, "fastapi" in sys.modules]))

asyncio.run(ask())
"""


def test_fastapi_is_imported_once_a_request_needs_it(models: Path) -> None:
    ended = subprocess.run(
        [sys.executable, "-c", ASKED, str(models)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=SOON,
        check=True,
    )
    assert json.loads(ended.stdout) == [[200] * 12, [], True]
