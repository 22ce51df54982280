"""Train, measure and export the digits model: `python models/digits/train.py`.

Writes everything that stands beside this file: the exported graph, labels, samples and metrics.json. Needs
the extra `train` (`pip install -e .[train]`) and fonts (models/fonts.py names them). `--validate FOLD` instead trains
on four fifths of the training scans, measures on the other fifth, and writes nothing: for trying out changes without
a look at the test scans. `--resume` trains on from the weights beside this file, at a lower rate.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pnnx
import torch
from PIL import Image
from sklearn.datasets import load_digits
from torch.nn import functional
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn
from training.augment import FRAME, MARGIN, ZOOM, Augmenter
from training.drawings import Style, dark_on_light, pen_digit, practice_ink, printed_ink, scan_digit
from training.exam import SIDE, prepare, prepare_array, questions, scan_picture
from training.hard import hard_drawings
from training.network import DigitsNet
from training.shapes import EXAM

HERE = Path(__file__).parent
sys.path += [str(HERE.parent), str(HERE.parents[1])]

from fonts import FOLDERS, draw_glyphs  # noqa: E402
from ink import draw_ink  # noqa: E402

from tests.golden.make_digits import network as shipped_network  # noqa: E402

SEED = 20
THREADS = 1  # the result does not then depend on the number of cores
EPOCHS = 120
BATCH = 128
DRAWINGS_PER_BATCH = 64
DRAWINGS = 4000
PRINTED_PER_BATCH = 96
PRINTED = 6000
BENT_PER_BATCH = 96
BENT = 8000
PEAK_RATE = 3e-3
RESUMED_RATE = 1.2e-3
TRAIN_SHARE = 0.8
FINISH_SHARE = 0.3  # of the epochs, the last, with milder distortion
POLISH_SHARE = 1 / 3  # as many epochs more, in parts of those before
POLISH_RATE = 6e-4
AVERAGING = 0.99  # share of the moving average that stays at each step
FOLDS = 5


def main() -> None:
    """Parse the command line, train, measure, and write the files."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--validate", type=int, choices=range(FOLDS), metavar="FOLD", help="0 to 4")
    parser.add_argument("--epochs", type=int, default=EPOCHS)
    parser.add_argument("--resume", action="store_true")
    parser.add_argument("--fonts", type=Path, nargs="+", default=list(FOLDERS), metavar="FOLDER")
    options = parser.parse_args()
    torch.set_num_threads(THREADS)
    printed = printed_drawings(options.fonts)
    data = load_digits()
    scans, digits = (data.images / 16).astype(np.float32), data.target
    held_out = np.arange(len(scans)) >= int(TRAIN_SHARE * len(scans))
    if options.validate is not None:
        scans, digits = scans[~held_out], digits[~held_out]
        held_out = np.arange(len(scans)) * FOLDS // len(scans) == options.validate
    started = time.monotonic()
    network = train(scans[~held_out], digits[~held_out], printed, options.epochs, options.resume)
    seconds = time.monotonic() - started
    scans, digits = scans[held_out], digits[held_out]
    metrics = measure(network, scans, digits)
    print(json.dumps(metrics, indent=2))
    print(f"trained for {seconds:.0f} s")
    if options.validate is None:
        export(network)
        write_samples(network, scans, digits)
        (HERE / "labels.txt").write_text("".join(f"{digit}\n" for digit in range(10)))
        metrics["training"] = {
            "scans": int((~held_out).sum()),
            "epochs": options.epochs + round(POLISH_SHARE * options.epochs),
            "resumed": options.resume,
            "seed": SEED,
            "torch": torch.__version__,
        }
        (HERE / "metrics.json").write_text(json.dumps(metrics, indent=2) + "\n")


def train(
    scans: np.ndarray, digits: np.ndarray, printed: torch.Tensor, epochs: int, is_resumed: bool
) -> DigitsNet:
    """Train a network on scans (n, 8, 8), pen drawings and printed digits, each redrawn every time.

    The last epochs, at a low rate, see mostly plain scans; the weights' moving average over them is returned.
    """
    torch.manual_seed(SEED)
    network = DigitsNet()
    if is_resumed:
        network.load_state_dict(shipped_network().state_dict())
    network.train()
    course = Course(network, scans, digits, printed, SEED)
    course.run(epochs, RESUMED_RATE if is_resumed else PEAK_RATE, FINISH_SHARE)
    course = Course(network, scans, digits, printed, SEED + 4)
    course.augment.framed, course.augment.upright, course.augment.surroundings.plain = 0.12, 0.4, 0.7
    course.run(round(POLISH_SHARE * epochs), POLISH_RATE, 1.0)
    return course.averaged.module.eval()


class Course:
    """Epochs of training.

    Args:
        network: what is trained.
        scans: (n, 8, 8) of values 0 to 1.
        digits: (n,) what they show.
        printed: (m, 60, 60) printed digits, 0 to 9 in turn.
        seed: of all chance but dropout.

    Attributes:
        averaged: the network with a moving average of its weights.
    """

    def __init__(
        self, network: DigitsNet, scans: np.ndarray, digits: np.ndarray, printed: torch.Tensor, seed: int
    ) -> None:
        self.network = network
        self.averaged = AveragedModel(network, multi_avg_fn=get_ema_multi_avg_fn(AVERAGING), use_buffers=True)
        self.labels = torch.from_numpy(digits)
        self.generator = torch.Generator().manual_seed(seed)
        drawings = torch.cat((practice_drawings(), printed, bent_drawings(scans, digits)))
        self.augment = Augmenter(torch.from_numpy(scans), drawings, self.generator)

    def run(self, epochs: int, rate: float, finish_share: float) -> None:
        """Train for some epochs, the last part of which distort less, with a highest rate of learning."""
        optimizer = torch.optim.AdamW(self.network.parameters(), lr=rate, weight_decay=0.02)
        batches = len(self.labels) // BATCH
        schedule = torch.optim.lr_scheduler.OneCycleLR(
            optimizer, rate, total_steps=epochs * batches, pct_start=0.2
        )
        for epoch in range(epochs):
            self.augment.finishing = epoch >= (1 - finish_share) * epochs
            order = torch.randperm(len(self.labels), generator=self.generator)
            total = 0.0
            for chosen in order[: batches * BATCH].view(batches, BATCH):
                loss = self._loss(chosen)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                schedule.step()
                self.averaged.update_parameters(self.network)
                total += loss.item()
            if epoch % 10 == 9:
                print(f"epoch {epoch + 1}: mean loss {total / batches:.3f}", flush=True)

    def _loss(self, chosen: torch.Tensor) -> torch.Tensor:
        pen = torch.randint(DRAWINGS, (DRAWINGS_PER_BATCH,), generator=self.generator)
        printed = DRAWINGS + torch.randint(PRINTED, (PRINTED_PER_BATCH,), generator=self.generator)
        bent = DRAWINGS + PRINTED + torch.randint(BENT, (BENT_PER_BATCH,), generator=self.generator)
        drawn = torch.cat((pen, printed, bent))
        targets = torch.cat((self.labels[chosen], drawn % 10))
        scores = self.network.scores(self.augment(chosen, drawn))
        return functional.cross_entropy(scores, targets, label_smoothing=0.05)


def practice_drawings() -> torch.Tensor:
    """Pen drawings (n, 60, 60) of values 0 to 1, of the digits 0 to 9 in turn."""
    rng = np.random.default_rng(SEED)
    ink = [practice_ink(number % 10, FRAME, ZOOM * MARGIN / FRAME, rng) for number in range(DRAWINGS)]
    return torch.from_numpy(np.stack(ink))


def printed_drawings(folders: list[Path]) -> torch.Tensor:
    """Printed digits (n, 60, 60) of values 0 to 1, 0 to 9 in turn: of each family of fonts equally many."""
    rng = np.random.default_rng(SEED + 5)
    glyphs = draw_glyphs(folders, PRINTED, rng)
    return torch.from_numpy(np.stack([printed_ink(one, FRAME, ZOOM * MARGIN / FRAME, rng) for one in glyphs]))


def bent_drawings(scans: np.ndarray, digits: np.ndarray) -> torch.Tensor:
    """Scans that are bent as if others had written them (n, 60, 60) of values 0 to 1, 0 to 9 in turn."""
    rng = np.random.default_rng(SEED + 6)
    places = [np.flatnonzero(digits == digit) for digit in range(10)]
    chosen = (scans[rng.choice(places[number % 10])] for number in range(BENT))
    drawn = (draw_ink(scan, 2 * FRAME, rng, bent=True) for scan in chosen)
    return torch.from_numpy(np.stack([printed_ink(one, FRAME, ZOOM * MARGIN / FRAME, rng) for one in drawn]))


def probabilities(network: DigitsNet, images: list[np.ndarray]) -> np.ndarray:
    """Probabilities (n, 10) of prepared images (28, 28)."""
    with torch.no_grad():
        return np.asarray(network(torch.from_numpy(np.stack(images))[:, None]))


def measure(network: DigitsNet, scans: np.ndarray, digits: np.ndarray) -> dict[str, Any]:
    """Accuracy on held-out scans as pictures, and on script-made drawings of other origin."""
    pictures = [scan_picture(scan) for scan in scans]
    responses = probabilities(network, [prepare(picture) for picture in pictures]).argmax(axis=1)
    inverted = probabilities(network, [prepare(dark_on_light(picture)) for picture in pictures]).argmax(
        axis=1
    )
    arrays = probabilities(network, [prepare_array(scan) for scan in scans]).argmax(axis=1)
    confusion = np.zeros((10, 10), dtype=int)
    np.add.at(confusion, (digits, responses), 1)
    return {
        "test": {
            "scans": len(scans),
            "accuracy_png": share(responses == digits),
            "accuracy_png_dark_on_light": share(inverted == digits),
            "accuracy_array": share(arrays == digits),
            "errors_png": int((responses != digits).sum()),
            "confusion_rows_true_columns_response": confusion.tolist(),
        },
        "drawings": measure_drawings(network, scans, digits),
        "hard_drawings": measure_hard(network, scans, digits),
    }


def measure_drawings(network: DigitsNet, scans: np.ndarray, digits: np.ndarray) -> dict[str, Any]:
    """Accuracy by source, polarity and canvas side."""
    asked = list(questions(scans, digits, SEED + 1))
    responses = probabilities(network, [prepare(question.picture) for question in asked]).argmax(axis=1)
    right = np.array([question.digit for question in asked]) == responses
    table: dict[str, Any] = {"count": len(asked), "accuracy": share(right)}
    for source in ("scan", "pen", "font"):
        of_source = np.array([question.source == source for question in asked])
        rows: dict[str, Any] = {"accuracy": share(right[of_source])}
        for polarity in ("light on dark", "dark on light"):
            for side in sorted({question.side for question in asked}):
                chosen = of_source & [q.polarity == polarity and q.side == side for q in asked]
                rows[f"{polarity}, {side}x{side}"] = share(right[chosen])
        rows["by_digit"] = [
            share(right[of_source & [question.digit == digit for question in asked]]) for digit in range(10)
        ]
        table[source] = rows
    return table


def measure_hard(network: DigitsNet, scans: np.ndarray, digits: np.ndarray) -> dict[str, Any]:
    """Accuracy on hard drawings, all and of each kind."""
    asked = list(hard_drawings(scans, digits, SEED + 3))
    responses = probabilities(network, [prepare(question.picture) for question in asked]).argmax(axis=1)
    right = np.array([question.digit for question in asked]) == responses
    kinds = np.array([question.kind for question in asked])
    return {
        "count": len(asked),
        "accuracy": share(right),
        **{kind: share(right[kinds == kind]) for kind in dict.fromkeys(kinds.tolist())},
    }


def share(right: np.ndarray) -> float:
    """Fraction of true values, to four places."""
    return round(float(np.mean(right)), 4)


def export(network: DigitsNet) -> None:
    """Write digits.pnnx.param and .bin, and check that the exported graph computes what the network computes."""
    one, two = (torch.rand(batch, 1, SIDE, SIDE) for batch in (1, 2))
    with tempfile.TemporaryDirectory() as scratch:
        exported = pnnx.export(network, f"{scratch}/digits.pt", inputs=(one,), inputs2=(two,), fp16=False)
        with torch.no_grad():
            torch.testing.assert_close(exported.eval()(two), network(two), rtol=1e-4, atol=1e-5)
        for name in ("digits.pnnx.param", "digits.pnnx.bin"):
            shutil.copy(Path(scratch) / name, HERE / name)


def write_samples(network: DigitsNet, scans: np.ndarray, digits: np.ndarray) -> None:
    """Write samples/0.png to 9.png: pen drawings, and two held-out scans (4 and 8) enlarged.

    Raises:
        RuntimeError: the network misreads one of them.
    """
    rng = np.random.default_rng(SEED + 2)
    folder = HERE / "samples"
    folder.mkdir(exist_ok=True)
    for digit in range(10):
        side = (28, 64, 140, 280, 112)[digit % 5]
        style = Style(
            height=rng.uniform(0.6, 0.8),
            aspect=rng.uniform(0.65, 0.8),
            pen=rng.uniform(0.06, 0.1),
            angle=rng.uniform(-8, 8),
            slant=rng.uniform(0, 0.15),
            left=rng.uniform(0.15, 0.3),
            top=rng.uniform(0.08, 0.15),
            wobble=0.015,
        )
        if digit in (4, 8):
            picture = scan_digit(scans[np.flatnonzero(digits == digit)[3]], side, style)
        else:
            picture = pen_digit(EXAM[digit], side, style, rng)
        if digit % 2:
            picture = dark_on_light(picture)
        picture.save(folder / f"{digit}.png", optimize=True)
        with Image.open(folder / f"{digit}.png") as saved:
            response = probabilities(network, [prepare(saved)])[0]
        if response.argmax() != digit:
            raise RuntimeError(f"samples/{digit}.png is read as {response.argmax()}")
        print(f"samples/{digit}.png: {side}x{side}, probability {response[digit]:.3f}")


if __name__ == "__main__":
    main()
