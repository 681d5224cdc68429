#!/usr/bin/env python3
"""The servers of TCPStore: Hocket's beside torch's own, in turns, with many clients.

Needs a Python that has torch and the package `hocket` (docs/guide/pytorch.md). Of torch 2 there are two
servers: with libuv, and without. Half a request: how long another client's call takes while one has sent
half a call; the calls that take longer than 3 s count as 3 s.
"""

from __future__ import annotations

import argparse
import json
import resource
import selectors
import socket
import statistics
import struct
import subprocess
import sys
import time
from collections.abc import Callable

import torch

HOST = "127.0.0.1"
CALLS = 2000
PATIENCE_S = 3.0
IS_TORCH_2 = int(torch.__version__.split(".")[0]) >= 2
GREETING = b"\x00\xce\xf7\x85\x3c" if IS_TORCH_2 else b""
SET, ADD, WAIT = (each if IS_TORCH_2 else each - 1 for each in (1, 4, 6))
SERVERS = {
    "Hocket": "import hocket; server = hocket.StoreServer(serves_torch=True); print(server.port, flush=True)",
    "torch": "import torch.distributed as dist; server = dist.TCPStore('127.0.0.1', 0, None, True, "
             "wait_for_workers=False{libuv}); print(server.port, flush=True)",
}
REST = "; import sys; sys.stdin.read()"


def servers() -> dict[str, str]:
    if not IS_TORCH_2:
        return {"Hocket": SERVERS["Hocket"], "torch": SERVERS["torch"].format(libuv="")}
    return {"Hocket": SERVERS["Hocket"],
            "torch, libuv": SERVERS["torch"].format(libuv=", use_libuv=True"),
            "torch": SERVERS["torch"].format(libuv=", use_libuv=False")}


def text(words: bytes) -> bytes:
    return struct.pack("<Q", len(words)) + words


def receive(connection: socket.socket, size: int) -> bytes:
    got = b""
    while len(got) < size:
        part = connection.recv(size - len(got))
        if not part:
            raise ConnectionError("the server has closed the connection")
        got += part
    return got


def add(connection: socket.socket) -> None:
    connection.sendall(bytes([ADD]) + text(b"/counter") + struct.pack("<q", 1))
    receive(connection, 8)


def seconds(call: Callable[[], object]) -> float:
    begin = time.perf_counter()
    call()
    return time.perf_counter() - begin


def release(clients: list[socket.socket], other: socket.socket) -> float:
    """Until all clients that wait for one key know that it is there."""
    for each in clients:
        each.sendall(bytes([WAIT]) + struct.pack("<Q", 1) + text(b"/key"))
    time.sleep(0.5)
    with selectors.DefaultSelector() as selector:
        for each in clients:
            selector.register(each, selectors.EVENT_READ)
        begin = time.perf_counter()
        other.sendall(bytes([SET]) + text(b"/key") + text(b"value"))
        while selector.get_map():
            for key, _ in selector.select(20):
                receive(key.fileobj, 1)
                selector.unregister(key.fileobj)
        return time.perf_counter() - begin


def half_a_request(client: socket.socket, other: socket.socket) -> float:
    client.sendall(bytes([SET]) + struct.pack("<Q", 100) + b"half")
    other.settimeout(PATIENCE_S)
    try:
        return seconds(lambda: add(other))
    except TimeoutError:
        return PATIENCE_S


def measure(script: str, count: int) -> dict[str, float]:
    server = subprocess.Popen([sys.executable, "-c", script + REST], stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE, text=True)
    clients: list[socket.socket] = []
    try:
        port = int(server.stdout.readline())

        def connect() -> None:
            for _ in range(count + 2):
                clients.append(socket.create_connection((HOST, port)))
                clients[-1].setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                clients[-1].settimeout(20)
                clients[-1].sendall(GREETING)
                add(clients[-1])

        result = {"connect, each": seconds(connect) / (count + 2)}
        *many, one, other = clients
        took = sorted(seconds(lambda: add(one)) for _ in range(CALLS))
        result["add, p50"], result["add, p99"] = took[CALLS // 2], took[CALLS * 99 // 100]
        result["release of all"] = release(many, one)
        result["half a request"] = half_a_request(many[0], other)
        return result
    finally:
        for each in clients:
            each.close()
        server.kill()
        server.wait()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--clients", type=int, nargs="+", default=[10, 1000, 4000])
    parser.add_argument("--rounds", type=int, default=3, help="the medians of so many are told")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    most = max(options.clients) + 100
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < most:
        sys.exit(f"stores: {most} files would be open, and {hard} are allowed (ulimit -n)")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(most, soft), hard))
    document = []
    for count in options.clients:
        found: dict[str, list[dict[str, float]]] = {name: [] for name in servers()}
        for i in range(options.rounds):
            for name, script in sorted(servers().items(), reverse=i % 2 == 1):
                print(f"\r{count} clients, round {i + 1} of {options.rounds}, {name}      ", end="",
                      file=sys.stderr)
                found[name].append(measure(script, count))
        medians = {name: {what: statistics.median(each[what] for each in rounds) for what in rounds[0]}
                   for name, rounds in found.items()}
        document.append({"clients": count, "seconds": medians})
    print(file=sys.stderr)
    if options.json:
        print(json.dumps({"torch": torch.__version__, "rounds": options.rounds, "servers": document}, indent=1))
        return
    print(f"torch {torch.__version__}, microseconds, medians of {options.rounds} rounds\n")
    columns = [f"{name}, {each['clients']}" for each in document for name in each["seconds"]]
    print(f"| | {' | '.join(columns)} |\n|---{'|---' * len(columns)}|")
    for what in document[0]["seconds"]["Hocket"]:
        print(f"| {what} | " + " | ".join(f"{1e6 * row[what]:.0f}" for each in document
                                          for row in each["seconds"].values()) + " |")


if __name__ == "__main__":
    main()
