"""The values of settings, and of keys of `model.toml`, that are one of a few words."""

from typing import Literal

LogFormat = Literal["text", "json"]
BackendName = Literal["auto", "native", "numpy"]
LogLevel = Literal["debug", "info", "warning", "error"]
ModelControl = Literal["none", "explicit", "poll"]
OtelMode = Literal["off", "on", "layers"]
PrecisionName = Literal["f32", "bf16", "int8", "int4", "auto"]
"""What may be asked for; see `engine.Precision`."""
