"""The values of settings that are one of a few words."""

from typing import Literal

LogFormat = Literal["text", "json"]
BackendName = Literal["auto", "native", "numpy"]
LogLevel = Literal["debug", "info", "warning", "error"]
ModelControl = Literal["none", "explicit", "poll"]
OtelMode = Literal["off", "on", "layers"]
