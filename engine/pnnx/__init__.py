"""The PNNX file format: a `.param` text that lists operators, and a `.bin` archive that holds their weights.

    graph = read("model.pnnx.param", "model.pnnx.bin")
    write(graph, "copy.pnnx.param", "copy.pnnx.bin")

The package knows file contents, not what operators compute.
"""

from engine.pnnx.files import read, write
from engine.pnnx.graph import Graph
from engine.pnnx.model import Attribute, Operator, ParameterValue
from engine.pnnx.tensor_type import TensorType

__all__ = ["Attribute", "Graph", "Operator", "ParameterValue", "TensorType", "read", "write"]
