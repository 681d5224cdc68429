"""What a lab shall be: hosts, rails, the limits of links, and the words for them."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

HOSTS_MAX = 254  # the last number of an address
RAILS_MAX = 16

RATE_UNITS = {"kbit": 10**3, "mbit": 10**6, "gbit": 10**9}
SIZE_UNITS = {"b": 1, "kb": 2**10, "mb": 2**20}  # as tc has them
TIME_UNITS = {"us": 1, "ms": 10**3, "s": 10**6}

BURST_US = 2_000
BURST_STEP_BYTES = 64 * 2**10
BURST_BYTES_MIN = 128 * 2**10
SLOW_RATE = 500 * 10**6
QUEUE_US, SLOW_QUEUE_US = 20_000, 40_000


class Wrong(Exception):
    """What was asked for can't be; the text says what to do."""


def amount(text: str, units: dict[str, int], what: str) -> int:
    found = re.fullmatch(r"(\d+(?:\.\d+)?)([a-z]+)", text.lower())
    if not found or found[2] not in units or float(found[1]) == 0:
        raise Wrong(f"{what} is {text!r}: it is a number and one of {', '.join(units)}")
    return round(float(found[1]) * units[found[2]])


def share(text: str) -> float:
    found = re.fullmatch(r"(\d+(?:\.\d+)?)%", text)
    if not found or float(found[1]) > 100:
        raise Wrong(f"--loss is {text!r}: it is a share such as 0.1%")
    return float(found[1]) / 100


def in_units(value: float, units: dict[str, int]) -> str:
    unit, factor = max(((n, f) for n, f in units.items() if f <= value), key=lambda each: each[1])
    return f"{value / factor:g}{unit}"


@dataclass(frozen=True)
class Limit:
    """Of a link, in each direction."""

    rate: int  # bit/s
    burst_bytes: int
    queue_us: int

    @staticmethod
    def of(rate: int, burst: str | None = None, queue: str | None = None) -> Limit:
        """Where burst and queue are not given, they are such that TCP fills the link.

        A burst must cover the time for which a busy machine forgets the link: 2 ms, and more at low
        rates, where it costs little. 1 Gbit/s gives 256 KiB and 20 ms, 200 Mbit/s 128 KiB and 40 ms.
        """
        steps = -(-rate * BURST_US // (8 * 10**6 * BURST_STEP_BYTES))
        own_burst = max(BURST_BYTES_MIN, steps * BURST_STEP_BYTES)
        own_queue = SLOW_QUEUE_US if rate < SLOW_RATE else QUEUE_US
        return Limit(
            rate,
            amount(burst, SIZE_UNITS, "--burst") if burst else own_burst,
            amount(queue, TIME_UNITS, "--queue") if queue else own_queue,
        )

    def __str__(self) -> str:
        rate = in_units(self.rate, RATE_UNITS)
        burst = in_units(self.burst_bytes, SIZE_UNITS)
        return f"{rate} (burst {burst}, queue {in_units(self.queue_us, TIME_UNITS)})"


@dataclass(frozen=True)
class Plan:
    name: str
    hosts: int
    rails: int
    limit: Limit | None
    uplink: Limit | None  # of each leaf, if there are leaves
    hosts_per_leaf: int
    congestion: str
    loss: float
    delay_us: int = 0  # from host to host
    delay_line: str = ""  # the program

    def host_names(self) -> list[str]:
        return [f"h{number}" for number in range(1, self.hosts + 1)]

    def leaves(self) -> int:
        return -(-self.hosts // self.hosts_per_leaf) if self.hosts_per_leaf else 0

    def check(self) -> Plan:
        if not re.fullmatch(r"[a-z0-9][a-z0-9-]{0,30}", self.name):
            raise Wrong(f"--name is {self.name!r}: it is made of a-z, 0-9 and -")
        if not 1 <= self.hosts <= HOSTS_MAX:
            raise Wrong(f"--hosts is {self.hosts}: from 1 to {HOSTS_MAX} can be made")
        if not 1 <= self.rails <= RAILS_MAX:
            raise Wrong(f"--rails is {self.rails}: from 1 to {RAILS_MAX} can be made")
        if self.hosts_per_leaf < 0:
            raise Wrong(f"--hosts-per-leaf is {self.hosts_per_leaf}: it is 1 or more")
        return self

    def with_uplinks(self, oversubscription: float | None) -> Plan:
        """The uplink carries all hosts of a leaf, divided by the oversubscription."""
        if oversubscription is None and not self.hosts_per_leaf:
            return self
        if not self.hosts_per_leaf:
            raise Wrong("--oversubscription is of leaves: give --hosts-per-leaf too")
        if oversubscription is not None and (oversubscription <= 0 or not self.limit):
            raise Wrong("--oversubscription is a number above 0, and needs a --rate")
        if not self.limit:
            return self
        rate = round(self.hosts_per_leaf * self.limit.rate / (oversubscription or 1))
        return replace(self, uplink=Limit.of(rate))

    def __str__(self) -> str:
        parts = [f"{self.hosts} hosts h1…h{self.hosts}" if self.hosts > 1 else "1 host h1"]
        rails = "1 rail" if self.rails == 1 else f"{self.rails} rails"
        parts.append(f"{rails} of {self.limit}" if self.limit else f"{rails} without a limit")
        if self.hosts_per_leaf:
            parts.append(f"{self.leaves()} leaves with uplinks of {self.uplink or 'any rate'}")
        if self.delay_us:
            parts.append(f"delay {in_units(self.delay_us, TIME_UNITS)}")
        if self.loss:
            parts.append(f"loss {self.loss:.3%}")
        return ", ".join([*parts, self.congestion])
