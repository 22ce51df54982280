"""How the versions of a model share its requests, as `GET /models` and `GET /models/NAME/traffic` show it."""

from pydantic import BaseModel, Field

from service.schemas import JsonNumber


class VersionTraffic(BaseModel):
    """The share of a version."""

    version: str
    wanted: float = Field(description="share of the requests that it is to get, 0 to 1")
    seen: float | None = Field(
        description="part that it got since the model was loaded; null before the first"
    )
    requests: int = Field(
        description="requests that it was chosen for; those that name a version are not among them"
    )


class DivergenceView(BaseModel):
    """Where two versions diverge first."""

    operator: str = Field(description="first operator in order of execution whose results differ")
    type: str
    max_abs: JsonNumber | None = Field(description="largest absolute difference; null where shapes differ")
    max_rel: JsonNumber | None = Field(description="the same over the largest magnitude of the results")
    group: list[str] = Field(description="other operators of the same kernel: one of them may be the first")


class ShadowRunView(BaseModel):
    """A request that was run on another version as well."""

    request_id: str
    version: str = Field(description="version that served the request")
    shadow: str = Field(description="version that was run beside it")
    outcome: str = Field(description="agrees, differs or failed")
    run_ms: float = Field(description="time of the run of the version that served the request")
    shadow_ms: float = Field(description="time of the other run")
    max_abs: JsonNumber | None = Field(
        description="largest absolute difference of the outputs; null where it failed"
    )
    max_rel: JsonNumber | None = Field(description="the same over the largest value of the response")
    labels: int = Field(description="items whose most probable label is another one")
    divergence: DivergenceView | None = Field(description="null where it was not looked for, or not found")
    error: str | None = Field(description="why the version failed")
    at_ms: float = Field(description="when, in milliseconds since the epoch")


class ShadowView(BaseModel):
    """What shadow runs have shown since the model was loaded."""

    version: str
    share: float = Field(description="part of the requests that is to be run on it as well")
    tolerance: float
    outcomes: dict[str, int] = Field(description="requests that were chosen for it -> what became of them")
    labels: int = Field(description="items whose most probable label was another one")
    divergence: DivergenceView | None = Field(description="the last that was found; null before")
    refusals: dict[str, str] = Field(description="version -> why requests that it serves have no shadow runs")


class TrafficView(BaseModel):
    """How the requests that name no version are shared."""

    stable: str | None = Field(description="version with the largest share; null where none has one")
    sticky: str | None = Field(description="header whose value leads to the same version each time")
    versions: list[VersionTraffic] = Field(description="the versions that have a share, lowest first")
    shadow: ShadowView | None = Field(default=None, description="null where there are no shadow runs")


class TrafficDetail(TrafficView):
    """The same, with the last shadow runs."""

    model: str
    runs: list[ShadowRunView] = Field(default=[], description="the last shadow runs, newest first")
