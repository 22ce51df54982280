"""Bodies -> arrays: finds out what a body is and hands it to the reader of its kind."""

from collections.abc import Sequence

from engine import Port
from service.codec.decoded import Decoded
from service.codec.limits import Limits
from service.model_config import ModelConfig


def decode(
    body: bytes, content_type: str | None, ports: Sequence[Port], config: ModelConfig, limits: Limits
) -> Decoded:
    """Turn a request's body into the inputs of a graph.

    Args:
        body: the whole body.
        content_type: the header; where it is missing or says nothing of use, the first bytes decide.
        ports: the graph's inputs, as `graph.inputs` gives them.
        config: the model's configuration.
        limits: what is too much.

    Raises:
        ServiceError: 400, 413, 415 or 422, as listed in the package's docstring; never anything else.
    """
    return Decoded({})
