"""Precisions by the names that settings, `model.toml` and responses have for them."""

from typing import Literal

PrecisionName = Literal["f32", "bf16", "int8", "int4", "auto"]
"""What may be asked for; see `engine.Precision`."""
