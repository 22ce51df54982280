"""What all tables of `model.toml` have in common."""

from pydantic import BaseModel, ConfigDict


class Table(BaseModel):
    """A table of `model.toml`: no key beyond its own, no value of another type, no infinite number."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True, allow_inf_nan=False)
