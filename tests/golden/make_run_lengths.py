"""Write `run_lengths.json`: what COCO's own tools make of masks.

pip install -e ".[train,golden]"
python -m tests.golden.make_run_lengths
"""

import json
from pathlib import Path

import numpy as np
from pycocotools.mask import area, encode, toBbox

from tests.service.tasks.masks import GOLDEN, draw_masks


def main() -> None:
    responses = {}
    for name, mask in draw_masks().items():
        encoded = encode(np.asfortranarray(mask.astype(np.uint8)))
        left, top, width, height = toBbox(encoded)
        responses[name] = {
            "counts": encoded["counts"].decode(),
            "area": int(area(encoded)),
            "box": [int(left), int(top), int(left + width), int(top + height)],
        }
    Path(GOLDEN).write_text(json.dumps(responses, indent=1) + "\n")


if __name__ == "__main__":
    main()
