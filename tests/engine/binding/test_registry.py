import numpy as np
import pytest

from engine import DuplicateLayerError, LayerRegistry, SignatureError, TensorSpec, registry
from engine.binding.arguments import Floats, Ints, Operand
from engine.dtypes import Array


def test_registered_type_is_found() -> None:
    layers = LayerRegistry()

    @layers.layer("my.Double", "my.Twice")
    def double(input: Array, factor: int = 2) -> Array:
        return input * factor

    found = layers.find("my.Twice")
    assert found is not None
    assert found.forward is double
    assert [(a.name, a.required) for a in found.arguments] == [("input", True), ("factor", False)]
    assert len(layers) == 2
    assert "my.Double" in layers


def test_registering_a_type_twice_raises() -> None:
    layers = LayerRegistry()
    layers.layer("my.Double")(lambda: ())
    with pytest.raises(DuplicateLayerError, match=r"my\.Double"):
        layers.layer("my.Double")(lambda: ())


def test_unknown_type_is_not_found() -> None:
    assert registry.find("my.Nothing") is None


def test_nearest_types_come_best_first() -> None:
    assert registry.nearest("pnnx.Inputs")[0] == "pnnx.Input"
    assert registry.nearest("nn.LayerNrm")[0] == "nn.LayerNorm"
    assert registry.nearest("qqqqqq") == ()


@pytest.mark.parametrize(
    ("unknown", "known"),
    [
        ("aten::layer_norm", ("F.layer_norm", "nn.LayerNorm")),
        ("torch.logit", ("aten::logit",)),
        ("Flip", ("torch.flip",)),
        ("Einsum", ("torch.einsum",)),
    ],
)
def test_the_same_name_elsewhere_is_near(unknown: str, known: tuple[str, ...]) -> None:
    assert registry.nearest(unknown) == known


@pytest.mark.parametrize(
    "unknown", ["aten::mvlgamma", "aten::renorm", "aten::cov", "aten::combinations", "Loop"]
)
def test_a_name_that_shares_a_module_and_some_letters_is_not_near(unknown: str) -> None:
    assert registry.nearest(unknown) == ()


def test_arguments_say_what_they_take() -> None:
    layers = LayerRegistry()

    @layers.layer("my.Layer")
    def call(
        input: Array,
        bias: Array | None = None,
        other: Operand = 1,
        size: Ints = (),
        scale: Floats | None = None,
    ) -> Array:
        return input

    found = layers.find("my.Layer")
    assert found is not None
    assert {a.name: (a.takes_tensor, a.takes_scalar, a.expected) for a in found.arguments} == {
        "input": (True, False, "a tensor"),
        "bias": (True, False, "a tensor or None"),
        "other": (True, True, "a tensor or an int or a float or a complex number"),
        "size": (False, True, "ints"),
        "scale": (False, True, "floats or None"),
    }
    assert found.forward(np.zeros(1)).shape == (1,)


def test_layer_takes_the_place_of_another_only_where_it_says_so() -> None:
    layers = registry.copy()
    with pytest.raises(DuplicateLayerError, match=r"nn\.ReLU"):
        layers.layer("nn.ReLU")(lambda: ())
    layers.layer("nn.ReLU", replace=True)(lambda: ())
    assert layers.find("nn.ReLU") != registry.find("nn.ReLU")
    assert layers.find("nn.Linear") is registry.find("nn.Linear")
    assert len(layers) == len(registry)


def test_rules_get_only_the_arguments_that_they_name() -> None:
    layers = LayerRegistry()

    def infer(input: TensorSpec) -> TensorSpec:
        return input

    def count(outputs: tuple[TensorSpec], exponent: int) -> int:
        return outputs[0].size * exponent

    @layers.layer("test.Power", infer=infer, multiply_adds=count)
    def power(input: Array, exponent: int = 2) -> Array:
        return np.power(input, exponent)

    made = layers.find("test.Power")
    assert made is not None
    assert made.infer is not None
    assert made.multiply_adds is not None
    spec = TensorSpec((3,), np.dtype(np.float32))
    assert made.infer(input=spec, exponent=2) is spec
    assert made.multiply_adds(outputs=(spec,), input=spec, exponent=2) == 6
    with pytest.raises(TypeError, match="input"):
        made.infer(exponent=2)


def test_every_layer_can_be_made_and_is_the_same_in_a_copy() -> None:
    copy = registry.copy()
    assert [layer.type for layer in registry] == [layer.type for layer in copy]
    assert all(copy.find(layer.type) is layer for layer in registry)


def test_layers_of_users_are_read_when_they_are_registered() -> None:
    with pytest.raises(SignatureError, match="is annotated bytes"):

        @LayerRegistry().layer("my.Bytes")
        def take(value: bytes) -> Array:
            return np.frombuffer(value)


def test_layers_of_the_engine_are_read_when_they_are_asked_for() -> None:
    def take(value: bytes) -> Array:
        return np.frombuffer(value)

    take.__module__ = "engine.layers.bytes"
    layers = LayerRegistry()
    layers.layer("my.Bytes")(take)
    with pytest.raises(SignatureError, match="is annotated bytes"):
        layers.find("my.Bytes")


def test_a_function_that_belongs_to_no_module_may_be_a_layer() -> None:
    """`exec` makes such functions."""
    names: dict[str, object] = {}
    exec("def same(x: object) -> object:\n    return x\n", names)
    layers = LayerRegistry()
    with pytest.raises(SignatureError, match="'x': is annotated object"):
        layers.layer("my.Same")(names["same"])  # type: ignore[type-var]  # a function
