"""`kuiper models`: the models of a folder, or of a server."""

from pathlib import Path
from typing import Annotated, Any

import typer

import service.tasks  # registers the tasks, which have tables of their own in model.toml
from engine import KuiperError, ModelFilesError, RuntimeGraph, find_files, model_folders, version_folders
from service.client import Client, ClientError, ConnectionFailedError, Retries
from service.commands.failure import BAD, CommandError
from service.commands.opening import shape_text
from service.commands.output import Json, add_rows, console, print_json, table
from service.config.model_config import ModelConfigError, load_model_config
from service.config.settings import load_settings
from service.config.store_url import folder_of
from service.graph.view import describe_ports
from service.repository.model_loader import PIPELINE

del service

EXAMPLE = "kuiper models models"


def run(
    folder: Annotated[
        str | None,
        typer.Argument(
            help="folder of models, or address of a server (http://…); default: that of the settings",
            show_default=False,
        ),
    ] = None,
    *,
    url: Annotated[
        str | None,
        typer.Option(help="Address of a server.", show_default=False),
    ] = None,
    key_file: Annotated[
        Path | None, typer.Option(help="File with an API key of that server.", show_default=False)
    ] = None,
    json: Json = False,
) -> None:
    """List models with versions, tasks, inputs, outputs and sizes, or their errors.

    Models are read, but neither compiled nor run: `kuiper check` does that.
    """
    if folder is not None and folder.lower().startswith(("http://", "https://")):
        url = folder
    if url is not None:
        listed = _ask(url, None if key_file is None else _read_key(key_file))
    else:
        root = folder_of(load_settings({}).models) if folder is None else _existing(folder)
        listed = [_describe(name, path) for name, path in model_folders(root).items()]
    if json:
        print_json(listed)
    else:
        _print(listed)
    if any(model["reason"] for model in listed):
        raise typer.Exit(BAD)


def _existing(folder: str) -> Path:
    """Return a folder.

    Raises:
        CommandError: there is none of this name.
    """
    if Path(folder).is_dir():
        return Path(folder)
    store = f"; kuiper serve --models {folder} serves a store, and its address lists the models"
    expected = "expected a folder of models, or the address of a server, as http://127.0.0.1:8000"
    raise CommandError(f"there is no folder {folder}; {expected}{store if '://' in folder else ''}")


def _read_key(file: Path) -> str:
    """Return the key in a file.

    Raises:
        CommandError: there is none.
        OSError: the file cannot be read.
    """
    key = file.read_text(encoding="utf-8", errors="replace").strip()
    if not (key and key.isascii() and key.isprintable()):
        raise CommandError(f"{file}: holds no API key; expected one line of ASCII")
    return key


def _ask(url: str, key: str | None) -> list[dict[str, Any]]:
    """Return the models of a server.

    Raises:
        CommandError: it cannot be reached, or refuses.
    """
    try:
        with Client(url, key=key, retries=Retries(0)) as client:
            return [client.model(model["name"]) for model in client.models()]
    except ConnectionFailedError as error:
        raise CommandError(f"{url}: {error}; expected the address of a running server") from error
    except ClientError as error:
        raise CommandError(f"{url}: {error}") from error


def _describe(name: str, folder: Path) -> dict[str, Any]:
    described: dict[str, Any] = {"name": name, "version": None, "task": None, "reason": None}
    described |= {"inputs": [], "outputs": [], "parameter_count": None, "bytes": None, "description": None}
    try:
        versions = version_folders(folder)
        version = list(versions)[-1]
        config = load_model_config(folder)
        if config.task == PIPELINE:
            known = {"version": version, "versions": list(versions), "task": config.task}
            return described | known | {"description": config.description}
        files = find_files(versions[version])
        graph = RuntimeGraph(files.param, files.bin, backend="numpy")
        graph.build()
    except (KuiperError, ModelFilesError, ModelConfigError, OSError) as error:
        return described | {"reason": str(error)}
    attributes = [attribute for operator in graph.operators for attribute in operator.attrs.values()]
    return described | {
        "version": version,
        "versions": list(versions),
        "task": config.task,
        "description": config.description,
        "inputs": describe_ports(graph.inputs),
        "outputs": describe_ports(graph.outputs),
        "parameter_count": sum(
            attribute.array().size for attribute in attributes if attribute.dtype != "null"
        ),
        "bytes": sum(attribute.data.nbytes for attribute in attributes),
    }


def _print(models: list[dict[str, Any]]) -> None:
    made = table("model", "version", "task", "inputs", "outputs", "parameters", numbers=["parameters"])
    rows = (
        (
            model["name"],
            model["version"],
            model["task"],
            _ports(model["inputs"]),
            _ports(model["outputs"]),
            None if model["parameter_count"] is None else f"{model['parameter_count']:,}",
        )
        for model in models
    )
    out = console()
    out.print(add_rows(made, rows))
    for model in models:
        if model["reason"]:
            out.print(f"{model['name']}: {model['reason']}")


def _ports(ports: list[dict[str, Any]]) -> str:
    return ", ".join(
        f"{port['operand']}: {shape_text(port['shape'])} {port['dtype'] or ''}".rstrip() for port in ports
    )
