"""Made-up inputs of a model in int8, within the ranges of what it was calibrated on."""

from collections.abc import Mapping

import numpy as np

from engine.dtypes import Array
from engine.quantization.tensor_scale import TensorScale

_SEED = 0


def calibrated_inputs(inputs: Mapping[str, Array], scales: Mapping[str, TensorScale]) -> dict[str, Array]:
    """Return inputs with numbers spread evenly over their quantized range, so that none saturates.

    Args:
        inputs: operand -> what it would be otherwise; one without a scale, and one that is not float32, stays so.
        scales: operand -> its scale.
    """
    random = np.random.default_rng(_SEED)
    found = dict(inputs)
    for name, array in inputs.items():
        if name in scales and array.dtype == np.float32:
            found[name] = random.uniform(*scales[name].limits, array.shape).astype(np.float32)
    return found
