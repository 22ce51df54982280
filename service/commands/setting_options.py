"""Options of commands that take the server's settings: each is made of one setting, so that it is defined only once."""

import inspect
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Annotated, Any, get_args

import typer

from service.config.fitting import fit_to_memory
from service.config.machine import this_machine
from service.config.settings import SettingDoc, Settings, describe_settings, load_settings
from service.config.store_url import StoreUrl

Command = Callable[..., None]

_METAVARS: dict[Any, str] = {
    int: "N",
    int | None: "N",
    float: "SECONDS",
    str: "TEXT",
    Path | StoreUrl: "DIR|URL",
    str | None: "NAME",
    Path: "DIR",
    Path | None: "FILE",
}
_LISTS = {
    "cors_origins": "ORIGINS",
    "allowed_hosts": "HOSTS",
}


def takes_settings(names: Collection[str] | None = None) -> Callable[[Command], Command]:
    """Give a command an option for each setting, which it gets as keywords: a text, True or False; None if not given.

    Args:
        names: the settings; None for all but the secrets, which other users of the machine could read.
    """
    options = [
        _option(doc) for doc in describe_settings() if doc.flag and (names is None or doc.name in names)
    ]

    def decorate(command: Command) -> Command:
        own = [
            parameter
            for parameter in inspect.signature(command).parameters.values()
            if parameter.kind is not inspect.Parameter.VAR_KEYWORD
        ]
        parameters = [*own, *options]
        command.__annotations__ = {each.name: each.annotation for each in parameters}
        command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]  # as PEP 362 has it
        return command

    return decorate


def settings_of(options: Mapping[str, Any]) -> Settings:
    """Return the settings that options, environment and file give, fitted to this machine's memory.

    Raises:
        SettingsError: one is wrong.
    """
    given = {name: value for name, value in options.items() if value is not None}
    return fit_to_memory(load_settings(given), this_machine().memory)


def _option(doc: SettingDoc) -> inspect.Parameter:
    is_switch = doc.field.annotation is bool
    text = f"{doc.text} [default: {doc.default}]" if doc.default else doc.text
    option = typer.Option(
        f"{doc.flag}/--no-{doc.flag[2:]}" if is_switch else doc.flag,
        help=text.replace("[", r"\["),  # rich's markup
        metavar=None if is_switch else _metavar(doc),
        rich_help_panel=doc.panel,
        show_default=False,
    )
    annotation: Any = Annotated[bool | None if is_switch else str | None, option]
    return inspect.Parameter(doc.name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=annotation)


def _metavar(doc: SettingDoc) -> str:
    kind = doc.field.annotation
    if doc.name.endswith("_ms"):
        return "MILLISECONDS"
    if doc.name in _LISTS:
        return _LISTS[doc.name]
    if kind in _METAVARS:
        return _METAVARS[kind]
    return "|".join(get_args(kind))
