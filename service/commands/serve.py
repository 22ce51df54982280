"""`kuiper serve`: serves the models of a directory. Its options are the settings."""

import logging
import os
from typing import Any

import typer

from service.app import create_app
from service.collection import collect_rarely
from service.commands.setting_options import settings_of, takes_settings
from service.config.environment import doubtful_variables
from service.config.machine import share_machine
from service.config.settings import Settings
from service.errors import ListenError
from service.memory_trimmer import use_one_heap
from service.processes.slot import START_FAILED, Slot, take_slot
from service.processes.supervisor import run_processes
from service.repository.load_progress import LoadProgress
from service.repository.preloader import Preloader
from service.server.listener import listen, reserve, url_of
from service.server.server import run as run_server
from service.server.tls import check_tls
from service.stores.source import open_source
from service.telemetry.load_report import LoadReport
from service.telemetry.logging import configure_logging
from service.telemetry.status_line import show_status

_logger = logging.getLogger(__name__)


EXAMPLE = "kuiper serve --models models --port 8000"
EXAMPLE_MARK = "none"
"""It runs until it is stopped; the guide on serving shows how."""


@takes_settings()
def run(**options: Any) -> None:
    """Serve the models of a directory until a signal stops the server.

    Every option can also be set in the environment, --max-body-bytes as KUIPER_MAX_BODY_BYTES, or in a TOML file,
    max_body_bytes = 1000000. Options take precedence over the environment, and the environment over the file. Only the
    environment and the file hold secrets: KUIPER_API_KEYS, KUIPER_ADMIN_KEYS and KUIPER_SSL_KEYFILE_PASSWORD.
    """
    slot = take_slot()
    if slot is not None:
        share_machine(slot.processes)
    settings = settings_of(options)
    check_tls(settings)
    is_first = slot is None and settings.processes > 1
    code = _supervise(settings) if is_first else serve(settings, slot)
    if code:
        raise typer.Exit(code)


def serve(settings: Settings, slot: Slot | None = None) -> int:
    """Serve until a signal stops the server; return the exit code of the process.

    Args:
        settings: all that can be set.
        slot: what it has inherited as one of several processes; None where there is one.

    Raises:
        SettingsError: keys cannot be read, or spans not be sent as asked.
    """
    use_one_heap()
    collect_rarely()
    configure_logging(settings.log_level, settings.log_format, None if slot is None else slot.number)
    is_shown = slot is None or slot.is_shown
    if is_shown:
        for warning in doubtful_variables(os.environ):
            _logger.warning(warning)
    else:  # another process has said the same
        logging.getLogger().setLevel(logging.ERROR)
    preloader = _preload(settings, is_shown)
    try:
        app = create_app(settings, preloader, slot)
        return run_server(app, settings) if slot is None else run_server(app, settings, slot)
    finally:
        if preloader is not None:
            preloader.progress.stop()
        show_status("")


def _supervise(settings: Settings) -> int:
    """Start several processes that serve, and wait for their end; return the exit code."""
    configure_logging(settings.log_level, settings.log_format)
    try:
        sockets, port = listen(settings.host, settings.port), settings.grpc_port
        grpc_sockets = [] if port is None else reserve(settings.host, port, "--grpc-port")
    except ListenError as error:
        _logger.error(str(error))  # noqa: TRY400  # it says all there is to say
        return START_FAILED
    url = url_of(sockets[0], settings.host, is_secure=settings.ssl_certfile is not None)
    return run_processes(settings.processes, url, sockets, grpc_sockets)


def _preload(settings: Settings, is_shown: bool) -> Preloader | None:
    """Begin to load models; not if keys or spans are set: their errors are reported before anything else."""
    keys = (settings.api_keys, settings.api_keys_file, settings.admin_keys, settings.admin_keys_file)
    if settings.otel != "off" or any(keys):
        return None
    progress = LoadProgress(LoadReport().show) if is_shown else LoadProgress()
    return Preloader(settings, progress, open_source(settings))
