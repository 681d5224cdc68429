"""Lets torch use a store of Hocket, and handles hocket:// URLs."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta
from urllib.parse import parse_qsl, urlsplit

import torch.distributed as dist

import hocket


class StoreTimeout(hocket.Timeout, getattr(dist, "DistStoreError", RuntimeError)):
    """A key did not come in time. It is torch's own error for that, too."""


def _waits(call: Callable) -> Callable:
    @functools.wraps(call)
    def told(*arguments: object, **words: object) -> object:
        try:
            return call(*arguments, **words)
        except hocket.Timeout as error:
            timeout = StoreTimeout(str(error))
            timeout.__dict__.update(error.__dict__)
            raise timeout from None

    return told


class Store(dist.Store):
    """A store of torch over a store of Hocket, for groups of any backend:

        store = hocket.torch.Store(hocket.Store.open("tcp://10.0.0.7:29500"))
        dist.init_process_group("gloo", store=store, rank=rank, world_size=size)

    Any thread may call it; a call that waits does not block other threads. The object is never freed.
    """

    def __init__(self, store: hocket.Store) -> None:
        super().__init__()
        self._store = store
        # torch's C++ calls these functions as long as a group lives, but does not keep the object.
        _made.append(self)

    def set(self, key: str, value: str | bytes) -> None:
        self._store.set(key, value, self._seconds())

    @_waits
    def get(self, key: str) -> bytes:
        return self._store.get(key, self._seconds())

    def compare_set(self, key: str, expected: str | bytes | list[int],
                    desired: str | bytes | list[int]) -> bytes:
        before = _as_bytes(expected)
        found = self._store.compare_set(key, before, _as_bytes(desired), self._seconds())
        # For a key that is missing, stores of torch return what was expected.
        return found if found is not None else before

    def add(self, key: str, amount: int) -> int:
        return self._store.add(key, amount, self._seconds())

    def append(self, key: str, value: str | bytes) -> None:
        self._store.append(key, value, self._seconds())

    def check(self, keys: Sequence[str]) -> bool:
        return self._store.check(keys, self._seconds())

    @_waits
    def wait(self, keys: Sequence[str], timeout: timedelta | None = None) -> None:
        self._store.wait(keys, self._seconds(timeout))

    def delete_key(self, key: str) -> bool:
        return self._store.delete_key(key, self._seconds())

    def num_keys(self) -> int:
        return self._store.num_keys(self._seconds())

    def list_keys(self) -> list[str]:
        return self._store.keys("", self._seconds())

    @_waits
    def multi_get(self, keys: Sequence[str]) -> list[bytes]:
        return self._store.multi_get(keys, self._seconds())

    def multi_set(self, keys: Sequence[str], values: Sequence[str | bytes]) -> None:
        self._store.multi_set(dict(zip(keys, values, strict=True)), self._seconds())

    def queue_push(self, key: str, value: str | bytes) -> None:
        self._store.queue_push(key, value, self._seconds())

    @_waits
    def queue_pop(self, key: str, block: bool = True) -> bytes:
        try:
            return self._store.queue_pop(key, self._seconds() if block else 0)
        except hocket.Timeout as error:
            if block:
                raise
            raise getattr(dist, "QueueEmptyError", RuntimeError)(str(error)) from error

    def queue_len(self, key: str) -> int:
        return self._store.queue_length(key, self._seconds())

    @_waits
    def barrier(self, key: str, world_size: int, timeout: timedelta | None = None) -> None:
        self._store.barrier(key, world_size, self._seconds(timeout))

    def has_extended_api(self) -> bool:
        return True

    def clone(self) -> Store:
        return self

    # The names by which torch's C++ calls them.
    deleteKey = delete_key  # noqa: N815
    getNumKeys = num_keys  # noqa: N815

    def _seconds(self, timeout: timedelta | None = None) -> float:
        return (self.timeout if timeout is None else timeout).total_seconds()


_made: list[Store] = []


def _as_bytes(value: str | bytes | list[int]) -> bytes:
    # The C++ of torch 1.13 gives lists.
    return value.encode() if isinstance(value, str) else bytes(value)


def rendezvous(url: str, timeout: timedelta = timedelta(minutes=5), **_: object
               ) -> Iterator[tuple[Store, int, int]]:
    """Handles hocket://HOST:PORT (rank 0 serves the store there), hocket:///PATH (a file) and
    hocket:// (the launcher says where). A rank and size that are not given come from the launcher."""
    # torch adds rank=-1 and world_size=-1 if they are not given.
    parts = urlsplit(url)
    words = "&".join(f"{word}={value}" for word, value in parse_qsl(parts.query) if value != "-1")
    if not parts.netloc and not parts.path and words:
        raise ValueError(f"{url}: this rank is known, but not where the ranks meet: write "
                         "hocket://HOST:PORT or hocket:///PATH")
    place = None
    if parts.netloc or parts.path:
        scheme = "tcp" if parts.netloc else "file"
        place = f"{scheme}://{parts.netloc}{parts.path}" + (f"?{words}" if words else "")
    store, rank, size = hocket.meet(place, timeout=timeout.total_seconds())
    made = Store(store)
    made.set_timeout(timeout)
    yield made, rank, size
    raise RuntimeError("hocket:// can't rendezvous again")
