"""How many threads the arithmetic of the runs in progress uses."""

from collections import Counter

from threadpoolctl import ThreadpoolController


class BlasThreads:
    """Keeps BLAS to the least count that any run in progress may use: its limit is one for the whole process.

    Not safe for threads by itself. The pools are looked up once; a limit is set only when it changes.
    """

    def __init__(self) -> None:
        self._pools = ThreadpoolController().select(user_api="blas").lib_controllers
        self._before = [pool.num_threads for pool in self._pools]
        self._counts: Counter[int] = Counter()
        self._limit: int | None = None

    def begin(self, threads: int) -> None:
        """Note that a run begins which may use so many threads."""
        self._counts[threads] += 1
        self._apply()

    def end(self, threads: int) -> None:
        """Note that such a run has ended."""
        self._counts[threads] -= 1
        if not self._counts[threads]:
            del self._counts[threads]
        self._apply()

    def restore(self) -> None:
        """Set what was set before."""
        for pool, threads in zip(self._pools, self._before, strict=True):
            pool.set_num_threads(threads)

    def _apply(self) -> None:
        if not self._counts:
            return  # the next run sets its own
        limit = min(self._counts)
        if limit != self._limit:
            self._limit = limit
            for pool in self._pools:
                pool.set_num_threads(limit)
