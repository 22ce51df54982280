"""The `parameters` of an inference request.

Unknown parameters are ignored: Triton's parameters extension lets clients send custom ones, which it hands to the
model's backend, and `tritonclient` and the gateways in front of servers add some of their own.
"""

from dataclasses import dataclass

from engine import TraceLevel
from service.codec import parse_options
from service.config.validation import number_from_text
from service.errors import ServiceError, shown
from service.v2.document import Document, bad_request, member

_NO_SEQUENCE = (0, "", False, None)
_SEQUENCE = ("sequence_id", "sequence_start", "sequence_end")
_MAX_PRIORITY = (1 << 32) - 1


@dataclass(frozen=True, slots=True)
class InferParameters:
    """What a request asks for besides its inputs and outputs.

    Attributes:
        timeout: seconds after which the request is abandoned; None if it sets none.
        priority: 1 is served first; 0 if it sets none.
        trace: how much of the run the response shows; None if it does not say.
        binary_output: whether outputs are sent as binary data unless they say otherwise.
    """

    timeout: float | None = None
    priority: int = 0
    trace: TraceLevel | None = None
    binary_output: bool = False


def parse_parameters(values: Document) -> InferParameters:
    """Read the parameters of a request: `timeout` (µs), `priority`, `trace`, `binary_data_output`.

    Raises:
        ServiceError: 400 `invalid_request`, `invalid_parameter`, or `unsupported_sequence` if the request is part of
            a sequence: models keep no state between requests.
    """
    for name in _SEQUENCE:
        if values.get(name) not in _NO_SEQUENCE:
            message = (
                f"parameter {name} is {shown(values[name])}: sequences are not served, models keep no state"
            )
            raise ServiceError(400, "unsupported_sequence", message, {"parameter": name})
    timeout = _whole(values, "timeout", (1 << 63) - 1)
    return InferParameters(
        timeout=timeout / 1e6 if timeout else None,
        priority=_whole(values, "priority", _MAX_PRIORITY),
        trace=parse_options({"trace": values["trace"]}).trace if "trace" in values else None,
        binary_output=bool(member(values, "binary_data_output", bool, "parameters.")),
    )


def _whole(values: Document, name: str, limit: int) -> int:
    """Return a whole number from 0, which means that none is given; Triton's clients may write it as text."""
    value = number_from_text(values.get(name))
    if value is None:
        return 0
    if type(value) is not int or not 0 <= value <= limit:
        raise bad_request(f"parameters.{name} is {shown(value)}; expected a whole number from 0 to {limit}")
    return value
