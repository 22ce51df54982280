"""From a model of PyTorch or ONNX to a folder that a server serves.

    from service.export import export

    report = export("mynet.pt", "models/mynet", inputs=["?,3,224,224"], preset="imagenet")

It takes the packages of the extra `export`, which are imported when they are used.
"""

from service.export.agreement import Agreement
from service.export.conversion import export
from service.export.errors import ExportError
from service.export.input_spec import InputSpec, parse_input
from service.export.preset import PRESETS, Preset
from service.export.report import ExportReport

__all__ = [
    "PRESETS",
    "Agreement",
    "ExportError",
    "ExportReport",
    "InputSpec",
    "Preset",
    "export",
    "parse_input",
]
