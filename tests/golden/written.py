"""Files of golden cases whose graphs the exporter cannot write: from the text of the case, weights from its model."""

from pathlib import Path
from typing import Any

from engine import pnnx
from tests.golden.case import LayerCase

_EMPTY_ARCHIVE = b"PK\x05\x06" + bytes(18)


def write_graph(model: Any, case: LayerCase, folder: Path) -> tuple[bytes, bytes]:
    """Return the bytes of the .param and .bin of `case.graph`, its attributes taken from the model's state."""
    lines = [line.strip() for line in (case.graph or "").splitlines() if line.strip()]
    operands = sum(int(line.split()[3]) for line in lines)
    param, archive = folder / "case.pnnx.param", folder / "case.pnnx.bin"
    param.write_text("\n".join(["7767517", f"{len(lines)} {operands}", *lines, ""]))
    archive.write_bytes(_EMPTY_ARCHIVE)
    graph = pnnx.read(param, archive)
    operators = {operator.name: operator for operator in graph.operators}
    for name, tensor in model.state_dict().items():
        operator, key = name.split(".", 1)
        operators[operator].attrs[key] = pnnx.Attribute.from_array(tensor.numpy())
    pnnx.write(graph, param, archive)
    return param.read_bytes(), archive.read_bytes()
