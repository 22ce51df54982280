"""Settings that name origins of web pages and hosts: lists, separated by commas in flags and in the environment."""

import re
from ipaddress import ip_address
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import AfterValidator, BeforeValidator
from pydantic_settings import NoDecode

ALL = "*"
"""Stands for all origins, or all hosts."""

_HOST_NAME = re.compile(r"(?!-)[a-z0-9_-]{1,63}(\.[a-z0-9_-]{1,63})*", re.IGNORECASE)


def _split(value: object) -> object:
    return [item.strip() for item in value.split(",")] if isinstance(value, str) else value


def _check_origins(origins: tuple[str, ...]) -> tuple[str, ...]:
    for origin in origins:
        parts = urlsplit(origin)
        bare = f"{parts.scheme}://{parts.netloc}"
        if origin != ALL and (not parts.scheme or not parts.netloc or bare != origin):
            raise ValueError(
                f"{origin!r} is not an origin such as https://example.org:8443 (no path, no slash at its end)"
            )
    return origins


def _check_hosts(hosts: tuple[str, ...]) -> tuple[str, ...]:
    for host in hosts:
        if host != ALL and not _HOST_NAME.fullmatch(host) and not is_address(host):
            raise ValueError(
                f"{host!r} is not a host such as models.example.org (no scheme, no port, no path)"
            )
    return tuple(host.strip("[]").lower() for host in hosts)


def is_address(host: str) -> bool:
    """Return whether a host is an IP address, an IPv6 address with or without brackets."""
    try:
        ip_address(host.removeprefix("[").removesuffix("]"))
    except ValueError:
        return False
    return True


Origins = Annotated[tuple[str, ...], NoDecode, BeforeValidator(_split), AfterValidator(_check_origins)]
"""Origins of web pages."""

Hosts = Annotated[tuple[str, ...], NoDecode, BeforeValidator(_split), AfterValidator(_check_hosts)]
"""Names and addresses of hosts, in lower case, without ports and brackets."""
