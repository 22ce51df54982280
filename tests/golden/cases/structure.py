"""Constants, tuples and what else holds a graph together."""

from typing import Any

from tests.golden.case import Input, LayerCase, f32, function, i64


def constant(name: str, dtype: str, **options: Any) -> LayerCase:
    """Make a case whose model adds its input to a constant of ones and thirds, and gives the constant too."""

    def build(torch: Any) -> Any:
        class Constant(torch.nn.Module):  # type: ignore[misc]  # torch is Any here
            def __init__(self) -> None:
                super().__init__()
                self.register_buffer("held", (torch.arange(6).reshape(2, 3) / 3).to(getattr(torch, dtype)))

            def forward(self, x: Any) -> Any:
                return x + self.held, self.held

        return Constant()

    return LayerCase("pnnx.Attribute", name, build, (f32(2, 3),), **options)


def tied(type_name: str, name: str, *inputs: Input, **options: Any) -> LayerCase:
    """Make a case whose modules share one weight."""

    def build(torch: Any) -> Any:
        class Tied(torch.nn.Module):  # type: ignore[misc]  # torch is Any here
            def __init__(self) -> None:
                super().__init__()
                self.first = (
                    torch.nn.Embedding(5, 3) if type_name == "nn.Embedding" else torch.nn.Linear(3, 3)
                )
                self.second = torch.nn.Linear(3, self.first.weight.shape[0])
                self.second.weight = self.first.weight

            def forward(self, x: Any) -> Any:
                return self.second(self.first(x))

        return Tied()

    return LayerCase(type_name, name, build, inputs, **options)


CASES: list[LayerCase] = [
    constant("float32", "float32"),
    constant("float32_stored_as_float16", "float32", fp16=True, rtol=1e-3, atol=1e-3),
    constant("float16", "float16"),
    constant("float64", "float64"),
    constant("int32", "int32"),
    constant("uint8", "uint8"),
    constant("bool", "bool"),
    constant("complex64", "complex64"),
    function(
        "pnnx.Attribute",
        "part_of_split_constant",
        lambda torch, x: torch.arange(6).view(2, 3).chunk(3, 1)[1] + x,
        f32(2, 3),
    ),
    tied("nn.Linear", "tied", f32(3, 3)),
    tied("nn.Embedding", "tied_to_linear", i64(2, 4, high=5), also=((i64(3, 1, high=5),),)),
    tied("nn.Embedding", "tied_to_linear_as_float16", i64(2, 4, high=5), fp16=True, rtol=1e-3, atol=1e-3),
]
