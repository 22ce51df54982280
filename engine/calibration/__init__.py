"""Determines the scales of an int8 model from examples, and tells what each layer costs and loses."""

from engine.calibration.command import main, make_parser

__all__ = ["main", "make_parser"]
