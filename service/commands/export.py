"""`kuiper export SOURCE`: from a model of PyTorch or ONNX to a folder that a server serves."""

import logging
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Annotated

import typer

from service.commands.failure import CommandError, CommandUsageError, url_hint
from service.commands.output import Json, print_json
from service.export import PRESETS, ExportError, InputSpec, export, parse_input
from service.export.conversion import SECONDS
from service.export.errors import WishError
from service.export.opening import source_name
from service.telemetry.status_line import status_line

EXAMPLE = "kuiper export mynet.pt2 --preset imagenet"
EXAMPLE_MARK = "export"
"""The guide on exporting runs such an example, which needs a model and the exporter."""

_SIGNALS = {signal.SIGINT, signal.SIGTERM, getattr(signal, "SIGHUP", signal.SIGTERM)}
_KILLED = 128


def run(
    source: Annotated[
        str,
        typer.Argument(
            help="a file of torch.export (.pt2), TorchScript or ONNX; a folder of save_pretrained; "
            "package.module:function or file.py:Class, which make a module; or timm:name"
        ),
    ],
    input: Annotated[
        list[str] | None,
        typer.Option(
            "--input",
            "-i",
            metavar="SHAPE",
            help="shape of an input, as 1,3,224,224, with ? for a dynamic dimension, 640? for one tried at "
            "640, and :i64 for its type; repeat it for each input; by default what the source states",
        ),
    ] = None,
    models: Annotated[Path, typer.Option(metavar="DIR", help="the folder of models")] = Path("models"),
    name: Annotated[
        str | None, typer.Option(metavar="NAME", help="name of the model; default: the source's")
    ] = None,
    task: Annotated[
        str | None, typer.Option(metavar="TASK", help="task of the model; default: the source's")
    ] = None,
    preset: Annotated[
        str | None,
        typer.Option(
            metavar="PRESET",
            help=f"image preprocessing, if the source has none: {', '.join(PRESETS)}",
        ),
    ] = None,
    labels: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="a file with one label per line, or imagenet or coco"),
    ] = None,
    tokenizer: Annotated[
        Path | None, typer.Option(metavar="FILE", help="tokenizer.json of a text model")
    ] = None,
    description: Annotated[
        str | None, typer.Option(metavar="TEXT", help="one sentence about the model")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="replace an existing model")] = False,
    time_limit: Annotated[
        float, typer.Option(metavar="SECONDS", min=1, help="time limit of the exporter")
    ] = SECONDS,
    tolerance: Annotated[
        float,
        typer.Option(
            min=0,
            help="largest difference that is ignored, relative to the magnitude of the tensor; by default what float32 "
            "rounding explains",
        ),
    ] = 0.0,
    json: Json = False,
) -> None:
    """Export a model of PyTorch or ONNX to a folder that a server serves, and compare it with its source.

    Inputs, task, labels, tokenizer and preprocessing of the source become model.toml; options override them. Outputs
    and intermediate tensors are compared with PyTorch or onnxruntime; nothing is written if an output differs.

    This needs an extra: pip install -e '.[export]' in a checkout, or pip install 'kuiper-serve[export]'.
    """
    specs = [_spec(text) for text in input or ()]
    with _ended_in_order(), _steps_shown() as step:
        try:
            report = export(
                source,
                models / (name or source_name(source)),
                inputs=specs,
                task=task,
                labels=labels,
                preset=preset,
                tokenizer=tokenizer,
                description=description,
                force=force,
                seconds=time_limit,
                tolerance=tolerance,
                step=step,
            )
        except WishError as error:
            raise CommandUsageError(str(error)) from error
        except ExportError as error:
            raise CommandError(f"{error}{url_hint(source)}") from error
    if json:
        print_json(report.document())
        return
    for line in report.lines():
        typer.echo(line)


def _spec(text: str) -> InputSpec:
    try:
        return parse_input(text)
    except ExportError as error:
        raise CommandUsageError(str(error)) from error


@contextmanager
def _steps_shown() -> Iterator[Callable[[str], None]]:
    """Yield what shows a step, or prints it where there is no terminal; the report has warnings of the graph."""
    engine = logging.getLogger("engine")
    level = engine.level
    engine.setLevel(logging.ERROR)
    try:
        with status_line("loading the source") as show:
            yield show if sys.stderr.isatty() else _print_step
    finally:
        engine.setLevel(level)


def _print_step(step: str) -> None:
    print(f"… {step}", file=sys.stderr)


class _Stopped(BaseException):
    """A signal came; whatever is open is closed on the way."""


@contextmanager
def _ended_in_order() -> Iterator[None]:
    """Have a signal end the exporter and remove what is unfinished, before it ends this process."""
    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread may say what a signal does
        return

    def stop(number: int, frame: FrameType | None) -> None:
        del frame
        for each in before:
            signal.signal(each, signal.SIG_IGN)  # one more would end the removal
        raise _Stopped(number)

    # nohup has a hang-up ignored
    before = {number: signal.getsignal(number) for number in _SIGNALS}
    before = {number: handler for number, handler in before.items() if handler != signal.SIG_IGN}
    for number in before:
        signal.signal(number, stop)
    try:
        yield
    except _Stopped as stopped:
        number = signal.Signals(stopped.args[0])
        os.write(2, f"kuiper: stopped by {number.name}\n".encode())
        raise SystemExit(_KILLED + number) from None
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)
