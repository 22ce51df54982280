"""How the versions of a model share its requests, as `GET /models` shows it."""

from pydantic import BaseModel, Field


class VersionTraffic(BaseModel):
    """The share of a version."""

    version: str
    wanted: float = Field(description="part of the requests that it is to get, 0 to 1")
    seen: float | None = Field(
        description="part that it got since the model was loaded; null before the first"
    )
    requests: int = Field(
        description="requests that it was chosen for; those that name a version are not among them"
    )


class TrafficView(BaseModel):
    """How the requests that name no version are shared."""

    stable: str | None = Field(description="version with the largest share; null where none has one")
    sticky: str | None = Field(description="header whose value leads to the same version each time")
    versions: list[VersionTraffic] = Field(description="the versions that have a share, lowest first")
