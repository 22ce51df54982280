"""int8 calibration on example inputs, with the time and the error of each layer."""

from engine.calibration.calibrator import DEFAULT_PERCENTILE, METHODS
from engine.calibration.quantize import QuantizeOptions, quantize_model

__all__ = ["DEFAULT_PERCENTILE", "METHODS", "QuantizeOptions", "quantize_model"]
