"""Chooses the command that was asked for, and words what goes wrong in it: one line, and an exit code."""

import io
import os
import sys
from collections.abc import Callable, Sequence
from importlib import import_module

from service.collection import without_collection
from service.commands import PARSED_BY_ARGPARSE
from service.config.cgroups import memory_left, memory_limit


def run_command(arguments: Sequence[str]) -> int:
    """Run the command with these arguments; return the exit code of the process.

    Raises:
        SystemExit: an argument is wrong, with exit code 2, or help was asked for, with exit code 0.
    """
    _print_what_can_be()
    if memory_limit() is not None:
        # help and shell completion need no engine
        from engine import watch_memory  # noqa: PLC0415

        watch_memory(memory_left)
    name, *rest = arguments or ("--help",)
    if name in PARSED_BY_ARGPARSE:
        return _guarded(lambda: _run_parsed(name, rest))
    # it takes as long as all else that a server imports before it opens its port
    from service.commands.command_line import run_typed  # noqa: PLC0415

    return _guarded(lambda: run_typed([name, *rest]))


def _run_parsed(name: str, arguments: Sequence[str]) -> int:
    with without_collection():
        module = import_module(f"service.commands.{name}")
    return int(module.main(arguments))


def _print_what_can_be() -> None:
    """Have characters that standard output does not know, bars in a terminal of ASCII, end no command."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        is_unicode = sys.stdout.encoding.lower().startswith("utf")
        sys.stdout.reconfigure(errors="surrogateescape" if is_unicode else "replace")


def _guarded(command: Callable[[], int]) -> int:
    """Run a command; where it fails for a reason that its user can mend, print that in one line."""
    try:
        return command()
    except BrokenPipeError:
        return _end_unread()
    except Exception as error:
        # the classes of all errors that are expected; they lie in all rooms
        from service.commands.failure import exit_code_of  # noqa: PLC0415

        code = exit_code_of(error)
        if code is None:
            raise
        print(f"kuiper: {error}", file=sys.stderr)
        return code


def _end_unread() -> int:
    """Return the exit code of a command whose output nobody reads any more, and drop what is not written yet."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)
    return 1
