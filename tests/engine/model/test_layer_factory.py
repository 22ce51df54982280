import numpy as np
import pytest

from engine import LayerRegistry, UnsupportedOperatorError, create_layer
from engine.dtypes import Array
from engine.errors import ParameterError
from engine.pnnx import Attribute, Operator
from tests.engine.models import make_graph

X = np.array([[1, -2, 3]], np.float32)


def test_layer_of_an_operator_runs_without_a_graph() -> None:
    layer = create_layer(Operator("nn.ReLU", "relu", ["0"], ["1"]))
    assert [array.tolist() for array in layer.forward([X])] == [[[1, 0, 3]]]  # type: ignore[union-attr]


def test_parameters_and_attributes_are_bound() -> None:
    weight = Attribute.from_array(np.array([[1, 1, 1], [0, 2, 0]], np.float32))
    params = {"bias": False, "in_features": 3, "out_features": 2}
    operator = Operator("nn.Linear", "fc", ["0"], ["1"], params, {"weight": weight})  # type: ignore[arg-type]
    (y,) = create_layer(operator).forward([X])
    assert isinstance(y, np.ndarray)
    assert y.tolist() == [[2, -4]]


def test_operator_of_a_graph_brings_its_declared_types(tmp_path_factory: pytest.TempPathFactory) -> None:
    lines = """
    pnnx.Input in  0 1 0 #0=(1,3)f32
    torch.max  max 1 1 0 1 dim=1 keepdim=False $input=0 #0=(1,3)f32 #1=(1)i64
    pnnx.Output out 1 0 1
    """
    graph = make_graph(tmp_path_factory.mktemp("m"), lines)
    (places,) = create_layer(graph.operators[1]).forward([X])
    assert isinstance(places, np.ndarray)
    assert places.tolist() == [2], "the second of two results, as its type shows"


def test_own_layers_are_found() -> None:
    layers = LayerRegistry()

    @layers.layer("my.Double")
    def double(input: np.ndarray) -> Array:
        return input * 2

    (y,) = create_layer(Operator("my.Double", "d", ["0"], ["1"]), layers=layers).forward([X])
    assert isinstance(y, np.ndarray)
    assert y.tolist() == [[2, -4, 6]]


def test_what_cannot_be_made_is_reported() -> None:
    with pytest.raises(UnsupportedOperatorError, match=r"nn.RELU r \(nearest known: .*nn.ReLU"):
        create_layer(Operator("nn.RELU", "r", ["0"], ["1"]))
    with pytest.raises(ParameterError, match="nn.ReLU r: 'input' is missing"):
        create_layer(Operator("nn.ReLU", "r"))
    with pytest.raises(ParameterError, match="nn.Linear fc"):
        create_layer(Operator("nn.Linear", "fc", ["0"], ["1"]))
