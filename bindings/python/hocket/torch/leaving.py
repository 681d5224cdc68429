"""A process waits for its sends before it ends, because the ranks that receive them count on them."""

from __future__ import annotations

import os
import sys
import time
from multiprocessing.util import Finalize
from typing import Protocol

_PATIENCE_S = 1.0  # of a process that an exception ends: others may wait to learn of that
_SILENCE_S = 5.0


class Sends(Protocol):
    def count(self) -> int:
        """How many have not ended."""


_of: dict[int, Sends] = {}


def sends_of_process(kind: type[Sends]) -> Sends:
    """A child made by fork() has its own."""
    if os.getpid() not in _of:
        _of.clear()
        _of[os.getpid()] = sends = kind()
        # Not by atexit, which the children that multiprocessing forks do not get to.
        Finalize(None, _wait_for, (sends,), exitpriority=100)
    return _of[os.getpid()]


def _wait_for(sends: Sends) -> None:
    begin = time.monotonic()
    is_told = False
    while count := sends.count():
        time_s = time.monotonic() - begin
        if time_s > _PATIENCE_S and _is_failing():
            return
        if time_s > _SILENCE_S and not is_told:
            print(f"hocket: this process ends once its messages have been received, of which {count} have not; "
                  "their timeouts end this as well", file=sys.stderr, flush=True)
            is_told = True
        time.sleep(0.001)


def _is_failing() -> bool:
    exception = sys.exc_info()[1] or getattr(sys, "last_value", None)
    return exception is not None and not (isinstance(exception, SystemExit) and not exception.code)
