"""Looks for changes of models, and has those that changed loaded."""

import logging
import time
from collections import Counter
from collections.abc import Mapping
from threading import Event, Thread

from service.errors import ServiceError
from service.log_context import FIELDS
from service.repository.fingerprint import Fingerprint
from service.repository.load_progress import LoadStoppedError, Step, go_on
from service.repository.model_source import ModelSource, SourceError
from service.repository.repository import ModelRepository

_logger = logging.getLogger(__name__)


class Poller:
    """Lists a source again and again; a model whose files changed is taken when two listings in a row agree on it.

    So a model is not loaded while it is being uploaded, unless its upload takes a rest for longer than `seconds`. A
    source that cannot be listed changes nothing.

    Args:
        source: what is listed. From now on, only this object may change what is taken of it.
        repository: the models of this source.
        seconds: between two listings.
        step: called before each part of a load; can stop it.

    Attributes:
        succeeded: polls that listed the models.
        failed: polls that did not.
        last_success: when a poll last listed the models, in seconds since 1970; 0 before that.
        changes: how often models were loaded, refused and removed.
    """

    def __init__(
        self, source: ModelSource, repository: ModelRepository, seconds: float, step: Step = go_on
    ) -> None:
        self.succeeded = self.failed = 0
        self.last_success = 0.0
        self.changes = Counter({"loaded": 0, "refused": 0, "removed": 0})
        self._source = source
        self._repository = repository
        self._seconds = seconds
        self._step = step
        self._listed: Mapping[str, Fingerprint] = dict(source.taken)
        self._loaded = dict(source.taken)
        self._tried = dict(source.taken)
        self._is_gone = False
        self._stopped = Event()

    def start(self) -> None:
        """Poll on a thread of its own, for the first time after `seconds`."""
        Thread(target=self._run, name="poller", daemon=True).start()

    def stop(self) -> None:
        """Poll no more; does not wait for a poll that is under way."""
        self._stopped.set()

    def poll(self) -> None:
        """List the source, and load what has changed since and is the same as in the listing before.

        Raises:
            LoadStoppedError: `step` raised it.
        """
        try:
            listed = self._source.list(self._step)
        except SourceError as error:
            self.failed += 1
            if not self._is_gone:
                self._is_gone = True
                _logger.warning("models cannot be listed", extra={FIELDS: {"reason": str(error)}})
            return
        self._repository.tidy()
        self.succeeded += 1
        self.last_success = time.time()
        if self._is_gone:
            self._is_gone = False
            _logger.info("models can be listed again")
        before, self._listed = self._listed, listed
        for name in sorted(listed.keys() | self._source.taken.keys() | self._tried.keys()):
            if listed.get(name) == before.get(name):
                self._settle(name, listed.get(name))

    def _run(self) -> None:
        while not self._stopped.wait(self._seconds):
            try:
                self.poll()
            except LoadStoppedError:
                return
            except Exception:  # the next poll may fare better, and a server without polls would stay as it is
                _logger.exception("models cannot be polled")

    def _settle(self, name: str, files: Fingerprint | None) -> None:
        """Take a model as two listings agree that it is; None where it is gone."""
        try:
            if files is None:
                self._remove(name)
            elif files != self._tried.get(name):
                self._take(name, files)
        except LoadStoppedError:
            raise
        except Exception:  # it must not hold up other models, and the next poll may fare better
            _logger.exception("model cannot be polled", extra={FIELDS: {"model": name}})

    def _remove(self, name: str) -> None:
        self._loaded.pop(name, None)
        self._tried.pop(name, None)
        self._repository.remove(name)
        self.changes["removed"] += 1

    def _take(self, name: str, files: Fingerprint) -> None:
        try:
            self._repository.refresh(name, files, self._loaded.get(name, frozenset()), self._step)
        except (SourceError, ServiceError) as error:
            if isinstance(error, ServiceError) and error.code != "model_not_found":
                self._tried[name] = files  # what was served before goes on, until the files change again
                self.changes["refused"] += 1
            else:  # it is tried again at the next poll
                _logger.warning("model not loaded", extra={FIELDS: {"model": name, "reason": str(error)}})
        else:
            self._loaded[name] = self._tried[name] = files
            self.changes["loaded"] += 1
