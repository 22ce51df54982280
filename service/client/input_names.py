"""The names of models' inputs, which binary tensors need: asked for once, and forgotten when they may have changed."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from service.client import tensors
from service.client.calls import CallOptions
from service.client.errors import RefusedError
from service.client.inputs import Arrays

_Key = tuple[str, str]


class InputNames:
    """What a client knows of the inputs of models; any number of threads may use it."""

    def __init__(self) -> None:
        self._known: dict[_Key, tuple[str, ...]] = {}

    def suffices(self, inputs: Arrays, options: CallOptions, capture: Sequence[str]) -> bool:
        """Return whether arrays can travel as binary tensors: to a named model, in dtypes that the protocol has.

        Several arrays without names do not: a model that was replaced meanwhile may have its inputs in another order,
        which the server knows and this does not.
        """
        return (
            options.get("model") is not None
            and not capture
            and (inputs.names is not None or len(inputs.values) == 1)
            and all(map(tensors.has_datatype, inputs.values))
        )

    def find(self, inputs: Arrays, options: CallOptions) -> Sequence[str] | None:
        """Return the names for arrays, in order; None where they have to be asked for."""
        return self._known.get(_key(options)) if inputs.names is None else inputs.names

    def keep(self, options: CallOptions, names: tuple[str, ...]) -> tuple[str, ...]:
        """Remember the names of a model's inputs; return them."""
        self._known[_key(options)] = names
        return names

    @contextmanager
    def forgotten_on_refusal(self, options: CallOptions) -> Iterator[None]:
        """Forget the names of a model's inputs where the server refuses a call: the model may have been replaced."""
        try:
            yield
        except RefusedError:
            self._known.pop(_key(options), None)
            raise


def _key(options: CallOptions) -> _Key:
    return str(options.get("model")), str(options.get("version"))
