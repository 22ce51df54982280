"""Dropout of all kinds: the identity, as a model that is served is not being trained."""

from engine.dtypes import Array
from engine.layers.view_rules import view_layer


@view_layer(
    *("nn.Dropout", "nn.Dropout2d", "nn.Dropout3d", "nn.AlphaDropout"),
    *("F.dropout", "F.dropoutnd", "F.dropout1d", "F.dropout2d", "F.dropout3d"),
    *("F.alpha_dropout", "F.feature_alpha_dropout"),
)
def dropout(input: Array, p: float = 0.5, training: bool = False) -> Array:
    """Give the input; `training` in a file is the mode in which the model was traced."""
    del p, training
    return input
