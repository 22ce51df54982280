"""The version of the installed release."""

from importlib.metadata import PackageNotFoundError, version


def kuiper_version() -> str:
    """Return the installed release; `0+source` when run from a source tree that is not installed."""
    try:
        return version("kuiper-serve")
    except PackageNotFoundError:
        return "0+source"
