"""Where two versions of a model diverge first, for shadow runs."""

from collections.abc import Mapping

from engine import Array
from service.codec.json_text import json_number
from service.repository.loaded_model import LoadedModel
from service.repository.traffic_schemas import DivergenceView
from service.traffic.shadows import Stop


def find_divergence(
    model: LoadedModel, other: LoadedModel, inputs: Mapping[str, Array], tolerance: float, stop: Stop
) -> DivergenceView | None:
    """Return the first operator whose results differ by more than a tolerance; None where none does.

    Operands are compared that have the same name in both graphs.

    Args:
        model: a version.
        other: the other one, whose inputs have the same names.
        inputs: operand name -> array.
        tolerance: largest difference that is ignored, relative to the value and to the largest of its tensor.
        stop: asked before each layer of most runs.

    Raises:
        ServiceError: 413 `comparison_too_large`.
        InputError, LayerError: a version does not run on the inputs.
        RunStoppedError: `stop` said so.
    """
    # these take a while to import, and hardly any server needs them
    from service.inspection.comparison import Compared, first_problem  # noqa: PLC0415
    from service.inspection.variant import Variant  # noqa: PLC0415

    variant = Variant(f"{other.name}, version {other.version}", other.graph)
    found = first_problem(Compared(model, inputs, variant, {}, tolerance), stop)
    if found is None:
        return None
    return DivergenceView.model_validate(
        {
            "operator": found.operator,
            "type": found.type,
            "max_abs": json_number(found.absolute),
            "max_rel": json_number(found.relative),
            "group": list(found.group),
        }
    )
