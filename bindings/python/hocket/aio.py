"""Operations as awaitables of asyncio."""

import asyncio
from typing import Any

from hocket import Communicator, Operation, Queue


class Loop:
    """Starts operations and wakes who awaits them. One for each event loop; close() it at the end."""

    def __init__(self) -> None:
        self._queue = Queue()
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(self._queue.fileno(), self._take)

    def start(self, communicator: Communicator, operation: Operation) -> "asyncio.Future[Any]":
        """Starts it. The future has what a receive got, or None; or the exception."""
        future: "asyncio.Future[Any]" = self._loop.create_future()
        communicator.start(operation, self._queue, future)
        return future

    def _take(self) -> None:
        while (completion := self._queue.next(0)) is not None:
            future = completion.tag
            if future.cancelled():
                continue  # the operation went on all the same
            if completion.error is not None:
                future.set_exception(completion.error)
            else:
                future.set_result(completion.received)

    def close(self) -> None:
        """All must have been awaited."""
        self._loop.remove_reader(self._queue.fileno())
