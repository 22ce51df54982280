"""Results on every processor that the machine at hand can imitate: instruction sets, and numbers of CPUs.

Each check runs in a process of its own. `KUIPER_TARGET` chooses the instruction set; those that the processor lacks are
emulated (`engine/compiler/emulation.py`), but for the examples, whose commands are not emulated.
"""

import asyncio
import os
import shutil
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest.mock import patch

import anyio
import pytest
from httpx import ASGITransport, AsyncClient

from engine import describe_host
from engine.compiler.emit.target import target_named
from service.app import create_app
from service.config import machine
from service.config.settings import Settings
from tests.docs.checkout import ROOT, checkout
from tests.docs.markdown import blocks
from tests.docs.runner import Runner, pages
from tests.engine.compiler.emulation import emulating, is_emulated
from tests.golden.network_data import arrays, open_network
from tests.golden.test_networks import test_network_matches_pytorch as check_network
from tests.golden.test_networks import test_threads_do_not_change_results as check_threads
from tests.golden.test_rounded_networks import test_errors_are_those_of_rounding as check_rounded_network

TARGETS = ("amx", "bf16", "vnni", "avxvnni", "avx512", "avx2", "sse", "neon")
DIGITS = ROOT / "models" / "digits"
for_every_target = pytest.mark.parametrize("target", TARGETS)


def run_here(check: str, **variables: str) -> None:
    """Call a function of this module in another process, with variables of its environment."""
    outside = {name: value for name, value in os.environ.items() if not name.startswith("KUIPER_")}
    done = subprocess.run(
        [sys.executable, "-c", f"from tests import test_processors; test_processors.{check}"],
        cwd=ROOT,
        env={**outside, "KUIPER_CACHE": "", **variables},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def check_networks(target: str) -> None:
    """Compare networks in each precision with PyTorch's results: convolutions, depthwise ones, and attention."""
    with emulating(), patch("engine.compiler.emit.target.supported_targets", lambda: [target_named(target)]):
        host = describe_host()
        assert host is not None
        assert host.vectors == target
        for name in ("mobilenet_v2", "vit"):
            check_network(name, "native", "file")
        check_threads("vit")
        for precision in ("bf16", "int8"):
            check_rounded_network("unet", precision)


def check_cpus(count: int, is_real: bool) -> None:
    """Serve a model and share a run among threads with this many CPUs."""
    if is_real:
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:count])
    with ExitStack() as stack:
        stack.enter_context(patch.object(machine, "cpu_quota", lambda _: None))
        if not is_real:
            stack.enter_context(patch.object(os, "sched_getaffinity", lambda _: set(range(count))))
        settings, shared = Settings(), Settings(workers=2)
        assert (settings.worker_count, settings.thread_count) == (count, 1)
        assert (shared.worker_count, shared.thread_count) == (2, max(1, count // 2))
        assert anyio.run(read_digits) == [str(digit) for digit in range(10)]
    inputs = arrays("vit", "file", "in")
    alone, *others = (open_network("vit", "native", threads).forward(inputs) for threads in (1, 2, 16))
    for outputs in others:
        assert [output.tobytes() for output in outputs] == [output.tobytes() for output in alone]


async def read_digits() -> list[str]:
    """Serve the digits with default settings; returns what the server reads in the samples, sent all at once."""
    with TemporaryDirectory() as folder:
        shutil.copytree(DIGITS, Path(folder) / "digits")
        app = create_app(Settings(models=Path(folder)))
        async with (
            app.router.lifespan_context(app),
            AsyncClient(transport=ASGITransport(app), base_url="http://test") as client,
        ):
            samples = [(DIGITS / "samples" / f"{digit}.png").read_bytes() for digit in range(10)]
            responses = await asyncio.gather(
                *(client.post("/infer?model=digits&top_k=1", files={"file": sample}) for sample in samples)
            )
    return [response.json()["predictions"][0][0]["label"] for response in responses]


@for_every_target
def test_networks_match_pytorch(target: str) -> None:
    run_here(f"check_networks({target!r})", KUIPER_TARGET=target)


@for_every_target
def test_examples_that_choose_a_precision_run(
    target: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if is_emulated(target_named(target)):
        pytest.skip(f"this processor lacks the instructions of {target}")
    monkeypatch.setenv("KUIPER_TARGET", target)
    found = [
        (page, block)
        for page in pages()
        for block in blocks(page)
        if block.language in ("console", "sh")
        and "kuiper check" in block.text
        and "--precision" in block.text
    ]
    assert found
    with checkout(tmp_path, "numpy") as place:
        for page, block in found:
            Runner(page.name, place, False, {}, lambda: 0).run(block)


@pytest.mark.parametrize(("count", "is_real"), [(1, True), (16, False)])
def test_number_of_cpus(count: int, is_real: bool) -> None:
    if not hasattr(os, "sched_setaffinity"):
        pytest.skip("this platform cannot bind a process to CPUs")
    run_here(f"check_cpus({count}, {is_real})")
