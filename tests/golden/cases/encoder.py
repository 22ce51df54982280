"""The fast path of nn.TransformerEncoderLayer and of subclasses of nn.MultiheadAttention."""

from typing import Any

from tests.golden.case import Input, LayerCase, f32


def encoder(name: str, *masks: Input, layers: int = 1, **options: Any) -> LayerCase:
    """Make a case of an encoder of width 8 with random parameters, called with x and masks by keyword."""

    def build(torch: Any) -> Any:
        class Holder(torch.nn.Module):  # type: ignore[misc]  # torch is Any here
            def __init__(self) -> None:
                super().__init__()
                layer = torch.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True, **options)
                self.held = layer if layers == 1 else torch.nn.TransformerEncoder(layer, layers)
                for parameter in self.parameters():
                    parameter.data.uniform_(-0.5, 0.5)

            def forward(self, x: Any, *masks: Any) -> Any:
                if not masks:
                    return self.held(x)
                # as a mask is computed: a quarter of the places are hidden, never the first
                hidden = torch.where(masks[0] > 1, float("-inf"), 0.0)
                if name == "padding":
                    return self.held(x, src_key_padding_mask=hidden)
                return self.held(x, src_mask=hidden)

        return Holder()

    return LayerCase("aten::_transformer_encoder_layer_fwd", name, build, (f32(2, 5, 8), *masks))


def attention(name: str, **call: Any) -> LayerCase:
    """Make a case of a subclass of nn.MultiheadAttention, which the exporter does not know as a module."""

    def build(torch: Any) -> Any:
        class Attention(torch.nn.MultiheadAttention):  # type: ignore[misc]  # torch is Any here
            pass

        class Holder(torch.nn.Module):  # type: ignore[misc]  # torch is Any here
            def __init__(self) -> None:
                super().__init__()
                self.held = Attention(8, 2, batch_first=True)
                for parameter in self.parameters():
                    parameter.data.uniform_(-0.5, 0.5)

            def forward(self, x: Any) -> Any:
                return self.held(x, x, x, **call)

        return Holder()

    return LayerCase("aten::_native_multi_head_attention", name, build, (f32(2, 5, 8),))


CASES: list[LayerCase] = [
    encoder("relu"),
    encoder("gelu", activation="gelu"),
    encoder("norm_first", norm_first=True),
    encoder("two_layers", layers=2),
    encoder("queries_by_keys", f32(5, 5)),
    encoder("padding", f32(2, 5)),
    attention("averaged"),
    attention("each_head", average_attn_weights=False),
]
