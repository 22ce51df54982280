"""The body of a request that changes trace or log settings."""

from typing import TypeVar

from pydantic import BaseModel, ValidationError

from service.config.validation import first_mismatch
from service.errors import ServiceError, did_you_mean
from service.v2.document import Document

Model = TypeVar("Model", bound=BaseModel)


def parse_settings(kind: str, model: type[Model], values: Document) -> Model:
    """Validate settings.

    Args:
        kind: how messages refer to a setting, such as "log setting".
        model: the settings that exist.
        values: the settings, by name.

    Raises:
        ServiceError: 400 `invalid_setting` for a setting that does not exist or has an invalid value.
    """
    try:
        return model.model_validate(values)
    except ValidationError as error:
        found = first_mismatch(error)
    if found.is_unknown_key:
        hint = did_you_mean(found.key, model.model_fields)
        raise invalid_setting(
            kind, found.key, f"is no {kind}", f"one of {', '.join(model.model_fields)}{hint}"
        )
    raise invalid_setting(kind, found.key, found.problem, found.expected)


def invalid_setting(kind: str, name: str, problem: str, expected: str) -> ServiceError:
    """Return the error for a setting that does not exist or has an invalid value."""
    message = f"{kind} {name[:80]} {problem}; expected {expected}"
    return ServiceError(400, "invalid_setting", message, {"setting": name[:80]})
