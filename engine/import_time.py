"""When the engine was imported: what its files hold that changed later is not what this process runs."""

import time

IMPORTED_NS = time.time_ns()
"""When the first of its modules was, in nanoseconds of `time.time_ns`."""
