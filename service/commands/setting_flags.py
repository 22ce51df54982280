"""Flags of commands that take the server's settings: each is made of one setting, so that it is defined only once."""

import argparse
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, get_args

from service.config.fitting import fit_to_memory
from service.config.machine import this_machine
from service.config.setting_doc import SettingDoc
from service.config.settings import Settings, describe_settings, load_settings
from service.config.store_url import StoreUrl

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
    "image_formats": "FORMATS",
    "store_cache": "DIR",
}


def add_flags(parser: argparse.ArgumentParser, names: Collection[str] | None = None) -> None:
    """Add the flags of settings; of all but the secrets, where no names are given."""
    for doc in describe_settings():
        if doc.flag and (names is None or doc.name in names):
            _add_flag(parser, doc)


def settings_of(flags: Mapping[str, Any]) -> Settings:
    """Return the settings that flags, environment and file give, fitted to this machine's memory.

    Raises:
        SettingsError: one is wrong.
    """
    return fit_to_memory(load_settings(flags), this_machine().memory)


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
