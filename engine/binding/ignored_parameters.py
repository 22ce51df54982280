"""Unknown parameters of an operator: they have no effect, and cause a warning."""

from collections.abc import Iterator

from engine.binding.argument_binding import argument_names
from engine.binding.registry import Layer
from engine.binding.result_choice import PARAMETER
from engine.pnnx import Operator

_TOLD_BY_WEIGHTS = """
    affine bias add_bias_kv elementwise_affine track_running_stats
    in_channels out_channels kernel_size num_channels num_features num_parameters
    in_features out_features embedding_dim num_embeddings embed_dim kdim vdim
    input_size hidden_size proj_size
"""
_OF_TRAINING_OR_MEMORY = (
    "scale_grad_by_freq sparse copy memory_format non_blocking generator training inplace"
)
_HARMLESS = frozenset((*_TOLD_BY_WEIGHTS.split(), *_OF_TRAINING_OR_MEMORY.split(), PARAMETER))
"""Parameters without effect: redundant with the shapes of weights, or about training or memory."""

_NOTHING = (None, False, 0.0)
"""Values that disable a parameter."""


def ignored(layer: Layer, operator: Operator) -> Iterator[str]:
    """Yield a warning for each parameter that a layer does not know, unless it is known to have no effect."""
    if layer.variadic:
        return
    known = {argument.name for argument in layer.arguments}
    place = f"{operator.type} {operator.name}"
    for name, value in operator.params.items():
        if name not in known and name not in _HARMLESS and value not in _NOTHING:
            yield f"{place}: the parameter {name}={value} is not known to its layer and has no effect"
    strange = [name for name in argument_names(operator) if name not in known]
    if len(strange) > 1:
        names = ", ".join(map(repr, strange))
        yield f"{place}: inputs named {names} are not known to its layer, and are taken in the order of its arguments"
