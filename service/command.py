"""What the `kuiper` command does. Its flags are generated from the settings, so that each is defined only once."""

import argparse
import logging
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, get_args

from engine import watch_memory
from service.collection import without_collection
from service.config.cgroups import memory_left, memory_limit
from service.config.environment import doubtful_variables
from service.config.fitting import fit_to_memory
from service.config.machine import this_machine
from service.config.setting_doc import SettingDoc
from service.config.settings import Settings, SettingsError, describe_settings, load_settings
from service.repository.early_load import EarlyLoad
from service.repository.load_progress import LoadProgress
from service.server.tls import check_tls
from service.telemetry.load_report import LoadReport
from service.telemetry.logging import configure_logging
from service.version import kuiper_version

USAGE_ERROR = 2
_METAVARS: dict[Any, str] = {int: "N", float: "SECONDS", str: "TEXT", Path: "DIR", Path | None: "FILE"}
_COMPILE_SETTINGS = (
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
)
_LISTS = {"cors_origins": "ORIGINS", "allowed_hosts": "HOSTS", "image_formats": "FORMATS"}

_logger = logging.getLogger(__name__)


def run_command(arguments: Sequence[str]) -> int:
    """Run the command with these arguments; return the exit code of the process."""
    if memory_limit() is not None:
        watch_memory(memory_left)
    if list(arguments[:1]) == ["check"]:
        from engine.check import main as check  # noqa: PLC0415  # a server has no use for it

        return check(arguments[1:])
    if list(arguments[:1]) == ["quantize"]:
        # no server needs it
        from engine.calibration.command import main as quantize  # noqa: PLC0415
        from service.pictures import PictureExamples  # noqa: PLC0415

        return quantize(arguments[1:], PictureExamples)
    flags = vars(_make_parser().parse_args(arguments))
    command = flags.pop("command")
    try:
        if command == "compile":
            return compile_models(flags.pop("model"), flags)
        settings = _settings(flags)
        check_tls(settings)
        return serve(settings)
    except SettingsError as error:
        print(f"kuiper: {error}", file=sys.stderr)
        return USAGE_ERROR


def compile_models(folders: Sequence[Path], flags: Mapping[str, Any]) -> int:
    """Compile models ahead; return the exit code of the process.

    Args:
        folders: folders of models, or of one model each; none for the one that the settings name.
        flags: values of settings.

    Raises:
        SettingsError: a setting is wrong.
    """
    from service.compilation import compile_ahead  # noqa: PLC0415  # no server needs it

    given = [{"models": folder} for folder in folders] or [{}]
    settings = [_settings({**flags, **models, "warm_up": True}) for models in given]
    configure_logging(settings[0].log_level, settings[0].log_format)
    return compile_ahead(settings)


def _settings(flags: Mapping[str, Any]) -> Settings:
    return fit_to_memory(load_settings(flags), this_machine().memory)


def serve(settings: Settings) -> int:
    """Serve until a signal stops the server; return the exit code of the process.

    Raises:
        SettingsError: keys cannot be read, or spans not be sent as asked.
    """
    configure_logging(settings.log_level, settings.log_format)
    for warning in doubtful_variables(os.environ):
        _logger.warning(warning)
    early = _early_load(settings)
    try:
        with without_collection():
            # a quarter of a second, in which models are being loaded
            from service.app import create_app  # noqa: PLC0415
            from service.server.server import run  # noqa: PLC0415
        app = create_app(settings, early)
        return run(app, settings)
    finally:
        if early is not None:
            early.progress.stop()


def _early_load(settings: Settings) -> EarlyLoad | None:
    """Begin to load models; not if keys or spans are set: what is wrong with them is told before anything else."""
    keys = (settings.api_keys, settings.api_keys_file, settings.admin_keys, settings.admin_keys_file)
    if settings.otel or any(keys):
        return None
    return EarlyLoad(settings, LoadProgress(LoadReport().tell))


def _make_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="kuiper", description="Serves PNNX models over HTTP.")
    parser.add_argument("--version", action="version", version=f"kuiper {kuiper_version()}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    command = commands.add_parser(
        "serve",
        help="serve the models of a directory",
        description="Serve the models of a directory. Every flag can also be set in the environment or in a "
        "TOML file. Flags take precedence over the environment, and the environment over the file.",
        epilog=f"Only in the environment or the file: {', '.join(_secrets())}.",
        argument_default=argparse.SUPPRESS,
        allow_abbrev=False,  # --api-keys is not short for --api-keys-file
    )
    for doc in describe_settings():
        if doc.flag:
            _add_flag(command, doc)
    _add_compile(commands)
    commands.add_parser(
        "check", help="report whether a model runs, which inputs it takes, and where its results differ"
    )
    commands.add_parser("quantize", help="determine from examples how a model computes in int8")
    return parser


def _add_compile(commands: Any) -> None:
    """Add the parser of `kuiper compile`, with those settings of a server that decide what it compiles."""
    command = commands.add_parser(
        "compile",
        help="compile models ahead, so that servers start without",
        description="Compile models as a server with the same settings does when it starts, and keep the code in the "
        "folder that KUIPER_CACHE names, so that later starts need not.",
        epilog="Exit code: 0 if all is compiled and kept, 1 if a model is broken, a program is not used, or nothing "
        "can be kept, 2 if a setting is wrong.",
        argument_default=argparse.SUPPRESS,
        allow_abbrev=False,
    )
    command.add_argument(
        "model",
        type=Path,
        nargs="*",
        default=[],
        help="the folder of a model, or a folder of models (default: the one that the setting names)",
    )
    for doc in describe_settings():
        if doc.name in _COMPILE_SETTINGS:
            _add_flag(command, doc)


def _secrets() -> list[str]:
    return [doc.variable for doc in describe_settings() if not doc.flag]


def _add_flag(parser: argparse.ArgumentParser, doc: SettingDoc) -> None:
    default = f"default: {doc.default}, " if doc.default else ""
    text = f"{doc.text} ({default}{doc.variable})"
    if doc.field.annotation is bool:
        parser.add_argument(doc.flag, dest=doc.name, help=text, action=argparse.BooleanOptionalAction)
    else:
        parser.add_argument(doc.flag, dest=doc.name, help=text, metavar=_metavar(doc))


def _metavar(doc: SettingDoc) -> str:
    kind = doc.field.annotation
    if doc.name.endswith("_ms"):
        return "MILLISECONDS"
    if doc.name in _LISTS:
        return _LISTS[doc.name]
    if kind in _METAVARS:
        return _METAVARS[kind]
    return "|".join(get_args(kind))
