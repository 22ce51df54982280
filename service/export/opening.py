"""Opens what a model is exported from."""

from pathlib import Path

from service.export.errors import ExportError
from service.export.factory import open_factory
from service.export.onnx_source import OnnxSource
from service.export.pretrained import CONFIG, open_pretrained
from service.export.program import open_program
from service.export.source import Source
from service.export.timm_model import PREFIX, is_timm_folder, open_timm, open_timm_folder
from service.export.torch_source import TorchScriptSource

_TORCHSCRIPT = (".pt", ".pth", ".torchscript", ".ts")
_KINDS = (
    "expected a .pt2 or TorchScript file, an ONNX file, a folder of save_pretrained, package.module:function, "
    "file.py:Class or timm:name"
)


def source_name(source: str | Path) -> str:
    """Return what a model is called after its source, if nobody says otherwise."""
    if isinstance(source, str) and ":" in source and not Path(source).exists():
        return source.rpartition(":")[2]
    if Path(source).is_dir():
        return Path(source).resolve().name
    return Path(source).name.split(".", maxsplit=1)[0]


def open_source(source: str | Path) -> Source:
    """Open what a model is exported from.

    Raises:
        ExportError: it is nothing that can be exported, or cannot be read.
    """
    path = Path(source)
    if path.suffix == ".onnx":
        return OnnxSource(path)
    if path.suffix == ".pt2":
        return open_program(path)
    if isinstance(source, str) and source.startswith(PREFIX):
        return open_timm(source.removeprefix(PREFIX))
    if is_timm_folder(path):
        return open_timm_folder(path)
    if path.is_dir() and (path / CONFIG).is_file():
        return open_pretrained(path)
    if path.is_file() and path.suffix == ".py":
        raise ExportError(f"{source} says not which model; add its class or function, as {path.name}:Class")
    if path.is_file() or path.suffix in _TORCHSCRIPT:
        return TorchScriptSource(path)
    if isinstance(source, str) and ":" in source and not path.exists():
        return open_factory(source)
    what = f"is a folder without {CONFIG}" if path.is_dir() else "is not a file"
    raise ExportError(f"{source} {what}; {_KINDS}")
