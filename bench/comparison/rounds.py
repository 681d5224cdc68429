"""Measures in rounds: in each, all take their turn, and no two rounds begin with the same one."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from machine import core_distance, load
from peers import Command, Hocket, Peer, Task, environment_of
from place import Place

Row = dict[str, Any]


@dataclass
class Round:
    """What each gave, by name and size; void if the processors moved apart or together meanwhile."""

    rows: dict[str, dict[int, Row]] = field(default_factory=dict)
    distances_us: tuple[float, float] = (0.0, 0.0)
    load_before: float = 0.0

    @property
    def is_void(self) -> bool:
        near = [distance < 0.1 for distance in self.distances_us]
        return near[0] != near[1]


@dataclass
class Match:
    """An operation among so many ranks."""

    operation: str
    place: Place
    rounds: list[Round] = field(default_factory=list)
    absent: dict[str, str] = field(default_factory=dict)  # who gave nothing, and why

    @property
    def valid(self) -> list[Round]:
        return [each for each in self.rounds if not each.is_void]


def rows_of(peer: Peer, task: Task, output: str) -> list[Row]:
    if not isinstance(peer, Hocket) or task.operation == "start":
        return [json.loads(line) for line in output.splitlines() if line.startswith("{")]
    rows: list[Row] = [row for row in json.loads(output)["rows"] if row["wrong"] == 0]
    for row in rows:
        row.setdefault("time_s", row["p50_s"])
    return rows


def run(peer: Peer, task: Task, place: Place, patience_s: float) -> tuple[list[Row], str]:
    """Its rows, and what went wrong: whoever takes too long keeps what was there by then."""
    command = peer.command(task, place)
    if task.operation == "start":
        command = Command([str(peer.build / "bench" / "job"), *command.words], command.environment)
    process = subprocess.Popen(
        command.words, env=environment_of(command), start_new_session=True, text=True,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )
    trouble = ""
    try:
        output, errors = process.communicate(timeout=patience_s)
        if process.returncode != 0:
            said = errors.strip().splitlines()
            trouble = f"failed: {said[-1] if said else f'exit status {process.returncode}'}"
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        output, _ = process.communicate()
        trouble = f"not done after {patience_s:.0f} s"
    try:
        return rows_of(peer, task, output), trouble
    except (json.JSONDecodeError, KeyError) as error:
        return [], trouble or f"gave no result: {error}"


SECONDS = 0.2  # a size, of everybody: what hocket-bench takes


HOSTS_SECONDS = 120  # more for what goes over links: a call of 64 MiB may take two seconds


def patience(task: Task, place: Place) -> float:
    """Starting, warming up and two measurements of a size; and as much again."""
    return 20 + len(task.sizes) * task.seconds * 12 + (HOSTS_SECONDS if place.hosts else 0)


def task_of(peer: Peer, operation: str, sizes: tuple[int, ...]) -> Task:
    if operation == "start":
        return Task(operation, (8,), 0.001)
    mine = tuple(size for size in sizes if size <= peer.size_max)
    return Task(operation, (0,) if operation == "barrier" else mine, SECONDS)


def play_round(match: Match, peers: list[Peer], sizes: tuple[int, ...], build: Path,
               first: int) -> Round:
    this = Round(load_before=load())
    before = core_distance(build)
    for i in range(len(peers)):
        peer = peers[(first + i) % len(peers)]
        if peer.name in match.absent:
            continue
        task = task_of(peer, match.operation, sizes)
        rows, trouble = run(peer, task, match.place, patience(task, match.place))
        this.rows[peer.name] = {row["bytes"]: row for row in rows}
        if trouble:
            match.absent[peer.name] = trouble
            print(f"compare: {peer.name}: {match.operation}: {trouble}", file=sys.stderr)
    this.distances_us = (before, core_distance(build))
    return this


def play(match: Match, peers: list[Peer], sizes: tuple[int, ...], rounds: int,
         build: Path) -> Iterator[Round]:
    """So many valid rounds, if they are to be had within twice as many."""
    able = [each for each in peers if each.can(match.operation, match.place)]
    for number in range(2 * rounds):
        if len(match.valid) == rounds:
            return
        match.rounds.append(play_round(match, able, sizes, build, number))
        yield match.rounds[-1]
