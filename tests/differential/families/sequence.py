"""Operators over (batch, channels, length) and (batch, steps, features)."""

from typing import Any

from tests.differential.drawing import Drawing
from tests.differential.families.family import family

_ZEROS: dict[str, Any] = {"padding_mode": "zeros"}
_GATES = {"nn.RNN": 1, "nn.GRU": 3, "nn.LSTM": 4}


@family(3, weight=4)
def convolution_1d(d: Drawing, x: str) -> None:
    channels = d.shape(x)[1]
    groups = d.pick((1, 1, 1, channels))
    filters = d.pick((1, 4, 16, 33, 80)) * groups if groups == 1 else channels * d.pick((1, 1, 2))
    kernel, stride, dilation = d.pick((1, 3, 3, 5, 8)), d.pick((1, 1, 2, 3)), d.pick((1, 1, 2))
    is_turned = groups == 1 and d.chance(0.25)
    shape = (channels, filters, kernel) if is_turned else (filters, channels // groups, kernel)
    given: dict[str, Any] = {
        "dilation": (dilation,),
        "groups": groups,
        "padding": (d.pick((0, kernel // 2)),),
        "stride": (stride,),
    }
    if is_turned:
        given["output_padding"] = (d.number(0, max(stride, dilation) - 1),)
    if d.chance(0.3):
        kind = "F.conv_transpose1d" if is_turned else "F.conv1d"
        d.add(kind, [x, d.constant(shape), d.constant((filters,))], **given)
        return
    has_bias = d.chance(0.7)
    d.add(
        "nn.ConvTranspose1d" if is_turned else "nn.Conv1d",
        [x],
        weights={"weight": shape} | ({"bias": (filters,)} if has_bias else {}),
        bias=has_bias,
        in_channels=channels,
        kernel_size=(kernel,),
        out_channels=filters,
        **given,
        **(_ZEROS if not is_turned else {}),
    )


@family(3, weight=3)
def pool_1d(d: Drawing, x: str) -> None:
    window = d.number(1, 5)
    given: dict[str, Any] = {
        "kernel_size": (window,),
        "stride": (d.number(1, 3),),
        "ceil_mode": d.chance(0.3),
    }
    given["padding"] = (d.number(0, window // 2),)
    kind = d.pick(("max", "avg", "adaptive_avg", "adaptive_max"))
    if kind == "max":
        given |= {"dilation": (d.pick((1, 1, 2)),), "return_indices": False}
    elif kind == "avg":
        given["count_include_pad"] = d.chance(0.5)
    else:
        given = {"output_size": d.pick((1, 2, 3, 7))}
        given |= {"return_indices": False} if kind == "adaptive_max" else {}
    if d.chance(0.5):
        d.add(f"F.{kind}_pool1d", [x], named=True, **given)
    else:
        d.add(f"nn.{kind.title().replace('_', '')}Pool1d", [x], **given)


@family(3, weight=3)
def recurrent(d: Drawing, x: str) -> None:
    """All results leave the operator, and the line says which they are, so that nothing is guessed."""
    kind = d.pick(tuple(_GATES))
    hidden, features = d.pick((1, 3, 16, 20, 64)), d.shape(x)[2]
    layers, directions = d.pick((1, 1, 2)), d.pick((1, 1, 2))
    has_bias = d.chance(0.8)
    weights: dict[str, tuple[int, ...]] = {}
    rows = _GATES[kind] * hidden
    for layer in range(layers):
        for direction in range(directions):
            end = f"l{layer}{'_reverse' * direction}"
            weights[f"weight_ih_{end}"] = (rows, features if layer == 0 else hidden * directions)
            weights[f"weight_hh_{end}"] = (rows, hidden)
            if has_bias:
                weights |= {f"bias_ih_{end}": (rows,), f"bias_hh_{end}": (rows,)}
    given: dict[str, Any] = {"nonlinearity": d.pick(("tanh", "relu"))} if kind == "nn.RNN" else {}
    given |= {"proj_size": 0} if kind == "nn.LSTM" else {}
    given["outputs"] = "output,h_n,c_n" if kind == "nn.LSTM" else "output,h_n"
    d.add(
        kind,
        [x],
        weights=weights,
        gives=3 if kind == "nn.LSTM" else 2,
        batch_first=d.chance(0.6),
        bias=has_bias,
        bidirectional=directions == 2,
        hidden_size=hidden,
        input_size=features,
        num_layers=layers,
        **given,
    )
