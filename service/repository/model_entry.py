"""What the repository knows about one model: the versions that it serves, and why it does not serve the others."""

import difflib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, Field

from service.config.model_config import ModelConfig
from service.config.traffic_config import TrafficConfig
from service.errors import ServiceError, did_you_mean
from service.repository.loaded_model import LoadedModel

WHOLE_MODEL = ""
"""Takes the place of a version in statements about the model as a whole."""
UNLOADED = "unloaded"
"""Reason why a version that a client unloaded is not served."""
NOT_LOADED = "not loaded"
"""Reason why a model that was added to the folder after the start is not served."""


class IndexLine(BaseModel):
    """A version of a model in the repository, or a model without known versions."""

    name: str
    version: str | None = None
    state: Literal["READY", "LOADING", "UNAVAILABLE"]
    reason: str = Field(default="", description="why it is not served; empty if it is")


@dataclass(frozen=True, slots=True)
class ModelEntry:
    """One model at one moment; immutable.

    Attributes:
        name: its name.
        versions: the versions that are served, lowest first.
        unavailable: version -> why it is not served.
        is_loading: whether the model is being loaded for the first time.
        traffic: how its versions share the requests that name none, another object after each load; None: the highest
            version serves them.
        pipelines: of a pipeline, the folder and the `model.toml` of each version, which is made whenever a model is
            loaded or unloaded.
    """

    name: str
    versions: Mapping[str, LoadedModel] = field(default_factory=dict)
    unavailable: Mapping[str, str] = field(default_factory=dict)
    is_loading: bool = False
    traffic: TrafficConfig | None = None
    pipelines: Mapping[str, tuple[Path, ModelConfig]] = field(default_factory=dict)

    @property
    def default(self) -> LoadedModel | None:
        """The version that stands for the model: the highest, or the one with the largest share; None if none is."""
        if len(self.versions) == 1:
            return next(iter(self.versions.values()))
        if self.traffic is not None and (stable := self.traffic.stable(self.versions)) is not None:
            return self.versions[stable]
        return max(self.versions.values(), key=lambda model: int(model.version), default=None)

    @property
    def reason(self) -> str:
        """Why versions are not served, in one sentence; empty if all are."""
        if set(self.unavailable.values()) == {UNLOADED}:
            return UNLOADED
        plain = len(self.all_versions) <= 1
        return "; ".join(
            reason if plain or version == WHOLE_MODEL else f"version {version}: {reason}"
            for version, reason in self.unavailable.items()
        )

    @property
    def all_versions(self) -> list[str]:
        """All known versions, served or not, lowest first."""
        return sorted({*self.versions, *self.unavailable} - {WHOLE_MODEL}, key=int)

    def index(self) -> Iterator[IndexLine]:
        """Yield the lines of the index, lowest version first."""
        if self.is_loading:
            yield IndexLine(name=self.name, state="LOADING")
        elif WHOLE_MODEL in self.unavailable:
            yield IndexLine(name=self.name, state="UNAVAILABLE", reason=self.unavailable[WHOLE_MODEL])
        for version in self.all_versions:
            if version in self.versions:
                yield IndexLine(name=self.name, version=version, state="READY")
            else:
                reason = self.unavailable[version]
                yield IndexLine(name=self.name, version=version, state="UNAVAILABLE", reason=reason)

    def find(self, version: str | None) -> LoadedModel:
        """Return a version; the default one if no version is given.

        Raises:
            ServiceError: 404 `version_not_found`, 503 `model_broken`, `model_unloaded` or `model_loading`.
        """
        found = self.default if version is None else self.versions.get(version)
        if found is not None:
            return found
        if version is not None and version not in self.unavailable and self.versions:
            message = (
                f"model {self.name!r} has no version {version[:80]!r}; there are {', '.join(self.versions)}"
            )
            details = {"model": self.name, "version": version[:80], "versions": list(self.versions)}
            raise ServiceError(404, "version_not_found", message, details)
        raise self._unavailable(version)

    def no_share(self) -> ServiceError:
        """Return the error to respond with where no version that has a weight is served."""
        message = f"model {self.name!r}: no version that has a weight is served; name one: {', '.join(self.versions)}"
        details = {"model": self.name, "reason": self.reason, "versions": list(self.versions)}
        return ServiceError(503, "model_broken", message, details)

    def _unavailable(self, version: str | None) -> ServiceError:
        details: dict[str, Any] = {"model": self.name}
        if self.is_loading:
            message = f"model {self.name!r} is being loaded"
            return ServiceError(503, "model_loading", message, details, {"Retry-After": "1"})
        what, reason = f"model {self.name!r}", self.reason
        if version is not None and version in self.unavailable:
            what, reason = f"{what}, version {version}", self.unavailable[version]
            details["version"] = version
        details["reason"] = reason
        if reason == UNLOADED:
            return ServiceError(503, "model_unloaded", f"{what} is unloaded", details)
        return ServiceError(503, "model_broken", f"{what} is broken: {reason}", details)


def model_not_found(name: str, names: Sequence[str]) -> ServiceError:
    """Return the error of a request for a model that there is not; `names` are those that are served."""
    nearest = difflib.get_close_matches(name[:80], names, n=3, cutoff=0.5)
    message = f"no model is called {name[:80]!r}; there are {', '.join(names) or 'none'}"
    message += did_you_mean(name, names)
    details = {"model": name[:80], "models": list(names), "nearest": nearest}
    return ServiceError(404, "model_not_found", message, details)


def only_served(entries: Iterable[ModelEntry]) -> ModelEntry:
    """Return the only model that is served.

    Raises:
        ServiceError: 422 `model_required`, 503 `model_unloaded` if none is served.
    """
    served = [entry for entry in entries if entry.versions]
    if len(served) == 1:
        return served[0]
    names = [entry.name for entry in served]
    if not names:
        raise ServiceError(503, "model_unloaded", "no model is loaded", headers={"Retry-After": "1"})
    message = f"say which model, as in ?model={names[0]}; there are {', '.join(names)}"
    raise ServiceError(422, "model_required", message, {"models": names})
