"""`kuiper compile MODEL…`: compiles models ahead, so that servers which start later with the same settings need not."""

import argparse
import compileall
import json
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import engine
import service
from engine import code_folder_in_use
from engine.command_parser import CommandParser
from service.commands.setting_flags import add_flags, settings_of
from service.config.settings import Settings
from service.repository.load_progress import LoadProgress
from service.repository.loaded_model import LoadedModel
from service.repository.repository import RepositoryError, load_entries
from service.telemetry.load_report import LoadReport
from service.telemetry.logging import configure_logging

GOOD, BAD = 0, 1
"""Exit codes."""

_SETTINGS = frozenset(
    {
        "config",
        "models",
        "skip_broken",
        "backend",
        "verify",
        "precision",
        "workers",
        "threads",
        "max_batch_size",
        "max_tensor_elements",
        "max_run_bytes",
        "max_build_seconds",
        "log_level",
        "log_format",
    }
)
"""Settings of a server that decide what it compiles."""


def main(arguments: Sequence[str]) -> int:
    """Compile models ahead; return the exit code of the process.

    Raises:
        SettingsError: a setting is wrong.
        SystemExit: an argument is wrong, with exit code 2, or help was asked for.
    """
    flags = vars(make_parser().parse_args(arguments))
    as_json = flags.pop("json", False)
    given = [{"models": folder} for folder in flags.pop("model")] or [{}]
    settings = [settings_of({**flags, **models, "warm_up": True}) for models in given]
    configure_logging(settings[0].log_level, settings[0].log_format)
    return compile_ahead(settings, as_json)


def make_parser() -> argparse.ArgumentParser:
    """Return the parser of the arguments: folders, and those settings that decide what a server compiles."""
    parser = CommandParser(
        prog="kuiper compile",
        description="Compile models as a server with the same settings does when it starts, and keep the code in the "
        "folder that KUIPER_CACHE names, so that later starts need not.",
        epilog="Exit code: 0 if all is compiled and kept, 1 if a model is broken, a program is not used, or nothing "
        "can be kept, 2 if a setting is wrong. Example: kuiper compile models",
        argument_default=argparse.SUPPRESS,
        allow_abbrev=False,
    )
    parser.add_argument(
        "model",
        type=Path,
        nargs="*",
        default=[],
        help="the folder of a model, or a folder of models (default: the one that the setting names)",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON document, for programs")
    add_flags(parser, _SETTINGS)
    return parser


def compile_ahead(settings: Iterable[Settings], as_json: bool = False) -> int:
    """Load models as a server does that starts, and keep what is compiled; returns the exit code.

    Python's byte code of the server itself is written as well, beside its source, where that is missing and can be.

    Args:
        settings: those of each server to compile for: which folder of models, and how they are loaded.
        as_json: whether to print one JSON document.
    """
    if code_folder_in_use() is None:
        print("error: KUIPER_CACHE is empty, or there is no compiler: nothing would be kept", file=sys.stderr)
        return BAD
    compile_modules([*engine.__path__, *service.__path__])
    tell: Callable[[LoadedModel], None] = _ignore if as_json else _print
    results = [_compile(each, tell) for each in settings]
    folder = code_folder_in_use()
    if folder is None:
        print("error: the folder that KUIPER_CACHE names cannot be written", file=sys.stderr)
        return BAD
    if as_json:
        models = [_describe(model) for result in results for model in result.models]
        print(json.dumps({"models": models, "kept_in": str(folder)}, indent=2))
    else:
        print(f"kept in {folder}")
    return GOOD if all(result.is_good for result in results) else BAD


def compile_modules(folders: Iterable[str]) -> None:
    """Write Python's byte code beside its source, where that can be, even if Python is told to write none.

    Without it, each start would compile half a thousand modules.
    """
    for folder in folders:
        compileall.compile_dir(folder, quiet=2)


@dataclass(frozen=True, slots=True)
class _Compiled:
    """The models of one folder, and whether all of it can be used."""

    models: list[LoadedModel]
    is_good: bool


def _compile(settings: Settings, tell: Callable[[LoadedModel], None]) -> _Compiled:
    try:
        entries = load_entries(settings, LoadProgress(LoadReport().tell))
    except RepositoryError as error:
        print(f"error: {error}", file=sys.stderr)
        return _Compiled([], is_good=False)
    models = [model for entry in entries.values() for model in entry.versions.values()]
    for model in models:
        tell(model)
    is_whole = not any(entry.unavailable for entry in entries.values())
    return _Compiled(models, is_whole and not any(model.graph.verification.refused_count for model in models))


def _describe(model: LoadedModel) -> dict[str, Any]:
    return {
        "name": model.name,
        "version": model.version,
        "programs": sum(result.is_compiled for result in model.warmed_up),
        "refused": model.graph.verification.refused_count,
    }


def _print(model: LoadedModel) -> None:
    found = _describe(model)
    programs = "1 program" if found["programs"] == 1 else f"{found['programs']} programs"
    text = f"{found['name']}, version {found['version']}: {programs}"
    refused = f", and {found['refused']} that are not used: see the log" if found["refused"] else ""
    print(text + refused)


def _ignore(model: LoadedModel) -> None:
    del model
