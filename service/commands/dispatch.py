"""Runs a command, and prints what goes wrong in it: one line, and an exit code."""

import io
import os
import sys
from collections.abc import Sequence

from engine.compiler.memory.memory_guard import watch_memory
from service.commands.command_line import run_typed
from service.commands.failure import error_text, exit_code_of
from service.config.cgroups import memory_left, memory_limit


def run_command(arguments: Sequence[str]) -> int:
    """Run the command with these arguments; return the exit code of the process.

    Where it fails for a reason that its user can mend, one line says so.
    """
    _print_what_can_be()
    if memory_limit() is not None:
        watch_memory(memory_left)
    try:
        return run_typed(arguments or ("--help",))
    except BrokenPipeError:
        return _end_unread()
    except Exception as error:
        code = exit_code_of(error)
        if code is None:
            raise
        print(f"kuiper: {error_text(error)}", file=sys.stderr)
        return code


def _print_what_can_be() -> None:
    """Have characters that standard output does not know, bars in a terminal of ASCII, end no command."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        is_unicode = sys.stdout.encoding.lower().startswith("utf")
        sys.stdout.reconfigure(errors="surrogateescape" if is_unicode else "replace")


def _end_unread() -> int:
    """Return the exit code of a command whose output nobody reads any more, and drop what is not written yet."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)
    return 1
