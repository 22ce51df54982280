"""Determines the scales of an int8 model from examples, and reports what each layer costs and loses."""

from engine.calibration.calibrator import DEFAULT_PERCENTILE, METHODS
from engine.calibration.quantize import QuantizeOptions, quantize_model

__all__ = ["DEFAULT_PERCENTILE", "METHODS", "QuantizeOptions", "quantize_model"]
