#!/usr/bin/env python3
"""LightGBM learns from rows that are spread over ranks, and its collectives are Hocket's.

    hocket run -n 2 -- python3 examples/boosting/lightgbm_rows.py

--network sockets: over LightGBM's own network, with the same loss at the end.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import socket
import traceback
from collections.abc import Callable
from typing import Any

import lightgbm
import numpy as np

import hocket

ROUNDS, ROWS, COLUMNS = 60, 4000, 10

Sizes = ctypes.POINTER(ctypes.c_int32)
# Adds an array to another: from, to, bytes of an element, bytes.
Reducer = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int, ctypes.c_int32)
ReduceScatter = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int32, ctypes.c_int, Sizes, Sizes,
                                 ctypes.c_int, ctypes.c_void_p, ctypes.c_int32, ctypes.POINTER(Reducer))
AllGather = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int32, Sizes, Sizes, ctypes.c_int,
                             ctypes.c_void_p, ctypes.c_int32)


def memory(address: int, size: int) -> Any:
    return (ctypes.c_char * size).from_address(address) if size else bytearray()


def ends_on_failure(function: Callable[..., None]) -> Callable[..., None]:
    """LightGBM would go on with whatever is in the memory. The other ranks learn of this one's end."""

    def call(*arguments: Any) -> None:
        try:
            function(*arguments)
        except BaseException:
            traceback.print_exc()
            os._exit(1)

    return call


def use_hocket(world: hocket.Communicator) -> tuple[Any, Any]:
    """LightGBM's network is `world` from now on. Keep what this returns for as long."""

    @ends_on_failure
    def reduce_scatter(given: int, _size: int, element: int, _starts: Any, sizes: Any, count: int,
                       out: int, _out_size: int, reducer: Any) -> None:
        blocks = sizes[:count]
        mine = blocks[world.rank]
        parts = bytearray(mine * count)  # what each rank has of the block that is this rank's
        world.all_to_all(memory(given, sum(blocks)), parts, counts=blocks, counts_from=[mine] * count,
                         dtype="u8")
        if mine == 0:
            return
        first = ctypes.addressof(ctypes.c_char.from_buffer(parts))
        ctypes.memmove(out, first, mine)
        for rank in range(1, count):
            reducer[0](first + rank * mine, out, element, mine)

    @ends_on_failure
    def all_gather(given: int, size: int, _starts: Any, sizes: Any, count: int, out: int,
                   _out_size: int) -> None:
        blocks = sizes[:count]
        world.all_gather(memory(given, size), memory(out, sum(blocks)), counts=blocks, dtype="u8")

    functions = ReduceScatter(reduce_scatter), AllGather(all_gather)
    library = lightgbm.basic._LIB
    if library.LGBM_NetworkInitWithFunctions(world.size, world.rank, *functions) != 0:
        raise RuntimeError(ctypes.string_at(library.LGBM_GetLastError()).decode())
    return functions


def sockets(world: hocket.Communicator) -> dict[str, Any]:
    """The parameters by which LightGBM makes a network of its own."""
    ports = np.zeros(world.size, np.int64)
    with socket.create_server(("127.0.0.1", 0)) as server:
        mine = server.getsockname()[1]
        world.all_gather(np.array([mine]), ports)
    return {"machines": ",".join(f"127.0.0.1:{port}" for port in ports), "local_listen_port": mine}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--network", choices=("hocket", "sockets"), default="hocket")
    options = parser.parse_args()
    world = hocket.join()
    parameters = {"objective": "regression", "tree_learner": "data", "num_machines": world.size,
                  "pre_partition": True, "num_threads": 1, "verbosity": -1}
    if world.size > 1 and options.network == "sockets":
        parameters |= sockets(world)
    kept = use_hocket(world) if world.size > 1 and options.network == "hocket" else None

    random = np.random.default_rng(1)
    rows = random.normal(size=(ROWS, COLUMNS))
    values = rows[:, 0] * rows[:, 1] + np.sin(3 * rows[:, 2]) + 0.1 * random.normal(size=ROWS)
    rows, values = rows[world.rank::world.size], values[world.rank::world.size]

    def show_progress(state: Any) -> None:
        if world.rank == 0 and (state.iteration + 1) % 20 == 0:
            print(f"round {state.iteration + 1} of {ROUNDS}", flush=True)

    model = lightgbm.train(parameters, lightgbm.Dataset(rows, values, params=parameters), ROUNDS,
                           callbacks=[show_progress])
    loss = np.array([np.sum((model.predict(rows) - values) ** 2)])
    world.all_reduce(loss)
    if world.rank == 0:
        print(f"{world.size} ranks over {options.network}, final loss {loss[0] / ROWS:.6f}", flush=True)
    del kept


if __name__ == "__main__":
    main()
