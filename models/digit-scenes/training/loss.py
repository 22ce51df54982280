"""The loss of YOLOv5: which anchor of which cell is to find a digit, and how far it is from that.

The rules are those of Ultralytics' YOLOv5, release 6: an anchor is assigned to a box unless one is over four times
as wide or high as the other, in the cell of the box's centre and in the two nearest. Boxes are compared by CIoU
(Zheng et al., "Enhancing Geometric Factors in Model Learning and Inference", 2021), which objectness learns as well.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.nn import functional

BOX_GAIN, OBJECT_GAIN, CLASS_GAIN = 0.15, 0.4, 1.0
STAGE_WEIGHTS = (4.0, 1.0, 0.4)  # of objectness: the coarser the stage, the fewer its cells
MAX_RATIO = 4.0


def detection_loss(
    heads: list[Tensor], targets: Tensor, anchors: tuple[tuple[int, ...], ...], strides: tuple[int, ...]
) -> Tensor:
    """Return the loss of one batch.

    Args:
        heads: for each stage (n, anchors, rows, columns, 5 + classes), undecoded.
        targets: (boxes, 6): index in the batch, class, and centre x, centre y, width and height in pixels.
        anchors: for each stage width and height of each anchor, in pixels.
        strides: for each stage, pixels per cell.
    """
    total = heads[0].new_zeros(())
    for head, sizes, stride, weight in zip(heads, anchors, strides, STAGE_WEIGHTS, strict=True):
        scaled = torch.tensor(sizes, dtype=torch.float32).view(-1, 2) / stride
        wanted = torch.zeros(head.shape[:4])
        places, cells, boxes, classes = assign(targets, scaled, stride, (head.shape[2], head.shape[3]))
        if len(classes):
            image, anchor, row, column = places
            found = head[image, anchor, row, column]
            y = found[:, :4].sigmoid()
            guessed = torch.cat((y[:, :2] * 2 - 0.5 + cells, (y[:, 2:] * 2) ** 2 * scaled[anchor]), 1)
            likeness = complete_iou(guessed, boxes)
            wanted[image, anchor, row, column] = likeness.detach().clamp(min=0)
            hot = functional.one_hot(classes, found.shape[1] - 5).float()
            total = total + BOX_GAIN * (1 - likeness).mean()
            total = total + CLASS_GAIN * functional.binary_cross_entropy_with_logits(found[:, 5:], hot)
        total = total + OBJECT_GAIN * weight * functional.binary_cross_entropy_with_logits(
            head[..., 4], wanted
        )
    return total


def assign(
    targets: Tensor, anchors: Tensor, stride: int, grid: tuple[int, int]
) -> tuple[tuple[Tensor, Tensor, Tensor, Tensor], Tensor, Tensor, Tensor]:
    """Assign anchors to each box at one stage.

    Args:
        targets: as for `detection_loss`.
        anchors: (anchors, 2) in cells.
        stride: pixels per cell.
        grid: rows and columns.

    Returns:
        Indices of image, anchor, row and column; the cells' columns and rows (responses, 2); boxes (responses, 4) in
        cells; and classes (responses,).
    """
    boxes = targets[:, 2:] / stride
    ratio = boxes[:, None, 2:] / anchors[None]
    box, anchor = (torch.maximum(ratio, 1 / ratio).amax(2) < MAX_RATIO).nonzero(as_tuple=True)
    centre = boxes[box, :2]
    inside = centre - centre.floor()
    side = torch.where(inside < 0.5, -1.0, 1.0)
    steps = torch.stack(
        (torch.zeros_like(side), side * torch.tensor((1.0, 0)), side * torch.tensor((0, 1.0)))
    )
    cells = centre.floor()[None] + steps
    rows, columns = grid
    valid = ((cells >= 0) & (cells < torch.tensor((columns, rows)))).all(2)
    box, anchor = box.expand(3, -1)[valid], anchor.expand(3, -1)[valid]
    cells = cells[valid]
    image, classes = targets[box, 0].long(), targets[box, 1].long()
    return (image, anchor, cells[:, 1].long(), cells[:, 0].long()), cells, boxes[box], classes


def complete_iou(a: Tensor, b: Tensor) -> Tensor:
    """CIoU of boxes (n, 4) of centre and size: (n,)."""
    a_low, a_high = a[:, :2] - a[:, 2:] / 2, a[:, :2] + a[:, 2:] / 2
    b_low, b_high = b[:, :2] - b[:, 2:] / 2, b[:, :2] + b[:, 2:] / 2
    shared = (torch.minimum(a_high, b_high) - torch.maximum(a_low, b_low)).clamp(min=0).prod(1)
    iou = shared / (a[:, 2:].prod(1) + b[:, 2:].prod(1) - shared + 1e-7)
    diagonal = (torch.maximum(a_high, b_high) - torch.minimum(a_low, b_low)).square().sum(1) + 1e-7
    distance = (a[:, :2] - b[:, :2]).square().sum(1) / diagonal
    angles = torch.atan(b[:, 2] / b[:, 3]) - torch.atan(a[:, 2] / (a[:, 3] + 1e-7))
    aspect = 4 / math.pi**2 * angles.square()
    with torch.no_grad():
        share = aspect / (1 - iou + aspect + 1e-7)
    return iou - distance - share * aspect
