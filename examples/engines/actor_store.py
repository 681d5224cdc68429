"""A key-value store in an actor of Ray or Dask. Ranks of Hocket meet in it."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any


class Values:
    """The actor. Its calls come one after the other, and none of them waits."""

    def __init__(self) -> None:
        self._values: dict[str, bytes] = {}

    def set(self, key: str, value: bytes) -> None:
        self._values[key] = value

    def get(self, keys: list[str]) -> list[bytes] | None:
        """None if one of them is missing."""
        return [self._values[key] for key in keys] if self._values.keys() >= set(keys) else None

    def add(self, key: str, amount: int) -> int:
        self._values[key] = b"%d" % (int(self._values.get(key, b"0")) + amount)
        return int(self._values[key])

    def compare_set(self, key: str, expected: bytes, desired: bytes) -> bytes | None:
        """Returns what the key holds then, or None."""
        if self._values.get(key, b"") == expected:
            self._values[key] = desired
        return self._values.get(key)

    def delete_key(self, key: str) -> bool:
        return self._values.pop(key, None) is not None


class ActorStore:
    """For hocket.Store.own(). `ask` calls a method of the actor and waits for what it returns."""

    def __init__(self, ask: Callable[..., Any]) -> None:
        self._ask = ask

    def set(self, key: str, value: bytes, timeout: float) -> None:
        self._ask("set", key, value)

    def get(self, key: str, timeout: float) -> bytes:
        return self._wait_for([key], timeout)[0]

    def wait(self, keys: list[str], timeout: float) -> None:
        self._wait_for(keys, timeout)

    def check(self, keys: list[str], timeout: float) -> bool:
        return self._ask("get", keys) is not None

    def add(self, key: str, amount: int, timeout: float) -> int:
        return self._ask("add", key, amount)

    def compare_set(self, key: str, expected: bytes, desired: bytes, timeout: float) -> bytes | None:
        return self._ask("compare_set", key, expected, desired)

    def delete_key(self, key: str, timeout: float) -> bool:
        return self._ask("delete_key", key)

    def _wait_for(self, keys: list[str], timeout: float) -> list[bytes]:
        end = time.monotonic() + timeout
        while (values := self._ask("get", keys)) is None:
            if time.monotonic() >= end:
                raise TimeoutError(f"not all of {', '.join(keys)} came in time")
            time.sleep(0.005)
        return values
