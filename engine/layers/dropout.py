"""Dropout of all kinds: the identity, as a model that is served is not in training."""

from engine.dtypes import Array
from engine.registry import layer
from engine.spec import TensorSpec


def _infer_identity(input: TensorSpec) -> TensorSpec:
    return input


@layer(
    *("nn.Dropout", "nn.Dropout2d", "nn.Dropout3d", "nn.AlphaDropout"),
    *("F.dropout", "F.dropoutnd", "F.alpha_dropout", "F.feature_alpha_dropout"),
    infer=_infer_identity,
)
def dropout(input: Array) -> Array:
    """Give the input; `training=True` in a file says how the model was traced, not that it is being trained."""
    return input
