"""The commands and their arguments, as typer reads them; the options of `kuiper serve` are the settings."""

import inspect
from collections import Counter
from collections.abc import Iterator
from functools import cache
from importlib import import_module

from typer.main import get_command

from service.commands import COMMANDS
from service.commands.command_line import make_app
from tests.docs.generated.markdown import definitions

_WITH_PAGES = ("serve", "compile", "check", "quantize")
"""Commands whose sections are written by hand, around the list of arguments."""
_OF_SETTINGS = ("serve", "compile")
_COMMON = 3
"""Number of commands that share an argument from which on it is shown once, for all."""


def render_common() -> str:
    """Return the list of the arguments that several commands share."""
    return definitions(_common())


def render() -> str:
    """Return the list of arguments of `kuiper check`."""
    return _list("check")


def render_quantize() -> str:
    """Return the list of arguments of `kuiper quantize`."""
    return _list("quantize")


def render_commands() -> str:
    """Return a section for each of the other commands: what it does, its example and its arguments."""
    return "\n\n".join(
        "\n\n".join(filter(None, _section(name))) for name in COMMANDS if name not in _WITH_PAGES
    )


def _list(name: str) -> str:
    return definitions(row for row in _arguments(name) if row not in _common())


@cache
def _common() -> tuple[tuple[str, str, str], ...]:
    counts = Counter(row for name in COMMANDS if name not in _OF_SETTINGS for row in _arguments(name))
    return tuple(row for row, count in counts.items() if count >= _COMMON)


def _section(name: str) -> Iterator[str]:
    module = import_module(f"service.commands.{name}")
    yield f"## kuiper {name}"
    yield inspect.cleandoc(module.run.__doc__)
    mark = f"<!-- example: {module.EXAMPLE_MARK} -->\n" if hasattr(module, "EXAMPLE_MARK") else ""
    yield f"{mark}```sh\n{module.EXAMPLE}\n```"
    yield _list(name)


def _arguments(name: str) -> Iterator[tuple[str, str, str]]:
    group = get_command(make_app(name))
    for parameter in group.commands[name].params:  # type: ignore[attr-defined]  # it is a group
        if parameter.param_type_name == "argument":
            name = parameter.metavar or parameter.name.upper()
            several = f"{name}…" if parameter.nargs == -1 else name
            spelling = several if parameter.required else f"[{several}]"
        else:
            spelling = " ".join(
                [*parameter.opts, *parameter.secondary_opts, *[parameter.metavar or ""]]
            ).strip()
        yield spelling, "", (parameter.help or "").removesuffix(".")
