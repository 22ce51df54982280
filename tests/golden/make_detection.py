"""Make the golden data of detection: what PyTorch makes of the outputs of YOLO heads.

    python -m tests.golden.make_detection        (needs torch; run from the root of the tree)

Writes tests/golden/detection.npz: inputs of each case, and the boxes that remain. Written from the formulas of
Ultralytics' YOLOv5 and YOLOv8 and of torchvision's `nms`, one box at a time.
"""

from pathlib import Path

import numpy as np
import torch

from tests.golden.network_data import arrays

FILE = Path(__file__).parent / "detection.npz"
STRIDES = (8, 16, 32)


def nms(boxes: torch.Tensor, scores: torch.Tensor, classes: torch.Tensor, threshold: float) -> list[int]:
    """Return the boxes that remain, as torchvision's `batched_nms` does class by class."""
    areas = (boxes[:, 2] - boxes[:, 0]) * (boxes[:, 3] - boxes[:, 1])
    dropped = torch.zeros(len(boxes), dtype=torch.bool)
    kept = []
    for one in torch.argsort(scores, descending=True, stable=True).tolist():
        if dropped[one]:
            continue
        kept.append(one)
        low, high = torch.maximum(boxes[:, :2], boxes[one, :2]), torch.minimum(boxes[:, 2:], boxes[one, 2:])
        inter = (high - low).clamp(min=0).prod(dim=1)
        over = inter / (areas + areas[one] - inter) > threshold
        dropped |= over & (classes == classes[one])
    return kept


def remaining(
    centres: torch.Tensor, sizes: torch.Tensor, scores: torch.Tensor, confidence: float, iou: float
) -> np.ndarray:
    """Return (boxes, 6): corners, score and class, of (boxes, 2), (boxes, 2) and (boxes, classes)."""
    best, classes = scores.max(dim=1)
    chosen = best > confidence
    boxes = torch.cat([centres - sizes / 2, centres + sizes / 2], dim=1)[chosen]
    kept = nms(boxes, best[chosen], classes[chosen], iou)
    rows = torch.cat([boxes, best[chosen, None], classes[chosen, None].float()], dim=1)[kept]
    return np.asarray(rows.numpy())


def decode_v8(maps: list[torch.Tensor], classes: int) -> torch.Tensor:
    """Return (batch, 4 + classes, cells), as Ultralytics' `Detect` has it in inference."""
    joined = torch.cat([one.flatten(2) for one in maps], dim=2)
    sides, logits = joined.split((64, classes), dim=1)
    weights = torch.arange(16.0).view(1, 1, 16, 1)
    distances = (sides.view(len(sides), 4, 16, -1).softmax(dim=2) * weights).sum(dim=2)
    points, strides = [], []
    for one, stride in zip(maps, STRIDES, strict=True):
        y, x = torch.meshgrid(
            torch.arange(one.shape[2]) + 0.5, torch.arange(one.shape[3]) + 0.5, indexing="ij"
        )
        points.append(torch.stack([x.flatten(), y.flatten()]))
        strides.append(torch.full((x.numel(),), float(stride)))
    centres, scale = torch.cat(points, dim=1), torch.cat(strides)
    low, high = centres - distances[:, :2], centres + distances[:, 2:]
    return torch.cat([(low + high) / 2 * scale, (high - low) * scale, logits.sigmoid()], dim=1)


def make_figures(decoded: torch.Tensor, generator: torch.Generator) -> dict[str, np.ndarray]:
    """Return boxes with five points each, and those that remain: (boxes, 6 + 15)."""
    points = torch.rand(2, 15, decoded.shape[2], generator=generator) * 64
    rows = torch.cat([decoded[:, :5], points], dim=1)
    made = {"keypoints/decoded": rows.numpy()}
    for item, values in enumerate(rows):
        made[f"keypoints/{item}"] = with_extra(values, 1)
    return made


def make_instances(decoded: torch.Tensor, generator: torch.Generator) -> dict[str, np.ndarray]:
    """Return boxes with four coefficients, prototypes, and the masks that remain in the input's size."""
    rows = torch.cat([decoded, torch.randn(2, 4, decoded.shape[2], generator=generator)], dim=1)
    prototypes = torch.randn(2, 4, 16, 24, generator=generator)
    made = {"instances/decoded": rows.numpy(), "instances/prototypes": prototypes.numpy()}
    for item, values in enumerate(rows):
        kept = with_extra(values, 3)
        mixed = torch.einsum("nc,chw->nhw", torch.from_numpy(kept[:, 6:]), prototypes[item])
        whole = torch.nn.functional.interpolate(mixed[None], (64, 96), mode="bilinear", align_corners=False)
        masks = np.zeros(whole.shape[1:], bool)
        for place, box in enumerate(kept[:, :4].clip(0, (96, 64, 96, 64))):
            left, top = np.floor(box[:2]).astype(int)
            right, bottom = np.ceil(box[2:]).astype(int)
            masks[place, top:bottom, left:right] = whole[0, place, top:bottom, left:right].numpy() > 0
        made |= {f"instances/{item}": kept, f"instances/masks/{item}": np.packbits(masks)}
    return made


def make_points(maps: list[torch.Tensor], generator: torch.Generator) -> dict[str, np.ndarray]:
    """Return undecoded points, five of a box, and the boxes that remain with those that Ultralytics' `Pose` decodes."""
    values = [torch.randn(2, 15, *one.shape[2:], generator=generator) for one in maps]
    made = {f"points/map_{index}": one.numpy() for index, one in enumerate(values)}
    points = []
    for one, stride in zip(values, STRIDES, strict=True):
        y, x = torch.meshgrid(torch.arange(one.shape[2]), torch.arange(one.shape[3]), indexing="ij")
        triples = one.view(2, 5, 3, *one.shape[2:])
        decoded = [
            (triples[:, :, 0] * 2 + x) * stride,
            (triples[:, :, 1] * 2 + y) * stride,
            triples[:, :, 2].sigmoid(),
        ]
        points.append(torch.stack(decoded, dim=2).flatten(3).flatten(1, 2))
    whole = torch.cat([decode_v8([one[:, :65] for one in maps], 1), torch.cat(points, dim=2)], dim=1)
    for item, rows in enumerate(whole):
        made[f"points/{item}"] = with_extra(rows, 1)
    return made


def with_extra(values: torch.Tensor, classes: int) -> np.ndarray:
    """Return (boxes, 6 + values): the boxes that remain of (4 + classes + values, cells), with what follows."""
    best, labels = values[4 : 4 + classes].max(dim=0)
    chosen = best > 0.25
    boxes = torch.cat([values[:2] - values[2:4] / 2, values[:2] + values[2:4] / 2]).T[chosen]
    extra = values[4 + classes :].T[chosen]
    kept = nms(boxes, best[chosen], labels[chosen], 0.7)
    rows = torch.cat([boxes, best[chosen, None], labels[chosen, None].float(), extra], dim=1)[kept]
    return np.asarray(rows.numpy())


def main() -> None:
    """Make all cases."""
    generator = torch.Generator().manual_seed(0)
    made: dict[str, np.ndarray] = {}
    for name, count, classes in (("few", 60, 3), ("many", 2000, 5), ("one", 1, 1), ("none", 0, 1)):
        middle, half = (
            torch.rand(count, 2, generator=generator),
            torch.rand(count, 2, generator=generator) / 6,
        )
        boxes = torch.cat([middle - half, middle + half], dim=1) * 640
        scores = (torch.rand(count, generator=generator) * 50).round() / 50  # many are equal
        labels = torch.randint(0, classes, (count,), generator=generator)
        for kind, used in (("each", labels), ("all", torch.zeros_like(labels))):
            made[f"nms/{name}/{kind}"] = np.array(nms(boxes, scores, used, 0.45), np.int64)
        made |= {
            f"nms/{name}/{key}": value.numpy()
            for key, value in (("boxes", boxes), ("scores", scores), ("classes", labels))
        }
    decoded = torch.from_numpy(arrays("yolov5_moduleop", "other", "out")[0])
    for item, rows in enumerate(decoded):
        scores = rows[:, 5:] * rows[:, 4:5]
        made[f"yolov5/{item}"] = remaining(rows[:, :2], rows[:, 2:4], scores, 0.25, 0.45)
    maps = [torch.randn(2, 67, 64 // s, 96 // s, generator=generator) * 2 for s in STRIDES]
    made |= {f"yolov8/map_{index}": one.numpy() for index, one in enumerate(maps)}
    whole = decode_v8(maps, 3)
    made["yolov8/decoded"] = whole.numpy()
    for item, rows in enumerate(whole):
        made[f"yolov8/{item}"] = remaining(rows[:2].T, rows[2:4].T, rows[4:].T, 0.25, 0.7)
    made |= make_figures(whole, generator) | make_instances(whole, generator)
    made |= make_points(maps, generator)
    np.savez_compressed(FILE, **made)  # type: ignore[arg-type]


if __name__ == "__main__":
    main()
