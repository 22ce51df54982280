"""`kuiper compile MODEL…`: compiles models ahead, so that servers which start later with the same settings need not."""

import sys
from collections.abc import Iterable

from engine import code_folder_in_use
from service.config.settings import Settings
from service.repository.load_progress import LoadProgress
from service.repository.loaded_model import LoadedModel
from service.repository.repository import RepositoryError, load_entries
from service.telemetry.load_report import LoadReport

GOOD, BAD = 0, 1
"""Exit codes."""


def compile_ahead(settings: Iterable[Settings]) -> int:
    """Load models as a server does that starts, and keep what is compiled; returns the exit code.

    Args:
        settings: those of each server to compile for: which folder of models, and how they are loaded.
    """
    if code_folder_in_use() is None:
        print("error: KUIPER_CACHE is empty, or there is no compiler: nothing would be kept", file=sys.stderr)
        return BAD
    results = [_compile(each) for each in settings]
    folder = code_folder_in_use()
    if folder is None:
        print("error: the folder that KUIPER_CACHE names cannot be written", file=sys.stderr)
        return BAD
    print(f"kept in {folder}")
    return GOOD if all(results) else BAD


def _compile(settings: Settings) -> bool:
    """Compile the models of one folder; tells whether all of it can be used."""
    try:
        entries = load_entries(settings, LoadProgress(LoadReport().tell))
    except RepositoryError as error:
        print(f"error: {error}", file=sys.stderr)
        return False
    models = [model for entry in entries.values() for model in entry.versions.values()]
    for model in models:
        print(_describe(model))
    is_whole = not any(entry.unavailable for entry in entries.values())
    return is_whole and not any(model.graph.verification.refused_count for model in models)


def _describe(model: LoadedModel) -> str:
    compiled = sum(result.is_compiled for result in model.warmed_up)
    refused = model.graph.verification.refused_count
    text = f"{model.name}, version {model.version}: {compiled} programs"
    return f"{text}, and {refused} that are not used: see the log" if refused else text
