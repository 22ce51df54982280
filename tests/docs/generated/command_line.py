"""The commands and their arguments, from what reads them; the flags of `kuiper serve` are the settings."""

import argparse
import inspect
from collections.abc import Iterator
from importlib import import_module

from typer.main import get_command

from engine.calibration.command import make_parser as make_quantize_parser
from engine.check.command import make_parser
from service.commands import COMMANDS, PARSED_BY_ARGPARSE
from service.commands.command_line import make_app
from tests.docs.generated.markdown import table


def render() -> str:
    """Return the table of arguments of `kuiper check`."""
    return _table(make_parser())


def render_quantize() -> str:
    """Return the table of arguments of `kuiper quantize`."""
    return _table(make_quantize_parser())


def _table(parser: argparse.ArgumentParser) -> str:
    actions = [action for action in parser._actions if action.dest != "help"]
    return table(
        ["argument", "meaning"], [[f"`{_spelling(action)}`", action.help or ""] for action in actions]
    )


def _spelling(action: argparse.Action) -> str:
    if not action.option_strings:
        return f"[{action.dest.upper()}]" if action.nargs == "?" else action.dest.upper()
    metavar = action.metavar or "|".join(map(str, action.choices or ())) or action.dest.upper()
    return " ".join([action.option_strings[-1], *([metavar] if isinstance(metavar, str) else metavar)])


def render_commands() -> str:
    """Return a section for each command that typer reads: what it does, its example and its arguments."""
    names = [name for name in COMMANDS if name not in PARSED_BY_ARGPARSE]
    return "\n\n".join("\n\n".join(_section(name)) for name in names)


def _section(name: str) -> Iterator[str]:
    module = import_module(f"service.commands.{name}")
    yield f"## kuiper {name}"
    yield inspect.cleandoc(module.run.__doc__)
    mark = f"<!-- example: {module.EXAMPLE_MARK} -->\n" if hasattr(module, "EXAMPLE_MARK") else ""
    yield f"{mark}```sh\n{module.EXAMPLE}\n```"
    yield table(["argument", "meaning"], list(_arguments(name)))


def _arguments(name: str) -> Iterator[list[str]]:
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
        yield [f"`{spelling}`", parameter.help or ""]
