"""Signals that come before the server runs. What comes later is in tests/service/server/test_shutdown.py."""

import signal
import subprocess
import sys
import threading

import pytest

from service import cli
from service.commands import dispatch

SOON = 60
WAITING = """
import signal, sys, types

def wait(arguments):
    print("importing is over", flush=True)
    signal.pause()

stand_in = types.ModuleType("service.commands.dispatch")
stand_in.run_command = wait
sys.modules["service.commands.dispatch"] = stand_in
from service.cli import main
sys.exit(main())
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("name", ["serve", "check"])
def test_signal_ends_the_command_with_one_line(number: signal.Signals, name: str) -> None:
    arguments = [sys.executable, "-c", WAITING, name]
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "importing is over\n"
        process.send_signal(number)
        _, errors = process.communicate(timeout=SOON)
    assert errors == f"kuiper: stopped by {number.name}\n"
    assert process.returncode == (0 if name == "serve" else 128 + number)


def test_signals_are_heard_before_the_server_is_imported() -> None:
    code = "import sys, service.cli; print([m for m in ('pydantic', 'numpy', 'engine', 'asyncio') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_command_leaves_signals_as_they_were(monkeypatch: pytest.MonkeyPatch) -> None:
    handlers: list[object] = []

    def run(arguments: list[str]) -> int:
        handlers.append(signal.getsignal(signal.SIGINT))
        assert arguments == ["--version"]
        return 7

    monkeypatch.setattr(dispatch, "run_command", run)
    before = signal.getsignal(signal.SIGINT)
    assert cli.main(["--version"]) == 7
    assert signal.getsignal(signal.SIGINT) is before
    assert handlers != [before]
    thread = threading.Thread(target=cli.main, args=(["--version"],))
    thread.start()
    thread.join()
    assert handlers[1] is before
