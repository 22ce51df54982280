"""Loads many models at the start: side by side, small ones first, so that the large ones do not hold up the others."""

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from service.config.machine import Machine
from service.repository.load_progress import LoadProgress
from service.repository.model_entry import WHOLE_MODEL, ModelEntry
from service.repository.model_loader import ModelLoader
from service.repository.model_source import SourceError

_LOAD_BYTES = 256 << 20
"""Memory for each model that is loaded at the same time as others: its weights, and the compiler at work."""


def max_at_once(machine: Machine) -> int:
    """Return how many models a machine can load at the same time, by its cores and its memory."""
    if machine.memory is None:
        return machine.cpus
    return max(1, min(machine.cpus, machine.memory // _LOAD_BYTES))


def load_side_by_side(
    loader: ModelLoader, folders: Mapping[str, Path], most: int, progress: LoadProgress
) -> dict[str, ModelEntry]:
    """Load models, each on one thread.

    Args:
        loader: loads a model.
        folders: name -> folder of each model.
        most: models that are loaded at the same time.
        progress: receives the progress; can stop it.

    Returns:
        The entry of each model, in the order of `folders`.

    Raises:
        LoadStoppedError: `progress` was stopped.
    """
    progress.expect(len(folders))
    with ThreadPoolExecutor(max(1, min(most, len(folders))), thread_name_prefix="loader") as threads:
        loads = {
            name: threads.submit(_load, loader, name, folders[name], progress)
            for name in sorted(folders, key=lambda name: _weight_bytes(folders[name]))
        }
        return {name: loads[name].result() for name in folders}


def _load(loader: ModelLoader, name: str, folder: Path, progress: LoadProgress) -> ModelEntry:
    entry = loader.load(name, folder, step=progress.step)
    try:
        loader.source.check(name)
    except SourceError as error:
        loader.source.drop(name)  # a poll takes it once its files rest
        entry = ModelEntry(name, unavailable={WHOLE_MODEL: str(error)})
    progress.loaded_one()
    return entry


def _weight_bytes(folder: Path) -> int:
    """Return how many bytes the weights of a model's versions take; 0 where that cannot be found out."""
    try:
        return sum(path.stat().st_size for path in (*folder.glob("*.bin"), *folder.glob("*/*.bin")))
    except OSError:
        return 0
