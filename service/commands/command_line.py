"""The command line: typer's list of commands, help and shell completion.

Only the command in use is imported; the others are known by their sentence in `COMMANDS`.
"""

import os
import re
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Annotated, Any

import typer
from pydantic import ValidationError

from service.collection import without_collection
from service.commands import COMMANDS
from service.commands.failure import CommandUsageError
from service.config.wording import problem_of
from service.errors import did_you_mean
from service.version import kuiper_version

_CONTEXT = {"help_option_names": ["-h", "--help"]}
_NAME = "kuiper"
_UsageError: Any = typer.BadParameter.__base__
"""All that can be wrong with arguments: a class of click's, of which newer releases of typer have a copy."""
_UNKNOWN = re.compile(r"No such (command|option):? '?([^'\s]*)")
"""What typer says of a name that it does not know, before names that are near."""
_WORDS = ("_TYPER_COMPLETE_ARGS", "COMP_WORDS")
"""Variables in which shells give the words that are to be completed."""


def run_typed(arguments: Sequence[str]) -> int:
    """Run a command; return the exit code of the process.

    Raises:
        CommandUsageError: an argument is wrong.
    """
    app = make_app(_asked_for(arguments))
    try:
        code = app(list(arguments), prog_name=_NAME, standalone_mode=False)
    except _UsageError as error:
        command = " ".join(filter(None, (_NAME, _asked_for(arguments))))
        raise CommandUsageError(f"{_problem_of(error)}; see {command} --help") from error
    except SystemExit as ended:  # shell completion
        code = ended.code
    return code if isinstance(code, int) else 0


def _problem_of(error: Any) -> str:
    """Return what is wrong with arguments, spelled as other errors are: what, the value, what is near."""
    faults = error.__cause__.errors() if isinstance(error.__cause__, ValidationError) else []
    if faults and error.param is not None:  # typer leaves out the value
        problem, given = problem_of(faults[0]).rstrip("."), repr(faults[0]["input"])
        got = "" if given in problem else f", got {given}"
        return f"{max(error.param.opts, key=len)}: {problem[:1].lower()}{problem[1:]}{got}"
    problem = " ".join(error.format_message().split()).rstrip(".")
    unknown = _UNKNOWN.match(problem)
    if unknown is None:
        return f"{problem[:1].lower()}{problem[1:]}"
    known = getattr(error, "possibilities", None) or COMMANDS
    return f"there is no {unknown[1]} {unknown[2]}{did_you_mean(unknown[2], known)}"


def make_app(name: str | None) -> typer.Typer:
    """Return the command line, with the arguments of one command, and the names of the others.

    Args:
        name: the command that is to be run, or whose arguments are to be completed; None for none.
    """
    app = typer.Typer(
        help="Serves PNNX models over HTTP, runs them, and shows what every layer does.",
        epilog="Example: kuiper infer models/digits models/digits/samples",
        context_settings=_CONTEXT,
        pretty_exceptions_enable=False,
        rich_markup_mode="rich",
    )
    app.callback()(_common)
    for each, text in COMMANDS.items():
        function, epilog = _load(each) if each == name else (_listed, None)
        described = _unwrapped(function.__doc__ or text) if each == name else text
        app.command(each, help=described, short_help=text, epilog=epilog)(function)
    return app


def _unwrapped(document: str) -> str:
    """Return a docstring with one line for each paragraph, since help has a width of its own, and without markup."""
    paragraphs = (" ".join(paragraph.split()) for paragraph in document.strip().split("\n\n"))
    return "\n\n".join(paragraphs).replace("[", r"\[")


def _asked_for(arguments: Sequence[str]) -> str | None:
    given = next((os.environ[variable] for variable in _WORDS if variable in os.environ), "")
    words = [*arguments, *given.split()[1:]]
    return next((word for word in words if word in COMMANDS), None)


def _load(name: str) -> tuple[Callable[..., None], str]:
    """Import a command; return the function whose parameters are its arguments, and the example that ends its help."""
    with without_collection():
        module = import_module(f"service.commands.{name}")
    return module.run, f"Example: {module.EXAMPLE}"


def _listed() -> None:
    """Stand for a command that is not in use."""


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
