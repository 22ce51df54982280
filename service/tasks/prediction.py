"""One class that an item may belong to."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Prediction:
    """A class and how likely it is.

    Attributes:
        label: name of the class; its index in digits where the model has no labels.
        index: place of the class in the output.
        probability: the output's value, after softmax where the model's configuration asks for one.
    """

    label: str
    index: int
    probability: float
