"""A process waits for its sends before it ends, because other ranks wait for their messages."""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import time
from typing import Protocol

from hocket import _ending

_NOTICE_AFTER_S = 5
_AT_MOST_S = 60
_AT_MOST_AFTER_EXCEPTION_S = 1  # the others may wait to learn of it


class Sends(Protocol):
    def count(self) -> int:
        """How many have not ended."""


_lock = threading.Lock()
_sends_by_pid: dict[int, Sends] = {}


def sends_of_process(kind: type[Sends]) -> Sends:
    """Makes them for each process, because a forked child must not wait for its parent's sends."""
    with _lock:
        sends = _sends_by_pid.get(os.getpid())
        if sends is None:
            sends = kind()
            _sends_by_pid.clear()
            _sends_by_pid[os.getpid()] = sends
            handled = _current_exceptions()
            _ending.at_end(lambda: _wait_for(sends, handled), priority=100)
        return sends


def _wait_for(sends: Sends, handled: list[object]) -> None:
    begin = time.monotonic()
    at_most_s = _AT_MOST_AFTER_EXCEPTION_S if _ends_by_exception(handled) else _AT_MOST_S
    has_printed = False
    try:
        while count := sends.count():
            time_s = time.monotonic() - begin
            if time_s > at_most_s:
                _print(f"this process ends without {_messages(count)}")
                return
            if time_s > _NOTICE_AFTER_S and not has_printed:
                _print(f"before it ends, this process waits for {_messages(count)}, at most {at_most_s} s")
                has_printed = True
            time.sleep(0.001)
    except KeyboardInterrupt:
        _print("this process does not wait any longer for its messages to be taken")


def _messages(count: int) -> str:
    return f"{count} message{'s' if count > 1 else ''} that other ranks have not taken yet"


def _print(text: str) -> None:
    with contextlib.suppress(OSError, ValueError):  # it may be closed
        print(f"hocket: {text}", file=sys.stderr, flush=True)


def _current_exceptions() -> list[object]:
    return [sys.exc_info()[1], getattr(sys, "last_value", None)]


def _ends_by_exception(handled: list[object]) -> bool:
    """`handled` are those of the beginning: a child may have been forked where its parent handles one."""
    for each in _current_exceptions():
        is_new = each is not None and not any(each is other for other in handled)
        if is_new and not (isinstance(each, SystemExit) and not each.code):
            return True
    return False
