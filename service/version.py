"""The version of the installed release."""

from importlib.metadata import PackageNotFoundError, version
from pathlib import Path


def kuiper_version() -> str:
    """Return the installed release; `0+source` when run from a source tree that is not installed."""
    try:
        return version("kuiper-serve")
    except PackageNotFoundError:
        return "0+source"


def install_command(extra: str = "") -> str:
    """Return the command that installs the package with an extra: of a checkout, where that is what runs."""
    is_checkout = (Path(__file__).parents[1] / "pyproject.toml").is_file()
    suffix = f"[{extra}]" if extra else ""
    return f"pip install -e '.{suffix}'" if is_checkout else f"pip install 'kuiper-serve{suffix}'"
