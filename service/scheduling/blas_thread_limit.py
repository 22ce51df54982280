"""How many threads BLAS uses while models run."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from threadpoolctl import ThreadpoolController


class BlasThreadLimit:
    """Limits BLAS to the least number of threads that any run in progress may use, as the limit is process-wide.

    Not thread-safe. The thread pools of BLAS are looked up once, and a limit is set only when it changes. It is always
    set in the same thread: threadpoolctl obeys the first thread that sets a limit, and ignores all others while that
    lives.
    """

    def __init__(self) -> None:
        self._pools = ThreadpoolController().select(user_api="blas").lib_controllers
        self._before = [pool.num_threads for pool in self._pools]
        self._setter = ThreadPoolExecutor(1, "blas-threads")
        self._setter.submit(int).result()  # later there might be no memory for its thread
        self._counts: dict[int, int] = {}
        self._limit: int | None = None

    def begin(self, threads: int) -> None:
        """Note that a run begins which may use `threads` threads."""
        self._counts[threads] = self._counts.get(threads, 0) + 1
        if threads != self._limit:
            self._apply()

    def end(self, threads: int) -> None:
        """Note that a run has ended which could use `threads` threads."""
        left = self._counts[threads] - 1
        if left:
            self._counts[threads] = left
        else:
            del self._counts[threads]
            self._apply()

    def close(self) -> None:
        """Restore the numbers of threads that were set before."""
        self._set(self._before)
        self._setter.shutdown()

    def _apply(self) -> None:
        if not self._counts:
            return  # the next run sets its own
        limit = min(self._counts)
        if limit != self._limit:
            self._limit = limit
            self._set([limit] * len(self._pools))

    def _set(self, limits: Sequence[int]) -> None:
        self._setter.submit(self._set_here, limits).result()

    def _set_here(self, limits: Sequence[int]) -> None:
        for pool, limit in zip(self._pools, limits, strict=True):
            pool.set_num_threads(limit)
