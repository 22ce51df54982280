"""`[traffic]` in `model.toml`: how requests that name no version are shared among the versions of a model."""

import re
from collections.abc import Collection, Mapping
from typing import Annotated

from pydantic import AfterValidator, Field, model_validator

from service.config.toml_table import TomlTable
from service.config.version_policy import MAX_VERSION

_MAX_VERSIONS = 64
_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,128}")
"""The name of a header (RFC 9110, 5.1)."""


def _check_version(text: str) -> str:
    if not (text.isascii() and text.isdigit() and not text.startswith("0") and int(text) <= MAX_VERSION):
        raise ValueError('expected the number of a version in quotes, as in "2"')
    return text


def _check_header(text: str) -> str:
    if not _TOKEN.fullmatch(text):
        raise ValueError('expected the name of a header, as in "X-User"')
    return text


_Version = Annotated[str, Field(max_length=20), AfterValidator(_check_version)]
_Weight = Annotated[float, Field(ge=0, le=1e9)]


class ShadowConfig(TomlTable):
    """Shadow runs: requests that also run on another version, whose outputs are only compared.

    Attributes:
        version: the shadow version.
        share: share of requests to run on it as well.
        tolerance: maximum difference of outputs, relative to the largest value of the response.
    """

    version: _Version
    share: float = Field(gt=0, le=1)
    tolerance: float = Field(default=1e-3, ge=0, le=1)


class TrafficConfig(TomlTable):
    """How requests that name no version are split among versions.

    Attributes:
        weights: relative share of each version, as in `{ "2" = 90, "3" = 10 }`; default: all for the highest version
            that is no shadow.
        shadow: requests that are run on another version as well.
        sticky: name of a header; requests with the same value of it get the same version.
    """

    weights: Annotated[dict[_Version, _Weight], Field(max_length=_MAX_VERSIONS)] = Field(default_factory=dict)
    sticky: Annotated[str, AfterValidator(_check_header)] | None = None
    shadow: ShadowConfig | None = None

    @model_validator(mode="after")
    def _check_weights(self) -> "TrafficConfig":
        if self.weights and not any(self.weights.values()):
            raise ValueError("all weights are 0; expected one above 0 at least")
        return self

    def check_served(self, served: Collection[str]) -> None:
        """Check that there are the versions that the table names.

        Args:
            served: the versions that are to be served.

        Raises:
            ValueError: one is missing.
        """
        shadow = () if self.shadow is None else (self.shadow.version,)
        missing = sorted({*self.weights, *shadow} - set(served), key=int)
        if missing:
            versions = "version" if len(missing) == 1 else "versions"
            raise ValueError(f"{versions} {', '.join(missing)} not served; there are {', '.join(served)}")
        if not self.shares(served):
            raise ValueError(f"version {', '.join(shadow)} is the only one, and the shadow of no other")

    def shares(self, served: Collection[str]) -> Mapping[str, float]:
        """Return which part of the requests each version is to get, above 0 and 1 in all; lowest version first.

        Args:
            served: the versions that are served; the share of others goes to them. None may have a share.
        """
        weights = {
            version: weight for version, weight in self.weights.items() if weight and version in served
        }
        if not self.weights:
            others = [one for one in served if self.shadow is None or one != self.shadow.version]
            weights = {max(others, key=int): 1.0} if others else {}
        total = sum(weights.values())
        # of a weight that is tiny beside the others nothing may be left
        return {one: share for one in sorted(weights, key=int) if (share := weights[one] / total)}

    def stable(self, served: Collection[str]) -> str | None:
        """Return the version with the largest share, of equals the lowest; None where none has a share.

        Args:
            served: the versions that are served.
        """
        shares = self.shares(served)
        return max(shares, key=lambda version: shares[version], default=None)
