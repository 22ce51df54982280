"""Environment variables that look like settings but are none."""

import re
from collections.abc import Iterator, Mapping

from service.config.setting_sources import ENV_PREFIX, is_service_link
from service.config.settings import Settings, suggest

_SERVICE_LINK = re.compile(r".*_(SERVICE_HOST|SERVICE_PORT(_\w+)?|PORT(_\d+_(TCP|UDP|SCTP)(_\w+)?)?)")
"""Variables that Kubernetes sets in every pod for a service whose name begins with kuiper."""

_ENGINE_NAMES = ("cache", "target")
"""What the engine reads of the environment itself: `KUIPER_CACHE` and `KUIPER_TARGET`."""


def doubtful_variables(environment: Mapping[str, str]) -> Iterator[str]:
    """Yield a warning for each variable that begins with `KUIPER_` but is no setting.

    None of them is an error: a container platform may set variables of its own.
    """
    for variable in sorted(environment):
        name = variable.upper().removeprefix(ENV_PREFIX).lower()
        if not variable.upper().startswith(ENV_PREFIX):
            continue
        if is_service_link(name, environment[variable]):
            yield f"{variable} is ignored: its value is that of a Kubernetes service link, not a port"
        elif name not in {*Settings.model_fields, *_ENGINE_NAMES} and not _SERVICE_LINK.fullmatch(
            variable.upper()
        ):
            yield f"{variable} is ignored: there is no setting {name}{suggest(name)}"
