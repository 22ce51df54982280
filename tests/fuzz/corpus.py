"""Stored inputs of each target: sound ones to start from, and those that once went wrong."""

from pathlib import Path

FOLDER = Path(__file__).parent / "corpus"
MAX_BYTES = 200_000
"""Maximum bytes of all stored inputs together."""


def stored(target: str) -> list[Path]:
    """Return the stored inputs of a target, by name."""
    return sorted((FOLDER / target).iterdir())
