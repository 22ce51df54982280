"""`kuiper check`: the engine's own command, which tells whether a model runs and where it differs."""

from engine.check import main, make_parser

__all__ = ["main", "make_parser"]
