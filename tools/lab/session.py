"""A lab that lasts as long as this process, and commands that run in it."""

from __future__ import annotations

import errno
import os
import signal
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import NoReturn

import kernel
import keeper
import network
import place
from plan import Plan, Wrong

ENDING = {signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGHUP}
WATCHED = {*ENDING, signal.SIGCHLD}
IGNORED_BY_PYTHON = (signal.SIGPIPE, signal.SIGXFSZ)


@contextmanager
def opened(plan: Plan) -> Iterator[place.Lab]:
    """Whatever ends us, also SIGKILL, ends the lab and all that runs in it."""
    if plan.name in place.labs():
        raise Wrong(f"there is a lab {plan.name} already: take another --name")
    network.check_congestion_control(plan.congestion)
    signal.pthread_sigmask(signal.SIG_BLOCK, WATCHED)
    pid, alive = start(plan)
    try:
        yield place.find(plan.name)
    finally:
        os.close(alive)
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


def start(plan: Plan) -> tuple[int, int]:
    """The keeper, and what it watches: the end of a pipe that closes with us."""
    try:
        kernel.unshare(kernel.NEW_PIDS)
    except OSError as error:
        raise Wrong(f"the kernel refuses a new namespace ({error.strerror}): "
                    "a container must be a privileged one") from None
    (watch, alive), (ready, say) = os.pipe(), os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(alive)
        os.close(ready)
        keeper.keep(plan, watch, say)
    os.close(watch)
    os.close(say)
    with os.fdopen(ready, "rb") as pipe:
        said = pipe.read()
    if said != b"ready":
        os.waitpid(pid, 0)
        raise Wrong(said.decode() or "the lab's first process was killed")
    return pid, alive


def become(go: Callable[[], None], words: list[str], environment: Mapping[str, str]) -> NoReturn:
    """The command, on a host."""
    try:
        go()
        for each in IGNORED_BY_PYTHON:
            signal.signal(each, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, WATCHED)
        os.execvpe(words[0], words, environment)
    except OSError as error:
        print(f"netlab: {words[0]} can't be started: {error.strerror}", file=sys.stderr, flush=True)
        os._exit(127 if error.errno == errno.ENOENT else 126)


def run(lab: place.Lab, host: str, words: list[str], environment: Mapping[str, str]) -> int:
    """Runs a command in a host and returns its exit status."""
    go = lab.way_to(host)
    if lab.is_around_us():
        become(go, words, environment)
    signal.pthread_sigmask(signal.SIG_BLOCK, WATCHED)
    lab.adopt_children()
    pid = os.fork()
    if pid == 0:
        kernel.die_with_parent()
        become(go, words, environment)
    while True:
        seen = signal.sigwaitinfo(WATCHED)
        if seen.si_signo != signal.SIGCHLD:
            if seen.si_code <= 0:  # a process sent it to us; a terminal's are for the command too
                os.kill(pid, seen.si_signo)
            continue
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            code = os.waitstatus_to_exitcode(status)
            return code if code >= 0 else 128 - code


def wait_for_the_end(lab: place.Lab) -> None:
    """Until we are told to end."""
    any_dead = (os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    while signal.sigwaitinfo(WATCHED).si_signo == signal.SIGCHLD:
        if os.waitid(*any_dead):
            raise Wrong(f"{lab.name} has ended: its first process was killed")
