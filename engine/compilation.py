"""How far the compiler has come with a graph's shapes."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Compilation:
    """What was compiled for a graph, and what may be.

    Attributes:
        compiled: programs that were made so far, those among them that are not used or were displaced since.
        waiting: combinations of input shapes that are worth a program, and wait for the compiler or for a place.
        not_worth: combinations that runs had too seldom, or that numpy was too quick with, for a program to be made;
            the latest are remembered.
    """

    compiled: int = 0
    waiting: int = 0
    not_worth: int = 0
