"""The base of the tables of `model.toml`."""

from pydantic import BaseModel, ConfigDict


class TomlTable(BaseModel):
    """A table of `model.toml`. Unknown keys, values of other types and infinite numbers are refused."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True, allow_inf_nan=False)
