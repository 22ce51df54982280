"""Runs a model on files through the server's own application, in this process: its responses are those of a server."""

import glob
from asyncio import Task, create_task
from collections import deque
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx
import numpy as np

from engine import model_folders
from engine.check import UNREADABLE, array_problem
from service.app import create_app
from service.client import AsyncClient, ClientError, InferResponse
from service.client.inputs import Inputs
from service.commands.failure import CommandError, error_text, url_hint
from service.commands.opening import find_model, is_pipeline
from service.config.fitting import fit_to_memory
from service.config.image_formats import KNOWN_FORMATS
from service.config.machine import this_machine
from service.config.settings import Settings, load_settings
from service.telemetry.logging import configure_logging
from service.telemetry.status_line import show_status

_ARRAYS = (".npy", ".npz")
_SUFFIXES = frozenset((*(f".{name}" for name in KNOWN_FORMATS), ".jpg", ".tif", *_ARRAYS))
_ADDRESS = "http://127.0.0.1"
_NOT_HERE = ("api_keys", "api_keys_file", "admin_keys", "admin_keys_file", "ssl_certfile", "ssl_keyfile")
"""Settings that are about who may call a server."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a file.

    Attributes:
        file: the file.
        response: the response; None where there is none.
        error: why there is none, or why it was not drawn; None where nothing is wrong.
        drawn: the picture that was written; None for none.
    """

    file: Path
    response: InferResponse | None
    error: str | None = None
    drawn: Path | None = None


def expand_files(names: Sequence[str]) -> list[Path]:
    """Return the files that are meant, each once: of folders all pictures and arrays within, of globs what matches.

    Raises:
        CommandError: a name means no file.
    """
    found: dict[Path, None] = {}
    for name in names:
        path = Path(name)
        if path.is_dir():
            matches = sorted(each for each in path.rglob("*") if each.suffix.lower() in _SUFFIXES)
        else:
            matches = [path] if path.exists() else sorted(map(Path, glob.glob(name, recursive=True)))  # noqa: PTH207
        if not matches:
            expected = ", ".join(sorted(_SUFFIXES))
            raise CommandError(
                f"{name}: there is no such file, or none in it; expected files ending in {expected}{url_hint(name)}"
            )
        found.update(dict.fromkeys(matches))
    return list(found)


class Inference:
    """A model that files are run through.

    Args:
        model: its folder, its `.param` file or its name.
        top_k: predictions for each item; None for as many as are configured.
        drawn: folder that drawn pictures go to, which exists; None for none.

    Attributes:
        name: its name, where its folder is served with others; None where it is the only one.

    Raises:
        CommandError: there is no such model, or there are several.
        ModelConfigError: its `model.toml` cannot be read.
        SettingsError: a setting is wrong.
    """

    def __init__(self, model: str, top_k: int | None = None, drawn: Path | None = None) -> None:
        path = find_model(model)
        self.name: str | None = None
        if is_pipeline(path):
            self.name = path.resolve().name
            path = path.resolve().parent  # its steps are models beside it
        elif path.is_dir() and len(names := list(model_folders(path))) > 1:
            raise CommandError(f"{model}: holds several models; name one of them: {', '.join(names)}")
        self._settings = _settings(path if path.is_dir() else path.parent, self.name is not None)
        self._top_k = top_k
        self._drawn = drawn

    async def outcomes(self, files: Sequence[Path]) -> AsyncIterator[Outcome]:
        """Run the model on files, several at a time; yield what comes of each, in order.

        Raises:
            RepositoryError: the model is broken.
        """
        async with self.client() as client:
            running: deque[Task[Outcome]] = deque()
            for file in files:
                running.append(create_task(self._outcome(client, file)))
                if len(running) > 2 * self._settings.worker_count:
                    yield await running.popleft()
            while running:
                yield await running.popleft()

    @asynccontextmanager
    async def client(self) -> AsyncIterator[AsyncClient]:
        """Return a client of the server's application with the model, within this process.

        Raises:
            RepositoryError: the model is broken.
        """
        configure_logging("error", "text")
        app = create_app(self._settings)
        transport = httpx.ASGITransport(app)
        try:
            async with app.router.lifespan_context(app), AsyncClient(_ADDRESS, transport=transport) as client:
                yield client
        finally:
            show_status("")

    async def _outcome(self, client: AsyncClient, file: Path) -> Outcome:
        response: InferResponse | None = None
        try:
            inputs = read_input(file)
            response = await client.predict(inputs, top_k=self._top_k, model=self.name)
            return Outcome(file, response, drawn=await self._draw(client, inputs, file))
        except (ClientError, CommandError, OSError, ValueError) as error:
            return Outcome(file, response, error_text(error))

    async def _draw(self, client: AsyncClient, inputs: Inputs, file: Path) -> Path | None:
        if self._drawn is None or not isinstance(inputs, bytes):
            return None
        picture = await client.render(inputs, model=self.name)
        target = _free(self._drawn / f"{file.stem}.png")
        target.write_bytes(picture)
        return target


def _settings(folder: Path, skip_broken: bool) -> Settings:
    settings = load_settings({"models": folder, "skip_broken": skip_broken})
    here = {name: type(settings).model_fields[name].default for name in _NOT_HERE}
    return fit_to_memory(settings.model_copy(update=here | {"otel": "off"}), this_machine().memory)


def read_input(file: Path) -> Inputs:
    """Return the arrays of a file, or the bytes of a picture.

    Raises:
        CommandError: it holds no arrays, or such as do not fit into memory.
        OSError: it cannot be read.
    """
    if file.suffix.lower() not in _ARRAYS:
        return file.read_bytes()
    try:
        with file.open("rb") as opened:
            loaded = np.load(opened, allow_pickle=False)
            return loaded if isinstance(loaded, np.ndarray) else dict(loaded)
    except UNREADABLE as error:
        raise CommandError(array_problem(error)) from error


def _free(path: Path) -> Path:
    """Return a path that is not taken: files of the same name may come from several folders."""
    number = 2
    free = path
    while free.exists():
        free = path.with_stem(f"{path.stem}-{number}")
        number += 1
    return free
