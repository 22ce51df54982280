"""Decodes request bodies: finds the format of a body, which then reads it."""

from collections.abc import Sequence

from engine import Port
from service.codec.decoded import Decoded
from service.codec.format import RequestBody
from service.codec.formats import find_format
from service.codec.media_type import parse_media_type
from service.config.limits import Limits
from service.config.model_config import ModelConfig
from service.errors import ServiceError
from service.heavy_work import check_weight


def decode(
    body: bytes,
    content_type: str | None,
    ports: Sequence[Port],
    config: ModelConfig,
    limits: Limits,
    *,
    open_batch: bool = False,
) -> Decoded:
    """Turn a request's body into the inputs of a graph.

    Args:
        body: the whole body.
        content_type: the header; where it is missing or none of ours, the first bytes of the body decide.
        ports: the graph's inputs, as `graph.inputs` gives them.
        config: the model's configuration.
        limits: upper bounds on the request's size.
        open_batch: whether any number of images may be sent, even if the file fixes the size of a batch.

    Raises:
        ServiceError: 400, 413, 415 or 422, as listed in the package's docstring; never anything else.
        HeavyWorkError: this thread leaves such work to others.
    """
    limits.check_body(len(body))
    if not body:
        raise ServiceError(400, "empty_body", "the body is empty; send an image, JSON, npy, npz or CSV")
    media_type = parse_media_type(content_type)
    found = find_format(media_type, body)
    check_weight(len(body), found.light_bytes)
    return found.decode(RequestBody(body, ports, config, limits, media_type.parameters, open_batch))
