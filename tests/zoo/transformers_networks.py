"""Networks of transformers, as wide as those that people use, with fewer layers and weights from a seed."""

# mypy: disallow-subclassing-any=False

from collections.abc import Callable, Mapping
from typing import Any

import torch

from tests.zoo.building import import_torchvision
from tests.zoo.network import Input, Network, Shape, pictures

_PACKAGE = "transformers"
_HIDDEN = ("last_hidden_state",)
_BASE: Mapping[str, Any] = {"num_hidden_layers": 4}


class _Wrapped(torch.nn.Module):
    """A model of transformers that returns tensors by name."""

    def __init__(self, model: Any, outputs: tuple[str, ...]) -> None:
        super().__init__()
        self.model = model
        self.outputs = outputs

    def chosen(self, found: Any) -> Any:
        """Return the outputs that are asked for, a single one as it is."""
        tensors = tuple(found[name] for name in self.outputs)
        return tensors if len(tensors) > 1 else tensors[0]


class Text(_Wrapped):
    """A model of token ids and their attention mask."""

    def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor) -> Any:
        return self.chosen(self.model(input_ids=input_ids, attention_mask=attention_mask))


class Signal(_Wrapped):
    """A model of pictures or sound."""

    def forward(self, values: torch.Tensor) -> Any:
        return self.chosen(self.model(values))


def _text(
    model: str, vocabulary: int, *outputs: str, length: int = 128, longest: int = 301, **options: Any
) -> Network:
    """Return a network of texts of any length, any number of them."""
    inputs = (Input(f"?,{length}?:i64", vocabulary), Input(f"?,{length}?:i64", is_mask=True))
    shapes = tuple(((count, length),) * 2 for count, length in ((1, length), (3, 9), (2, longest)))
    return Network(_PACKAGE, _builder(Text, model, outputs or _HIDDEN, options), inputs, shapes)


def _vision(model: str, side: int, *outputs: str, sides: bool = False, **options: Any) -> Network:
    """Return a network of pictures."""
    return pictures(_PACKAGE, _builder(Signal, model, outputs or _HIDDEN, options), side, sides)


def _sound(model: str, spec: str, shapes: tuple[Shape, ...], **options: Any) -> Network:
    """Return a network of sound."""
    build = _builder(Signal, model, _HIDDEN, options)
    return Network(_PACKAGE, build, (Input(spec),), tuple((shape,) for shape in shapes))


def _builder(
    wrapper: type[_Wrapped], model: str, outputs: tuple[str, ...], options: Mapping[str, Any]
) -> Callable[[], Any]:
    def build() -> Any:
        import_torchvision()  # pictures' models import it
        import transformers

        kind: Any = transformers
        for part in model.split("."):
            kind = getattr(kind, part)
        return wrapper(kind(kind.config_class(**options)).eval(), outputs)

    return build


NETWORKS = {
    "bert": _text("BertModel", 30522, *_HIDDEN, "pooler_output", **_BASE),
    "bert-classifier": _text("BertForSequenceClassification", 30522, "logits", num_labels=5, **_BASE),
    "distilbert": _text("DistilBertModel", 30522, n_layers=4),
    "roberta": _text(
        "RobertaModel",
        50265,
        *_HIDDEN,
        "pooler_output",
        vocab_size=50265,
        max_position_embeddings=514,
        type_vocab_size=1,
        **_BASE,
    ),
    "albert": _text(
        "AlbertModel", 30000, hidden_size=768, num_attention_heads=12, intermediate_size=3072, **_BASE
    ),
    "electra": _text("ElectraForTokenClassification", 30522, "logits", **_BASE),
    "mpnet": _text("MPNetModel", 30527, **_BASE),
    "clip-text": _text("CLIPTextModel", 49408, *_HIDDEN, "pooler_output", length=48, longest=77, **_BASE),
    "t5-encoder": _text("T5EncoderModel", 32128, num_layers=4, feed_forward_proj="gated-gelu"),
    "gpt2": _text("GPT2LMHeadModel", 50257, "logits", n_layer=4, use_cache=False),
    "llama": _text(
        "LlamaForCausalLM",
        32000,
        "logits",
        hidden_size=768,
        intermediate_size=2048,
        num_attention_heads=12,
        num_key_value_heads=4,
        use_cache=False,
        **_BASE,
    ),
    "qwen3": _text(
        "Qwen3ForCausalLM",
        32000,
        "logits",
        vocab_size=32000,
        hidden_size=768,
        head_dim=64,
        intermediate_size=2048,
        num_attention_heads=12,
        num_key_value_heads=4,
        use_cache=False,
        **_BASE,
    ),
    "modernbert": _text("ModernBertModel", 50368, num_hidden_layers=6),
    "deberta-v3": _text(
        "DebertaV2Model",
        128100,
        vocab_size=128100,
        hidden_size=384,
        num_attention_heads=6,
        intermediate_size=1536,
        relative_attention=True,
        position_buckets=256,
        norm_rel_ebd="layer_norm",
        share_att_key=True,
        pos_att_type=["p2c", "c2p"],
        position_biased_input=False,
        type_vocab_size=0,
        layer_norm_eps=1e-7,
        **_BASE,
    ),
    "mobilebert": _text("MobileBertModel", 30522, num_hidden_layers=8),
    "whisper-encoder": _sound(
        "models.whisper.modeling_whisper.WhisperEncoder",
        "?,80,3000",
        ((1, 80, 3000), (2, 80, 3000), (3, 80, 3000)),
        d_model=384,
        encoder_layers=4,
        encoder_attention_heads=6,
        encoder_ffn_dim=1536,
    ),
    "wav2vec2": _sound("Wav2Vec2Model", "?,16000?", ((1, 16000), (2, 23456), (3, 4321)), num_hidden_layers=4),
    "vit": _vision("ViTModel", 224, *_HIDDEN, "pooler_output", **_BASE),
    "dinov2": _vision(
        "Dinov2Model", 224, image_size=224, patch_size=14, hidden_size=384, num_attention_heads=6, **_BASE
    ),
    "swin": _vision("SwinModel", 224, *_HIDDEN, "pooler_output"),
    "convnextv2": _vision(
        "ConvNextV2Model",
        224,
        *_HIDDEN,
        "pooler_output",
        depths=[2, 2, 4, 2],
        hidden_sizes=[64, 128, 256, 512],
    ),
    "segformer": _vision("SegformerForSemanticSegmentation", 256, "logits", sides=True, num_labels=19),
    "mobilevit": _vision("MobileViTModel", 256, *_HIDDEN),
    "rt-detr": _vision(
        "RTDetrForObjectDetection",
        320,
        "logits",
        "pred_boxes",
        encoder_layers=1,
        decoder_layers=3,
        num_queries=30,  # among more, rounding would decide which of two comes first
    ),
}
