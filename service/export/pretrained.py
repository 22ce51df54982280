"""Folders that `save_pretrained` of transformers writes: configuration, weights, tokenizer, preparation of pictures."""

import inspect
import json
import re
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from service.export.errors import ExportError
from service.export.extra import need
from service.export.input_spec import InputSpec
from service.export.picture_processor import read_processor
from service.export.source import Known
from service.export.text_description import TOKENIZER
from service.export.torch_graph import said_by
from service.export.torch_source import ModuleSource

CONFIG = "config.json"
_INSTALL = "pip install transformers"
_MODULES = "modules.json"
"""What sentence-transformers writes into a folder besides."""
_TEXT_INPUTS = ("input_ids", "attention_mask", "token_type_ids")
_LENGTH, _LONGEST = 16, 1 << 16
_TASKS = {
    "ForSequenceClassification": "text-classification",
    "ForImageClassification": "classification",
    "ForSemanticSegmentation": "segmentation",
}
"""Tasks by what the name of an architecture holds; one without a head is an encoder, whose vectors are embeddings."""
_HEAD = re.compile("For[A-Z]|LMHead")
_LOGITS = re.compile(
    "|".join(("ForTokenClassification", "ForMaskedLM", "ForCausalLM", "LMHead", "ForCTC", *_TASKS))
)
"""Architectures whose one output is `logits`, whatever else they give."""
_EMBEDDINGS = ("text_embeds", "image_embeds")


def open_pretrained(folder: Path) -> ModuleSource:
    """Return the module of a folder, with its inputs, and what the files beside the weights say.

    Raises:
        ExportError: it cannot be read, or is of an architecture that takes texts and pictures, or generates.
    """
    named = _architecture(folder)
    model = _load(folder, named, f"{folder.resolve().name}, {named}")
    architecture = type(model).__name__
    title = f"{folder.resolve().name}, {architecture}"
    arguments = list(inspect.signature(model.forward).parameters)
    kinds = [name for name in ("input_ids", "pixel_values", "decoder_input_ids") if name in arguments]
    if len(kinds) > 1:
        raise ExportError(
            f"{title} takes {' and '.join(kinds)}; save a part that takes one of them, as transformers' "
            f"{architecture.partition('For')[0].removesuffix('Model')}… classes for encoders, texts or pictures do, "
            "with from_pretrained and save_pretrained"
        )
    if kinds == ["input_ids"]:
        specs, known = _text(folder, model, arguments, architecture)
    elif kinds == ["pixel_values"]:
        specs, known = _pictures(folder, model, architecture)
    else:
        specs, known = [], Known()
    names = [spec.name for spec in specs] or arguments[:1]
    return ModuleSource(title, _by_place(model, names, _outputs(model, architecture)), specs, known=known)


def _architecture(folder: Path) -> str:
    try:
        config = json.loads((folder / CONFIG).read_text(encoding="utf-8"))
        named = config["architectures"]
        (architecture,) = named
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise ExportError(
            f"{folder} is not a folder of save_pretrained: {CONFIG} names no architecture ({error!r}); expected "
            '"architectures" with one name in it'
        ) from error
    return str(architecture)


def _load(folder: Path, architecture: str, title: str) -> Any:
    transformers = need("transformers", _INSTALL)
    try:
        made: Any = getattr(transformers, architecture, None)
        is_known = inspect.isclass(made) and issubclass(made, transformers.PreTrainedModel)
    except ImportError as error:  # of a package that the architecture needs
        raise ExportError(f"{title} cannot be loaded: {said_by(error)}") from error
    if not is_known:
        raise ExportError(
            f"{title}: transformers {transformers.__version__} has no such architecture; a newer one may: {_INSTALL} -U"
        )
    if (
        folder / _MODULES
    ).is_file():  # sentence-transformers takes the encoder, whatever head it was trained with
        made, architecture = transformers.AutoModel, ""
    try:
        with _quiet(transformers):
            # attention as products and a softmax, whose masks are numbers: the exporter and the kernels know that best
            model, report = made.from_pretrained(
                folder, local_files_only=True, attn_implementation="eager", output_loading_info=True
            )
    except Exception as error:  # of the file system, of safetensors, of the configuration
        raise ExportError(f"{title} cannot be loaded: {said_by(error)}") from error
    # without a head, nothing uses a pooler that has weights
    missing = sorted(
        name for name in report["missing_keys"] if _HEAD.search(architecture) or "pooler." not in name
    )
    if missing:
        more = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
        raise ExportError(f"{title}: {folder} lacks the weights {missing[0]}{more}, which would be random")
    model.config.use_cache = False
    for module in model.modules():
        if isinstance(module, transformers.PreTrainedModel):
            module.loss_function = None  # a trace asks for it, which transformers would warn of
    return model.eval().float()


def _by_place(model: Any, names: Sequence[str], wanted: Sequence[str]) -> Any:
    """Return a module that takes its inputs by place, and gives the first of these outputs, else all that it has."""
    base: Any = need("torch").nn.Module

    class ByPlace(base):  # type: ignore[misc]  # torch is imported late
        def __init__(self) -> None:
            super().__init__()
            self.model = model

        def forward(self, *inputs: Any) -> Any:
            outputs = self.model(**dict(zip(names, inputs, strict=False)))
            return next((outputs[name] for name in wanted if name in outputs), outputs)

    return ByPlace().eval()


def _outputs(model: Any, architecture: str) -> Sequence[str]:
    """Return the names of outputs, of which the first that there is matters."""
    if _LOGITS.search(architecture):
        return ("logits",)
    if _HEAD.search(architecture):
        return ()
    # a pooler with weights is one for the training: texts are embedded by the mean, pictures by the first token
    pooler = getattr(model, "pooler", None)
    has_weights = pooler is not None and any(True for _ in pooler.parameters())
    return (
        (*_EMBEDDINGS, "last_hidden_state")
        if has_weights
        else (*_EMBEDDINGS, "pooler_output", "last_hidden_state")
    )


@contextmanager
def _quiet(transformers: Any) -> Iterator[None]:
    """Keep transformers from writing of its progress and of what does not matter here."""
    logging = transformers.utils.logging
    before, had_bar = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.set_verbosity(before)
        if had_bar:
            logging.enable_progress_bar()


def _text(
    folder: Path, model: Any, arguments: Sequence[str], architecture: str
) -> tuple[list[InputSpec], Known]:
    most = _max_tokens(model)
    made = _tokenizer_inputs(folder)
    length = min(_LENGTH, most or _LENGTH)
    specs = [
        InputSpec((1, length), (True, True), "i64", name)
        for name in _TEXT_INPUTS
        if name in arguments and name in made
    ]
    known = _known(model, architecture, "text-embedding")
    known = replace(known, notes=[*known.notes, *_left_out(folder)])
    if (folder / TOKENIZER).is_file():
        return specs, replace(known, tokenizer=folder / TOKENIZER, max_length=most)
    note = (
        f"{folder} has no {TOKENIZER}, so texts are given as ids; save_pretrained of its tokenizer writes one"
    )
    return specs, Known("raw", notes=[*known.notes, note])


def _left_out(folder: Path) -> list[str]:
    """Return what sentence-transformers does after the encoder and a server does not, a sentence each."""
    try:
        modules = json.loads((folder / _MODULES).read_text(encoding="utf-8"))
        kinds = [str(module["type"]).rpartition(".")[2] for module in modules]
    except (OSError, ValueError, TypeError, KeyError):
        return []
    left = [kind for kind in kinds if kind not in ("Transformer", "Pooling", "Normalize")]
    return [f"{', '.join(left)} of {_MODULES} is left out: vectors are those of the encoder"] if left else []


def _tokenizer_inputs(folder: Path) -> Sequence[str]:
    """Return what the tokenizer makes of a text; ids and mask where it does not say."""
    transformers = need("transformers", _INSTALL)
    try:
        with _quiet(transformers):
            tokenizer = transformers.AutoTokenizer.from_pretrained(folder, local_files_only=True)
    except Exception:  # without one, or with one that this version does not know, as its file alone will do
        return _TEXT_INPUTS[:2]
    return list(tokenizer.model_input_names)


def _max_tokens(model: Any) -> int | None:
    """Return how many tokens the positions of a model suffice for; None where it counts none."""
    most = getattr(model.config, "max_position_embeddings", None)
    for name, module in model.named_modules():
        if name.endswith("position_embeddings") and hasattr(module, "num_embeddings"):
            padding = module.padding_idx  # RoBERTa counts from the place after it
            most = module.num_embeddings - (0 if padding is None else padding + 1)
    return most if isinstance(most, int) and 1 <= most <= _LONGEST else None


def _pictures(folder: Path, model: Any, architecture: str) -> tuple[list[InputSpec], Known]:
    known = _known(model, architecture, "embedding")
    processor = read_processor(folder)
    side = getattr(model.config, "image_size", None)
    size = (side, side) if isinstance(side, int) else side
    if processor is not None:
        size = processor.size or size
        known = replace(known, preset=processor.preset, notes=[*known.notes, *processor.notes])
    if size is None:
        return [], known
    shape = (1, getattr(model.config, "num_channels", 3), *size)
    return [InputSpec(shape, (True, False, False, False), name="pixel_values")], known


def _known(model: Any, architecture: str, embedding: str) -> Known:
    """Return the task of an architecture, its labels, and how its outputs become probabilities."""
    if not _HEAD.search(architecture):
        return Known(embedding)
    task = next((task for part, task in _TASKS.items() if part in architecture), "raw")
    if task == "raw":
        return Known(task)
    names, kind = model.config.id2label, model.config.problem_type
    if task != "segmentation" and (kind == "regression" or len(names) == 1):
        return Known("raw", notes=["it is a regression, so its task is raw"])
    are_independent = kind == "multi_label_classification"
    table = {"softmax": False, "sigmoid": True} if are_independent else {}
    return Known(task, [str(names[place]) for place in sorted(names)], table=table)
