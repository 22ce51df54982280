"""The command line as typer sees it: the list of commands, help and shell completion.

Only the command that was asked for is imported; the others are known by what `COMMANDS` says of them.
"""

import argparse
import inspect
import os
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import typer

from service.commands import COMMANDS, PARSED_BY_ARGPARSE
from service.commands.failure import CommandUsageError
from service.version import kuiper_version

_CONTEXT = {"help_option_names": ["-h", "--help"]}
_NAME = "kuiper"
_UsageError: Any = typer.BadParameter.__base__
"""All that can be wrong with arguments: a class of click's, of which newer releases of typer have a copy."""
_WORDS = ("_TYPER_COMPLETE_ARGS", "COMP_WORDS")
"""Variables in which shells give the words that are to be completed."""


def run_typed(arguments: Sequence[str]) -> int:
    """Run a command of typer's; return the exit code of the process.

    Raises:
        CommandUsageError: an argument is wrong.
    """
    app = make_app(_asked_for(arguments))
    try:
        code = app(list(arguments), prog_name=_NAME, standalone_mode=False)
    except _UsageError as error:
        command = error.ctx.command_path if error.ctx is not None else _NAME
        problem = error.format_message().rstrip(".")
        raise CommandUsageError(
            f"{problem[:1].lower()}{problem[1:]}; {command} --help tells what there is"
        ) from error
    except SystemExit as ended:  # shell completion
        code = ended.code
    return code if isinstance(code, int) else 0


def make_app(name: str | None) -> typer.Typer:
    """Return the command line, with all that belongs to one command, and the names of the others.

    Args:
        name: the command that is to be run, or whose arguments are to be completed; None for none.
    """
    app = typer.Typer(
        help="Serves PNNX models over HTTP, runs them, and shows what every layer does.",
        epilog="Example: kuiper infer models/digits models/digits/samples",
        context_settings=_CONTEXT,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
    )
    app.callback()(_common)
    for each, text in COMMANDS.items():
        function, epilog = _load(each) if each == name else (_listed, None)
        app.command(
            each, help=None if each == name and function.__doc__ else text, short_help=text, epilog=epilog
        )(function)
    return app


def _asked_for(arguments: Sequence[str]) -> str | None:
    given = next((os.environ[variable] for variable in _WORDS if variable in os.environ), "")
    words = [*arguments, *given.split()[1:]]
    return next((word for word in words if word in COMMANDS), None)


def _load(name: str) -> tuple[Callable[..., None], str | None]:
    """Import a command; return the function whose parameters are its arguments, and the example that ends its help."""
    module = import_module(f"service.commands.{name}")
    if name in PARSED_BY_ARGPARSE:
        return _with_flags_of(module.make_parser()), None
    return module.run, f"Example: {module.EXAMPLE}"


def _listed() -> None:
    """Stand for a command that is not asked for."""


def _with_flags_of(parser: argparse.ArgumentParser) -> Callable[..., None]:
    """Return a function with the flags of a parser as parameters: shells complete them, and argparse reads them."""

    def described(**_: Any) -> None:
        """Stand for the command, which `service.commands.dispatch` runs itself."""

    flags = [
        _parameter(action) for action in parser._actions if action.option_strings and action.dest != "help"
    ]
    described.__doc__ = parser.description
    described.__annotations__ = {flag.name: flag.annotation for flag in flags}
    described.__signature__ = inspect.Signature(flags)  # type: ignore[attr-defined]  # as PEP 362 has it
    return described


def _parameter(action: argparse.Action) -> inspect.Parameter:
    is_path = action.type is Path or action.metavar in ("DIR", "FILE")
    kind: Any = bool | None if action.nargs == 0 else Path | None if is_path else str | None
    annotation = Annotated[kind, typer.Option("/".join(action.option_strings), help=action.help)]
    return inspect.Parameter(action.dest, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=annotation)


def _show_version(is_asked: bool) -> None:
    if is_asked:
        typer.echo(f"{_NAME} {kuiper_version()}")
        raise typer.Exit


def _common(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and exit."),
    ] = False,
) -> None:
    del version
