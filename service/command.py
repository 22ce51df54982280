"""What the `kuiper` command does. Its flags are generated from the settings, so that each is defined only once."""

import argparse
import logging
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, get_args

from engine.check import main as check
from service.app import create_app
from service.config.environment import doubtful_variables
from service.config.fitting import fit_to_memory
from service.config.machine import this_machine
from service.config.setting_doc import SettingDoc
from service.config.settings import Settings, SettingsError, describe_settings, load_settings
from service.server.server import run
from service.server.tls import check_tls
from service.telemetry.logging import configure_logging
from service.version import kuiper_version

USAGE_ERROR = 2
_METAVARS: dict[Any, str] = {int: "N", float: "SECONDS", str: "TEXT", Path: "DIR", Path | None: "FILE"}
_LISTS = {"cors_origins": "ORIGINS", "allowed_hosts": "HOSTS", "image_formats": "FORMATS"}

_logger = logging.getLogger(__name__)


def run_command(arguments: Sequence[str]) -> int:
    """Run the command with these arguments; return the exit code of the process."""
    if list(arguments[:1]) == ["check"]:
        return check(arguments[1:])
    if list(arguments[:1]) == ["quantize"]:
        # no server needs it
        from engine.calibration.command import main as quantize  # noqa: PLC0415
        from service.pictures import PictureExamples  # noqa: PLC0415

        return quantize(arguments[1:], PictureExamples)
    flags = vars(_make_parser().parse_args(arguments))
    flags.pop("command")
    try:
        settings = fit_to_memory(load_settings(flags), this_machine().memory)
        check_tls(settings)
        return serve(settings)
    except SettingsError as error:
        print(f"kuiper: {error}", file=sys.stderr)
        return USAGE_ERROR


def serve(settings: Settings) -> int:
    """Serve until a signal stops the server; return the exit code of the process.

    Raises:
        SettingsError: a file of keys is unusable.
    """
    configure_logging(settings.log_level, settings.log_format)
    for warning in doubtful_variables(os.environ):
        _logger.warning(warning)
    app = create_app(settings)
    return run(app, settings)


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
    commands.add_parser(
        "check", help="report whether a model runs, which inputs it takes, and where its results differ"
    )
    commands.add_parser("quantize", help="determine from examples how a model computes in int8")
    return parser


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
