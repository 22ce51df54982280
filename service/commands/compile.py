"""`kuiper compile MODEL…`: compiles models ahead, so that servers which start later with the same settings need not."""

import compileall
import sys
from collections.abc import Callable, Iterable
from typing import Annotated, Any

import typer

import engine
import service
from engine import code_folder_in_use, finish_compiling
from service.commands.failure import BAD, CommandError
from service.commands.opening import model_folder
from service.commands.output import Json, print_json
from service.commands.setting_options import settings_of, takes_settings
from service.config.settings import Settings
from service.repository.load_progress import LoadProgress
from service.repository.loaded_model import LoadedModel
from service.repository.repository import RepositoryError, load_entries
from service.telemetry.load_report import LoadReport
from service.telemetry.logging import configure_logging
from service.telemetry.status_line import show_status

GOOD = 0
"""Exit code of a command that did all."""

_SETTINGS = frozenset(
    {
        "config",
        "models",
        "skip_broken",
        "backend",
        "precision",
        "workers",
        "threads",
        "max_batch_size",
        "max_body_bytes",
        "max_run_bytes",
        "log_level",
        "log_format",
    }
)
"""Settings of a server that decide what it compiles."""


EXAMPLE = "kuiper compile models"


@takes_settings(_SETTINGS)
def run(
    model: Annotated[
        list[str] | None,
        typer.Argument(
            help="folder or name of a model, or folder of models; by default the folder that the settings name",
            show_default=False,
        ),
    ] = None,
    *,
    json: Json = False,
    **options: Any,
) -> None:
    """Compile models as a server with the same settings does when it starts, and keep the code for later starts.

    The code is kept in the folder that KUIPER_CACHE names. The exit code is 0 if all is compiled and kept, 1 if a model
    is broken, a program is not used, or nothing can be kept.
    """
    options["warm_up"] = True
    given = [{"models": model_folder(name)} for name in model or ()] or [{}]
    settings = [settings_of({**options, **models}) for models in given]
    configure_logging(settings[0].log_level, settings[0].log_format)
    code = compile_ahead(settings, json)
    if code:
        raise typer.Exit(code)


def compile_ahead(settings: Iterable[Settings], as_json: bool = False) -> int:
    """Load models as a server does that starts, and keep what is compiled; returns the exit code.

    Python's byte code of the server itself is written as well, beside its source, where that is missing and can be.

    Args:
        settings: those of each server to compile for: which folder of models, and how they are loaded.
        as_json: whether to print one JSON document.

    Raises:
        CommandError: nothing can be kept.
    """
    if code_folder_in_use() is None:
        raise CommandError("KUIPER_CACHE is empty, or there is no compiler: nothing would be kept")
    compile_modules([*engine.__path__, *service.__path__])
    show: Callable[[LoadedModel], None] = _ignore if as_json else _print
    results = [_compile(each, show) for each in settings]
    show_status("compiling for other batch sizes")
    finish_compiling()
    show_status("")
    folder = code_folder_in_use()
    if folder is None:
        raise CommandError("the folder that KUIPER_CACHE names cannot be written")
    if as_json:
        models = [_describe(model) for found, _ in results for model in found]
        print_json({"models": models, "kept_in": str(folder)})
    elif any(found for found, _ in results):
        print(f"kept in {folder}")
    return GOOD if all(is_good for _, is_good in results) else BAD


def compile_modules(folders: Iterable[str]) -> None:
    """Write Python's byte code beside its source where possible, even with PYTHONDONTWRITEBYTECODE.

    Without it, each start would compile half a thousand modules.
    """
    for folder in folders:
        compileall.compile_dir(folder, quiet=2)


def _compile(settings: Settings, show: Callable[[LoadedModel], None]) -> tuple[list[LoadedModel], bool]:
    """Return the models of one folder, and whether all of it can be used."""
    try:
        entries = load_entries(settings, LoadProgress(LoadReport().show))
    except RepositoryError as error:
        print(f"kuiper: {error}", file=sys.stderr)
        return [], False
    models = [model for entry in entries.values() for model in entry.versions.values() if not model.steps]
    for model in models:
        show(model)
    is_whole = not any(entry.unavailable for entry in entries.values())
    return models, is_whole and not any(model.graph.verification.refused_count for model in models)


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
