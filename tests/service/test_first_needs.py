"""What the first requests need is imported when a server is ready, and not before."""

import json
import subprocess
import sys
from pathlib import Path

from tests.service.server.process import ROOT, SOON

STARTED = """
import asyncio, json, sys
from pathlib import Path
import service.commands.serve
from service.app import create_app
from service.config.settings import Settings
from service.lifecycle import Phase
from service.lifespan import services_of
import service.server.server

LATER = ["PIL", "anyio._backends._asyncio", "numpy.ma", "prometheus_client", "service.rollback_news"]

def imported():
    return [name for name in LATER if name in sys.modules]

async def start() -> None:
    app = create_app(Settings(models=Path(sys.argv[1]), workers=1))
    seen = []
    lifecycle = services_of(app).lifecycle
    started = lifecycle.started
    lifecycle.started = lambda: (seen.append(imported()), started())
    async with app.router.lifespan_context(app):
        print(json.dumps([*seen, imported()]))

asyncio.run(start())
"""


def test_what_decodes_pictures_is_imported_once_the_server_is_ready(models: Path) -> None:
    ended = subprocess.run(
        [sys.executable, "-c", STARTED, str(models)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=SOON,
        check=True,
    )
    before, after = json.loads(ended.stdout)
    assert before == []
    assert {"PIL", "anyio._backends._asyncio", "prometheus_client"} <= {*after}
