"""How long a small job takes as a whole, and how much memory its largest process."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import time
from typing import Any

from peers import Command, environment_of


def time_start(command: Command, patience_s: float) -> tuple[list[dict[str, Any]], str]:
    """From the command's start to its end: a row, or what went wrong."""
    begin = time.monotonic()
    process = subprocess.Popen(
        command.words, env=environment_of(command), start_new_session=True,
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )
    end = os.pidfd_open(process.pid)
    try:
        poll = select.poll()
        poll.register(end, select.POLLIN)
        is_over = bool(poll.poll(patience_s * 1000))
        seconds = time.monotonic() - begin
        if not is_over:
            os.killpg(process.pid, signal.SIGKILL)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    finally:
        os.close(end)
    if not is_over:
        return [], f"not done after {patience_s:.0f} s"
    if process.returncode != 0:
        return [], f"failed: exit status {process.returncode}"
    return [{"bytes": 0, "time_s": seconds, "p50_s": seconds, "p99_s": seconds,
             "peak_bytes": usage.ru_maxrss * 1024}], ""
