"""Reads the file that `kuiper quantize` wrote beside a model, each time that it, or a file of the model, is another."""

import threading
from dataclasses import dataclass, field
from pathlib import Path
from weakref import WeakKeyDictionary

from engine import Quantization, QuantizationError, read_sidecar, sidecar_path
from service.errors import ServiceError
from service.repository.loaded_model import LoadedModel

_Signature = tuple[tuple[int, int, int], ...]


@dataclass(slots=True)
class QuantizationFiles:
    """What the files beside models say. Safe to use from any thread.

    One file is read at a time: to check whether it belongs to the model, all weights are read as well.
    """

    _known: WeakKeyDictionary[LoadedModel, tuple[_Signature, Quantization]] = field(
        default_factory=WeakKeyDictionary
    )
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def find(self, model: LoadedModel) -> Quantization:
        """Return what the file beside a model says now.

        Raises:
            ServiceError: 404 `quantization_not_found`; 409 `quantization_refused` where it is malformed or another
                model's.
        """
        param, binary = model.graph.param_path, model.graph.bin_path
        path = sidecar_path(param)
        with self._lock:
            try:
                signature = tuple(map(_signature, (path, param, binary)))
                known = self._known.get(model)
                if known is not None and known[0] == signature:
                    return known[1]
                found = read_sidecar(param, binary)
            except QuantizationError as error:
                message = f"model {model.name!r}: {_without_folder(str(error), path)}"
                raise ServiceError(409, "quantization_refused", message, {"model": model.name}) from error
            except OSError as error:
                message = f"model {model.name!r} was not quantized: there is no file {path.name!r} beside it"
                raise ServiceError(404, "quantization_not_found", message, {"model": model.name}) from error
            self._known[model] = signature, found
            return found


def _signature(path: Path) -> tuple[int, int, int]:
    """Return what is another number where a file was written or replaced."""
    status = path.stat()
    return status.st_ino, status.st_size, status.st_mtime_ns


def _without_folder(text: str, path: Path) -> str:
    """Return a message without the folder that models lie in: that is the server's own business."""
    return text.replace(f"{path.parent}/", "")
