"""Recurrent layers."""

from collections.abc import Callable
from typing import Any

from tests.golden.case import Input, LayerCase, f32, module, tensor

STATE = f32(2, 3, 4)


def wired(
    name: str,
    variant: str,
    call: Callable[..., Any],
    *inputs: Input,
    outputs: str | None = None,
    num_layers: int = 2,
    **options: Any,
) -> LayerCase:
    """Make a case of a network that calls nn.NAME(3, 4, 2) its own way: `call(layer, *tensors)`."""

    def build(nn: Any) -> Any:
        class Network(nn.Module):  # type: ignore[misc]  # nn is Any here
            def __init__(self) -> None:
                super().__init__()
                self.layer = getattr(nn, name)(3, 4, num_layers, **options)

            def forward(self, *tensors: Any) -> Any:
                return call(self.layer, *tensors)

        return Network()

    return module(f"nn.{name}", variant, build, *inputs, outputs=outputs)


def kept(
    name: str, length: int, outputs: str, *, batch: int = 2, num_layers: int = 1, **options: Any
) -> LayerCase:
    """Make a case of a network that keeps some results alone, as its file says; `batch` 0 for none."""
    names = outputs.split(",")

    def call(layer: Any, x: Any) -> Any:
        output, states = layer(x)
        results = {"output": output} | dict(
            zip(("h_n", "c_n"), states if name == "LSTM" else [states], strict=False)
        )
        return tuple(results[each] for each in names) if len(names) > 1 else results[names[0]]

    def build(torch: Any) -> Any:
        class Network(torch.nn.Module):  # type: ignore[misc]  # torch is Any here
            def __init__(self) -> None:
                super().__init__()
                self.layer = getattr(torch.nn, name)(3, 4, num_layers, **options)

            def forward(self, x: Any) -> Any:
                return call(self.layer, x)

        return Network()

    sizes = (
        {"length": length, "batch": batch}
        if not options.get("batch_first")
        else {"batch": batch, "length": length}
    )
    said = [*names, *(f"{key}{value}" for key, value in {**sizes, "layers": num_layers, **options}.items())]
    shape = [extent for extent in (*sizes.values(), 3) if extent]
    return LayerCase(f"nn.{name}", "_".join(said), build, (f32(*shape),), outputs=outputs)


def stacked(variant: str, call: Callable[..., Any], length: int = 5) -> LayerCase:
    """Make a case of two nn.LSTM: `call(first, second, x, z)`."""

    def build(torch: Any) -> Any:
        class Network(torch.nn.Module):  # type: ignore[misc]  # torch is Any here
            def __init__(self) -> None:
                super().__init__()
                self.first, self.second = torch.nn.LSTM(3, 4), torch.nn.LSTM(2, 4)

            def forward(self, x: Any, z: Any) -> Any:
                return call(self.first, self.second, x, z)

        return Network()

    return LayerCase("nn.LSTM", variant, build, (f32(length, 3, 3), f32(3, 3, 2)))


def flat(results: Any) -> Any:
    """Return the results of nn.LSTM in one tuple."""
    return results[0], *results[1]


def family(name: str, states: int) -> list[LayerCase]:
    """Make the cases that all kinds have in common."""

    def pack(layer: Any, x: Any, *given: Any) -> Any:
        return layer(x, given if states == 2 else given[0])

    def make(**options: Any) -> Callable[[Any], Any]:
        return lambda nn: getattr(nn, name)(3, 4, **options)

    type_name = f"nn.{name}"
    initial, unbatched = (STATE,) * states, (f32(2, 4),) * states
    return [
        module(type_name, "plain", make(), f32(5, 2, 3), also=((f32(1, 4, 3),), (f32(7, 1, 3),))),
        module(type_name, "no_bias", make(bias=False), f32(4, 2, 3)),
        module(type_name, "deep", make(num_layers=3), f32(4, 2, 3)),
        module(type_name, "bidirectional", make(bidirectional=True), f32(4, 2, 3)),
        module(type_name, "batch_first", make(batch_first=True), f32(2, 4, 3), also=((f32(1, 6, 3),),)),
        module(
            type_name,
            "all",
            make(num_layers=2, bidirectional=True, batch_first=True, bias=False),
            f32(2, 5, 3),
        ),
        module(type_name, "unbatched", make(num_layers=2, bidirectional=True), f32(5, 3)),
        module(type_name, "unbatched_batch_first", make(batch_first=True), f32(5, 3)),
        module(type_name, "f64", lambda nn: getattr(nn, name)(3, 4).double(), tensor("f64", 5, 2, 3)),
        module(type_name, "dropout", make(num_layers=2, dropout=0.5), f32(4, 2, 3)),
        wired(name, "initial", pack, f32(5, 3, 3), *initial),
        wired(name, "initial_batch_first", pack, f32(3, 5, 3), *initial, batch_first=True),
        wired(name, "initial_unbatched", pack, f32(5, 3), *unbatched),
        wired(name, "output_only", lambda layer, x: layer(x)[0], f32(5, 2, 3)),
        wired(
            name, "output_only_bidirectional", lambda layer, x: layer(x)[0], f32(5, 2, 3), bidirectional=True
        ),
        wired(name, "swapped", lambda layer, x: layer(x)[::-1], f32(5, 3, 3)),
    ]


def states(name: str) -> list[LayerCase]:
    """Make cases of networks that use the final state alone."""
    return [
        wired(name, "state_only", lambda layer, x: layer(x)[1], f32(5, 3, 3)),
        wired(name, "state_only_batch_first", lambda layer, x: layer(x)[1], f32(3, 5, 3), batch_first=True),
        wired(name, "last_state", lambda layer, x: layer(x)[1][-1], f32(5, 3), bidirectional=True),
    ]


CASES: list[LayerCase] = [
    *family("RNN", 1),
    *states("RNN"),
    *states("GRU"),
    module(
        "nn.RNN", "relu", lambda nn: nn.RNN(3, 4, 2, nonlinearity="relu", bidirectional=True), f32(5, 2, 3)
    ),
    *family("GRU", 1),
    *family("LSTM", 2),
    module("nn.LSTM", "proj", lambda nn: nn.LSTM(3, 4, proj_size=2), f32(5, 2, 3)),
    module(
        "nn.LSTM",
        "proj_all",
        lambda nn: nn.LSTM(3, 5, 2, proj_size=2, bidirectional=True, batch_first=True),
        f32(2, 4, 3),
    ),
    wired(
        "LSTM",
        "proj_initial",
        lambda layer, x, h, c: layer(x, (h, c)),
        f32(5, 3, 3),
        f32(2, 3, 2),
        STATE,
        proj_size=2,
    ),
    wired("LSTM", "proj_cell_only", lambda layer, x: layer(x)[1][1], f32(5, 3, 3), proj_size=2),
    *(
        kept("LSTM", length, outputs, **options)
        for length in (1, 5)
        for outputs in ("h_n", "c_n", "output,h_n", "output,c_n", "h_n,c_n", "c_n,h_n", "c_n,output,h_n")
        for options in ({}, {"batch_first": True})
    ),
    *(
        kept(name, length, outputs)
        for name in ("GRU", "RNN")
        for length in (1, 2)
        for outputs in ("output", "h_n")
    ),
    kept("LSTM", 1, "c_n,output", batch=0),
    kept("LSTM", 1, "h_n,c_n,output", batch=0),
    kept("LSTM", 4, "c_n", num_layers=2, bidirectional=True),
    kept("GRU", 2, "h_n", num_layers=2),
    kept("GRU", 2, "h_n,output", num_layers=2, batch=0),
    wired("LSTM", "last_hidden", lambda layer, x: layer(x)[1][0][-1], f32(5, 3, 3), outputs="h_n"),
    stacked("decoder", lambda first, second, x, z: second(z, first(x)[1])[0]),
    stacked("decoder_of_one_step", lambda first, second, x, z: second(z, first(x)[1])[0], 1),
    stacked("chain_of_one_step", lambda first, second, x, z: flat(second(z, first(x)[1])), 1),
]
