"""Operators of ONNX that the exporter leaves untranslated, written by hand, against what PyTorch has for them."""

from typing import Any

from tests.golden.case import Input, LayerCase, f32, i64

_GATES = {"LSTM": (0, 3, 1, 2), "GRU": (1, 0, 2), "RNN": (0,)}
"""Where ONNX's gates are among PyTorch's: input, output, forget, cell; update, reset, new."""


def recurrent(
    kind: str, name: str, *states: Input, options: str = "", bias: bool = True, **given: Any
) -> LayerCase:
    """Make a case of a recurrent layer of one layer, width 3 on 4 features, its weights in ONNX's order."""

    def build(torch: Any) -> Any:
        class Holder(torch.nn.Module):  # type: ignore[misc]  # torch is Any here
            def __init__(self) -> None:
                super().__init__()
                self.held = getattr(torch.nn, kind)(4, 3, bias=bias, **given)

            def forward(self, x: Any, *states: Any) -> Any:
                initial = states if kind == "LSTM" else states[0] if states else None
                output, final = self.held(x, initial or None) if kind == "LSTM" else self.held(x, initial)
                length, batch, _ = x.shape
                output = output.reshape(length, batch, -1, 3).transpose(1, 2)
                return (output, *final) if kind == "LSTM" else (output, final)

            def state_dict(self) -> dict[str, Any]:
                def in_order(weight: Any) -> Any:
                    gates = weight.detach().reshape(len(_GATES[kind]), -1, *weight.shape[1:])
                    return gates[list(_GATES[kind])].reshape(weight.shape)

                def stacked(*names: str) -> Any:
                    suffixes = ("l0", "l0_reverse") if self.held.bidirectional else ("l0",)
                    sides = [[in_order(getattr(self.held, f"{n}_{s}")) for n in names] for s in suffixes]
                    return torch.stack([torch.cat(side) for side in sides])

                weights = {"w.data": stacked("weight_ih"), "r.data": stacked("weight_hh")}
                return weights | ({"b.data": stacked("bias_ih", "bias_hh")} if bias else {})

        return Holder()

    weights = ["w", "r", "b"] if bias else ["w", "r"]
    results = ["y", "h_n", "c_n"] if kind == "LSTM" else ["y", "h_n"]
    lines = ["pnnx.Input in0 0 1 x"]
    lines += [f"pnnx.Input in{place + 1} 0 1 s{place}" for place in range(len(states))]
    lines += [f"pnnx.Attribute {key} 0 1 {key}" for key in weights]
    inputs = ["x", *weights, *(f"s{place}" for place in range(len(states)))]
    counts = f"{len(inputs)} {len(results)}"
    lines.append(f"{kind} op {counts} {' '.join(inputs)} {' '.join(results)} hidden_size=3 {options}")
    lines += [f"pnnx.Output out{place} 1 0 {result}" for place, result in enumerate(results)]
    return LayerCase(
        kind,
        name,
        build,
        (f32(5, 2, 4), *states),
        also=((f32(1, 3, 4), *grown(states)),),
        graph="\n".join(lines),
    )


def grown(states: tuple[Input, ...]) -> list[Input]:
    """Return the states of a batch of one more."""
    return [f32(state.shape[0], state.shape[1] + 1, state.shape[2]) for state in states]


def leftover(
    kind: str, name: str, call: Any, *inputs: Input, options: str = "", outputs: int = 1, **given: Any
) -> LayerCase:
    """Make a case of one operator on inputs and constants, in this order, compared with `call`."""

    def build(torch: Any) -> Any:
        class Holder(torch.nn.Module):  # type: ignore[misc]  # torch is Any here
            def forward(self, *tensors: Any) -> Any:
                return call(torch, *tensors)

            def state_dict(self) -> dict[str, Any]:
                return {"op.weight": torch.ones(1, 1, 3, 3)} if kind == "nn.Conv2d" else {}

        return Holder()

    constants: dict[str, str] = given.pop("constants", {})
    names = [f"x{place}" for place in range(len(inputs))]
    results = [f"y{place}" for place in range(outputs)]
    lines = [f"pnnx.Input in{place} 0 1 {operand}" for place, operand in enumerate(names)]
    lines += [f"pnnx.Expression {key} 0 1 {key} expr={value}" for key, value in constants.items()]
    operands = [*names, *constants]
    lines.append(f"{kind} op {len(operands)} {outputs} {' '.join([*operands, *results])} {options}")
    lines += [f"pnnx.Output out{place} 1 0 {result}" for place, result in enumerate(results)]
    given.setdefault("graph", "\n".join(lines))
    return LayerCase(kind, name, build, inputs, **given)


CASES: list[LayerCase] = [
    recurrent("LSTM", "plain"),
    recurrent("LSTM", "states", f32(1, 2, 3), f32(1, 2, 3)),
    recurrent("LSTM", "both_ways", options="direction=bidirectional", bidirectional=True),
    recurrent("LSTM", "no_bias", bias=False),
    recurrent("GRU", "plain", options="linear_before_reset=1"),
    recurrent(
        "GRU",
        "state_both_ways",
        f32(2, 2, 3),
        options="direction=bidirectional linear_before_reset=1",
        bidirectional=True,
    ),
    recurrent("RNN", "plain"),
    recurrent("RNN", "relu", options="activations=(Relu)", nonlinearity="relu"),
    leftover("Expand", "list", lambda torch, x: x.expand(2, 3, 4), f32(3, 1), constants={"s": "[2,1,4]"}),
    leftover("NonZero", "plain", lambda torch, x: torch.nonzero(x).T.contiguous(), i64(3, 4, high=2)),
    leftover(
        "TopK",
        "largest",
        lambda torch, x: torch.topk(x, 3, 1),
        f32(3, 7),
        options="axis=1",
        outputs=2,
        constants={"k": "3"},
    ),
    leftover(
        "TopK",
        "smallest",
        lambda torch, x: torch.topk(x, 2, 0, largest=False),
        f32(5, 3),
        options="axis=0 largest=0",
        outputs=2,
        constants={"k": "2"},
    ),
    leftover("CumSum", "plain", lambda torch, x: torch.cumsum(x, 1), f32(3, 4), constants={"d": "1"}),
    leftover(
        "CumSum",
        "exclusive_reverse",
        lambda torch, x: torch.cumsum(x.flip(0), 0).flip(0) - x,
        f32(3, 4),
        options="exclusive=1 reverse=1",
        constants={"d": "0"},
    ),
    leftover("Trilu", "upper", lambda torch, x: torch.triu(x, 1), f32(2, 4, 5), constants={"k": "1"}),
    leftover(
        "Trilu", "lower", lambda torch, x: torch.tril(x), f32(4, 5), options="upper=0", constants={"k": "0"}
    ),
    leftover("ArgMax", "plain", lambda torch, x: torch.argmax(x, 1), f32(3, 4), options="axis=1 keepdims=0"),
    leftover("ArgMin", "kept", lambda torch, x: torch.argmin(x, 0, True), f32(3, 4)),
    leftover(
        "ArgMax",
        "last",
        lambda torch, x: 8 - torch.argmax(x.flip(1), 1, True),
        i64(3, 9, high=3),
        options="axis=1 select_last_index=1",
    ),
    leftover("Gather", "rows", lambda torch, x, i: x[i], f32(5, 3), i64(2, 4, high=5), options="axis=0"),
    leftover("Gather", "usual_axis", lambda torch, x, i: x[i], f32(5, 3, 2), i64(4, high=5)),
    leftover(
        "Gather",
        "last_axis",
        lambda torch, x, i: x[:, :, i.reshape(-1)].reshape(2, 3, 2, 2),
        f32(2, 3, 5),
        i64(2, 2, high=5),
        options="axis=-1",
    ),
    leftover(
        "Gather",
        "from_the_end",
        lambda torch, x, i: torch.index_select(x, 1, (i - 3) % 4),
        f32(2, 4),
        i64(3, high=3),
        graph="pnnx.Input in0 0 1 x0\npnnx.Input in1 0 1 x1\npnnx.Expression e 1 1 x1 i expr=sub(@0,3)\n"
        "Gather op 2 1 x0 i y0 axis=1\npnnx.Output out0 1 0 y0",
    ),
    leftover(
        "GatherND", "pairs", lambda torch, x, i: x[i[..., 0], i[..., 1]], f32(5, 5, 3), i64(2, 4, 2, high=5)
    ),
    leftover(
        "GatherND",
        "whole_index",
        lambda torch, x, i: x[i[..., 0], i[..., 1]],
        f32(5, 5),
        i64(1, 1, 6, 2, high=5),
    ),
    leftover(
        "GatherND",
        "of_a_batch",
        lambda torch, x, i: torch.stack([x[row, i[row, :, 0]] for row in range(2)]),
        f32(2, 5, 4),
        i64(2, 3, 1, high=5),
        options="batch_dims=1",
    ),
    leftover("IsNaN", "plain", lambda torch, x: torch.isnan(x), f32(3, 4)),
    leftover("IsInf", "plain", lambda torch, x: torch.isinf(x), f32(3, 4)),
    leftover("Softsign", "plain", lambda torch, x: torch.nn.functional.softsign(x), f32(3, 4)),
    leftover(
        "ThresholdedRelu",
        "plain",
        lambda torch, x: torch.nn.functional.threshold(x, 0.5, 0.0),
        f32(3, 4),
        options="alpha=0.5",
    ),
    leftover("PRelu", "row", lambda torch, x, s: torch.where(x < 0, x * s, x), f32(3, 4), f32(4)),
    leftover(
        "DepthToSpace",
        "crd",
        lambda torch, x: torch.pixel_shuffle(x, 2),
        f32(1, 8, 2, 3),
        options="blocksize=2 mode=CRD",
    ),
    leftover(
        "DepthToSpace",
        "dcr",
        lambda torch, x: torch.pixel_shuffle(x.reshape(1, 4, 2, 2, 3).transpose(1, 2).reshape(1, 8, 2, 3), 2),
        f32(1, 8, 2, 3),
        options="blocksize=2",
    ),
    leftover(
        "Pad",
        "margins",
        lambda torch, x: torch.nn.functional.pad(x, (0, 1, 1, 2)),
        f32(3, 4),
        options="pads=(1,0,2,1)",
    ),
    leftover(
        "Pad",
        "cut",
        lambda torch, x: torch.nn.functional.pad(x, (-1, 1, 1, -2), value=2.5),
        f32(3, 4),
        options="pads=(1,-1,-2,1) value=2.5",
    ),
    leftover(
        "nn.Conv2d",
        "same_upper",
        lambda torch, x: torch.nn.functional.avg_pool2d(
            torch.nn.functional.pad(x, (0, 1, 1, 1)), 3, 2, divisor_override=1
        ),
        f32(1, 1, 9, 8),
        options="bias=False dilation=(1,1) groups=1 in_channels=1 kernel_size=(3,3) out_channels=1 padding=same "
        "padding_mode=zeros stride=(2,2)",
    ),
    leftover(
        "Tensor.select",
        "several",
        lambda torch, x: x[:, [0, 2, -1]],
        f32(3, 4, 2),
        options="dim=1 index=(0,2,-1) $input=x0",
    ),
    leftover(
        "torch.unsqueeze",
        "several",
        lambda torch, x: x[None, :, :, None],
        f32(3, 4),
        options="dim=(0,-1) $input=x0",
    ),
]
