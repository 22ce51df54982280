"""The flags of `kuiper check` and `kuiper quantize`, from their parsers; those of `kuiper serve` are the settings."""

import argparse

from engine.calibration.command import make_parser as make_quantize_parser
from engine.check.command import make_parser
from tests.docs.generated.markdown import table


def render() -> str:
    """Return the table of arguments of `kuiper check`."""
    return _table(make_parser())


def render_quantize() -> str:
    """Return the table of arguments of `kuiper quantize`."""
    return _table(make_quantize_parser())


def _table(parser: argparse.ArgumentParser) -> str:
    actions = [action for action in parser._actions if action.dest != "help"]
    return table(
        ["argument", "meaning"], [[f"`{_spelling(action)}`", action.help or ""] for action in actions]
    )


def _spelling(action: argparse.Action) -> str:
    if not action.option_strings:
        return f"[{action.dest.upper()}]" if action.nargs == "?" else action.dest.upper()
    metavar = action.metavar or "|".join(map(str, action.choices or ())) or action.dest.upper()
    return " ".join([action.option_strings[-1], *([metavar] if isinstance(metavar, str) else metavar)])
