"""What all tests share."""

import os

from hypothesis import HealthCheck, settings

# A slow machine is no failure; and what a run in CI finds must be found again by the next.
settings.register_profile(
    "kuiper",
    deadline=None,
    derandomize="CI" in os.environ,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("kuiper")
