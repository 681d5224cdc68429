#!/usr/bin/env python3
"""Traffic for netlab_test.py, between hosts of a lab: what is asked for is the first argument."""

from __future__ import annotations

import socket
import statistics
import sys
import time

PORT = 7070
WARM_S, MEASURED_S, LINGER_S = 0.5, 1.0, 0.5  # others, with whom it shares, may be late
ANSWER_S = 0.5  # that long is waited for one
SO_RCVBUFFORCE = 33


def receive() -> None:
    """Prints the Mbit/s at which a stream arrives."""
    with socket.create_server(("", PORT)) as listener:
        listener.settimeout(10)
        stream, _ = listener.accept()
    count, buffer = 0, bytearray(1 << 20)
    begin = time.monotonic() + WARM_S
    first = last = 0.0
    while (size := stream.recv_into(buffer)) and last < begin + MEASURED_S:
        last = time.monotonic()
        if last < begin:
            first = last
        else:
            count += size
    print(f"{count * 8 / (last - first) / 1e6:.2f}", flush=True)
    while time.monotonic() < last + LINGER_S and stream.recv_into(buffer):
        pass


def send(host: str) -> None:
    """Until the other has enough."""
    end = time.monotonic() + 10
    while True:
        try:
            stream = socket.create_connection((host, PORT), 1)
            break
        except OSError:
            if time.monotonic() > end:
                raise
            time.sleep(0.05)
    with stream:
        stream.settimeout(10)
        try:
            while True:
                stream.send(bytes(1 << 16))
        except (BrokenPipeError, ConnectionResetError):
            pass


def control(*addresses: str) -> None:
    """Prints the congestion control of a connection to each address, as the dialer and the listener have it."""
    for address in addresses:
        with socket.create_connection((address, PORT), 10) as stream:
            print(congestion_control(stream), stream.recv(100).decode("ascii"))


def tell_control() -> None:
    """Tells whoever connects which congestion control the connection has here."""
    with socket.create_server(("", PORT)) as listener:
        print("ready", flush=True)
        while True:
            stream, _ = listener.accept()
            with stream:
                stream.sendall(congestion_control(stream).encode("ascii"))


def congestion_control(stream: socket.socket) -> str:
    name = stream.getsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, 16)
    return name.split(b"\0")[0].decode("ascii")


def echo(count: str = "") -> None:
    """Sends datagrams back: that many, or for as long as it lives."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as ours:
        ours.bind(("", PORT))
        print("ready", flush=True)
        left = int(count) if count else -1
        while left != 0:
            data, whence = ours.recvfrom(2000)
            ours.sendto(data, whence)
            left -= 1


def ask(address: str, count: str) -> None:
    """Prints how many of the questions are answered, and the median of the time that took, in ms."""
    times = []
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as ours:
        ours.settimeout(ANSWER_S)
        for _ in range(int(count)):
            begin = time.monotonic()
            ours.sendto(b"?", (address, PORT))
            try:
                ours.recv(10)
                times.append((time.monotonic() - begin) * 1e3)
            except TimeoutError:
                continue
    print(len(times), statistics.median(times) if times else 0)


def count_datagrams() -> None:
    """Prints how many come until the sender says that it is over, again and again."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as ours:
        ours.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 64 << 20)
        ours.bind(("", PORT))
        print("ready", flush=True)
        count = 0
        while ours.recv(10) != b"over":
            count += 1
    print(count)


def throw_datagrams(address: str, count: str) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as ours:
        for number in range(int(count)):
            ours.sendto(b"x", (address, PORT))
            if number % 100 == 0:
                time.sleep(0.002)  # the queues hold that many
        time.sleep(0.2)
        for _ in range(20):  # some are lost
            ours.sendto(b"over", (address, PORT))


if __name__ == "__main__":
    what, *arguments = sys.argv[1:]
    {"receive": receive, "send": send, "echo": echo, "ask": ask, "count": count_datagrams,
     "throw": throw_datagrams, "control": control, "tell_control": tell_control}[what](*arguments)
