"""Files of models: the text of the graph, the archive of its weights, the configuration."""

import math
import zipfile

import numpy as np

from engine import PNNX_COMPUTE, KuiperError, PnnxError, Port, RuntimeGraph, pnnx
from engine.dtypes import Array
from engine.pnnx.param_reader import AttributeDeclaration, read_param
from engine.pnnx.tensor_type import byte_count
from service.config.model_config import ModelConfigError, load_model_config
from tests.fuzz.targets.folder import folder
from tests.fuzz.trial import try_files
from tests.malformed.make import VALID

_MAX_BYTES = 1 << 16
_OPEN = 2


def param(data: bytes) -> None:
    """Read a graph, with weights of zeros; build, plan, compile and run it on zeros."""
    path, archive_path = folder() / "m.param", folder() / "m.bin"
    path.write_bytes(data)
    try:
        declarations = read_param(path).declarations
        if not _write_zeros(declarations):
            return
        graph = RuntimeGraph(path, archive_path)
        graph.init()
    except KuiperError:
        return
    inputs = [_zeros(port) for port in graph.inputs]
    if sum(array.nbytes for array in inputs) <= _MAX_BYTES:
        finding = try_files(path, archive_path, inputs)
        if finding is not None:
            raise AssertionError(f"{finding.kind}\n{finding.detail}")


def _write_zeros(declarations: list[AttributeDeclaration]) -> bool:
    """Write an archive that fits; returns whether it is small enough to be tried."""
    entries = {item.entry: byte_count(item.shape, item.dtype) for item in declarations}
    if sum(entries.values()) > _MAX_BYTES or any(len(name) > 200 for name in entries):
        return False
    with zipfile.ZipFile(folder() / "m.bin", "w") as archive_file:
        for name, size in entries.items():
            archive_file.writestr(zipfile.ZipInfo(name), bytes(size))
    return True


def _zeros(port: Port) -> Array:
    shape = [_OPEN if extent is None else extent for extent in port.shape or ()]
    if math.prod(shape) > _MAX_BYTES or len(shape) > 64:
        shape = [min(extent, 1) for extent in shape]
    return np.zeros(shape, PNNX_COMPUTE.get(port.dtype or "f32", np.float32))


def archive(data: bytes) -> None:
    """Read an archive of weights for a graph that is sound."""
    path = folder() / "m.bin"
    (folder() / "sound.param").write_text(VALID)
    path.write_bytes(data)
    try:
        pnnx.read(folder() / "sound.param", path)
    except PnnxError:
        return


def model_toml(data: bytes) -> None:
    """Read the configuration of a model."""
    (folder() / "model.toml").write_bytes(data)
    try:
        load_model_config(folder())
    except ModelConfigError:
        return
