#!/usr/bin/env python3
"""What all ranks are told when one of them dies, stops or is cut off; and that they are told nothing
when nothing has happened.

    reliability_test.py BUILD-FOLDER [--long] [--only PATTERN] [--figures] [--transport LIST] [--kills N]
    reliability_test.py BUILD-FOLDER --write docs/reliability.md

Without --long each kind of harm is done a few times, and with it as often as docs/reliability.md says.
--only leaves out scenarios whose name does not have this pattern. --figures measures what that page says
beside them, and --kills N kills one rank in each of N worlds, several at a time. What is found right is kept
in the build folder; once it has all, --write makes the page of it.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import platform
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "integration"))
from surroundings import environment, free_port  # noqa: E402
from figures import SECTIONS  # noqa: E402

PATIENCE_S = 60  # for what takes a moment on a machine that has nothing else to do
SLOW_MAX = 20  # tries in which a host was cut off too slowly
KILLS_AT_ONCE = 4  # worlds of --kills
LONG_KILLS = 10_000
TRANSPORT = "tcp"  # --transport
TOLD_MAX_S = 0.1  # after the limit of silence, or after a death
SLACK_S = 2  # of a test, beyond what is promised: the machine may be busy
TOLD = re.compile(r"^told (\d+) ([^|]*)\|(-?\d+)\|", re.MULTILINE)
# Where the cause hit an operation: its call, number and step; a message has neither number nor steps.
PLACE = re.compile(r"\b(all_reduce|all_gather|reduce_scatter|broadcast|all_to_all|reduce|barrier|gather|scatter|scan|exscan)"
                   r"\([^)]*\) #\d+, step \d+\)|recv from|send to")


@dataclass(slots=True)
class Scenario:
    """A kind of harm, and how often it is done."""

    name: str
    ranks: int
    words: list[str]
    # "kill", "stop", "stop two", "out", "in", "both", "partition", "half-open"; or what must do no harm:
    # "pause", "slow", "link"
    harm: str
    times: int = 1
    timeout_s: float = 2.0
    seconds: float = 0.0  # how long that lasts
    per_host: int = 1  # ranks, where each host has a network
    pause_s: tuple[float, float] = (0.05, 0.4)  # for which the ranks work before it

    def host(self, rank: int) -> int:
        return rank // self.per_host

    def mates(self, rank: int) -> set[int]:
        """The ranks of its host."""
        return {each for each in range(self.ranks) if self.host(each) == self.host(rank)}

    def is_harmless(self) -> bool:
        return self.harm in {"pause", "slow", "link"}

    def needs_networks(self) -> bool:
        return self.per_host > 1 or self.harm in {"out", "in", "both", "partition", "half-open", "link"}


@dataclass(slots=True)
class Findings:
    """Of one scenario."""

    worlds: int = 0
    survivors: int = 0
    named: int = 0  # survivors that name the right rank
    placed: int = 0  # and the operation, and the step if it has steps
    one_story: int = 0  # worlds in which all survivors are told the same
    delays: list[float] = field(default_factory=list)  # seconds
    wrong: list[str] = field(default_factory=list)

    def quantile(self, part: float) -> float:
        ordered = sorted(self.delays) or [0.0]
        return ordered[min(len(ordered) - 1, int(part * len(ordered)))]


class SlowCutError(Exception):
    """The machine took so long to cut a host off that delays mean nothing."""


class Networks:
    """A host for each rank, in namespaces without names that end with this process."""

    def __init__(self, hosts: int, rate: str = "") -> None:
        self.holders: list[subprocess.Popen[bytes]] = []
        try:
            self.switch = self.namespace()
            self.hosts = [self.namespace() for _ in range(hosts)]
            self.inside(self.switch, "ip", "link", "add", "bridge", "up", "type", "bridge")
            for number, host in enumerate(self.hosts):
                self.plug(number, host, rate)
            self.wait_until_up()
        except BaseException:
            self.end()
            raise

    def namespace(self) -> int:
        holder = subprocess.Popen(["unshare", "--net", "sleep", "infinity"])
        self.holders.append(holder)
        ours = Path("/proc/self/ns/net").readlink()
        while Path(f"/proc/{holder.pid}/ns/net").readlink() == ours:
            if holder.poll() is not None:
                raise OSError("no network namespaces here")
            time.sleep(0.01)
        return holder.pid

    @staticmethod
    def inside(namespace: int, *command: str) -> str:
        ran = subprocess.run(["nsenter", "-t", str(namespace), "-n", *command], capture_output=True,
                             text=True, timeout=PATIENCE_S, check=False)
        if ran.returncode != 0:
            raise OSError(f"{' '.join(command)}: {ran.stderr.strip()}")
        return ran.stdout

    @staticmethod
    def address(number: int) -> str:
        return f"10.78.0.{number + 1}"

    def plug(self, number: int, host: int, rate: str) -> None:
        self.inside(host, "ip", "link", "set", "lo", "up")
        self.inside(self.switch, "ip", "link", "add", f"port{number}", "type", "veth", "peer", "name",
                    "eth0", "netns", str(host))
        self.inside(self.switch, "ip", "link", "set", f"port{number}", "master", "bridge", "up")
        self.inside(host, "ip", "address", "add", f"{self.address(number)}/24", "dev", "eth0")
        self.inside(host, "ip", "link", "set", "eth0", "up")
        if rate:
            self.inside(host, "tc", "qdisc", "add", "dev", "eth0", "root", "tbf", "rate", rate, "burst",
                        "16kb", "latency", "400ms")

    def wait_until_up(self) -> None:
        for host in self.hosts:
            while re.search(r"eth0@.*state (?!UP)", self.inside(host, "ip", "-o", "link", "show")):
                time.sleep(0.01)

    def drop(self, sender: int, *receivers: int) -> None:
        """From now on nothing goes this way."""
        routes = "".join(f"route add blackhole {self.address(receiver)}\n" for receiver in receivers)
        subprocess.run(["nsenter", "-t", str(self.hosts[sender]), "-n", "ip", "-batch", "-"], input=routes, text=True,
                       timeout=PATIENCE_S, check=True)

    def restore(self, sender: int, *receivers: int) -> None:
        routes = "".join(f"route del blackhole {self.address(receiver)}\n" for receiver in receivers)
        subprocess.run(["nsenter", "-t", str(self.hosts[sender]), "-n", "ip", "-batch", "-"], input=routes, text=True,
                       timeout=PATIENCE_S, check=True)

    def end(self) -> None:
        for each in self.holders:
            each.kill()
            each.wait()


class World:
    """Ranks that run."""

    def __init__(self, program: str, scenario: Scenario, networks: Networks | None) -> None:
        port = free_port()
        master = networks.address(0) if networks else "127.0.0.1"
        self.ranks: list[subprocess.Popen[bytes]] = []
        for rank in range(scenario.ranks):
            where = ["nsenter", "-t", str(networks.hosts[scenario.host(rank)]), "-n"] if networks else []
            # Without a buffer: what that read ahead of the first line would be lost to `end`.
            self.ranks.append(subprocess.Popen(
                [*where, program, *scenario.words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT, bufsize=0,
                env=environment(RANK=rank, WORLD_SIZE=scenario.ranks, MASTER_ADDR=master,
                                MASTER_PORT=port, HOCKET_SECRET="hush", HOCKET_TRANSPORT=TRANSPORT,
                                HOCKET_OVERLAP=1 + 3 * (port % 2),
                                HOCKET_FAILURE_TIMEOUT=f"{int(scenario.timeout_s * 1e3)}ms")))
        self.pids: list[int] = []
        try:
            for each in self.ranks:
                line = each.stdout.readline().decode() if each.stdout else ""
                if not line.startswith("ready "):
                    raise OSError(f"a rank did not start: {line}")
                self.pids.append(int(line.split()[2]))
        except BaseException:
            self.kill()
            raise

    def end(self, rank: int, seconds: float) -> str:
        try:
            return self.ranks[rank].communicate(timeout=seconds)[0].decode()
        except subprocess.TimeoutExpired:
            return "wrong: it hangs\n"

    def kill(self) -> None:
        for each in self.ranks:
            each.kill()
            each.communicate()


@contextlib.contextmanager
def a_world(program: str, scenario: Scenario, networks: Networks | None) -> Iterator[World]:
    world = World(program, scenario, networks)
    try:
        yield world
    finally:
        for pid in world.pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)
        world.kill()


def harm(world: World, scenario: Scenario, victim: int, networks: Networks | None) -> float:
    """The time from which the delay counts."""
    if scenario.harm.startswith("kill"):
        os.kill(world.pids[victim], signal.SIGKILL)
        world.ranks[victim].wait()  # by then its connections are closed
        return time.time()
    began = time.time()
    if scenario.harm == "stop":
        for each in scenario.mates(victim):
            os.kill(world.pids[each], signal.SIGSTOP)
    elif networks is not None:
        host = scenario.host(victim)
        others = [each for each in range(len(networks.hosts)) if each != host
                  and not (scenario.harm == "partition" and (each < 2) == (host < 2))]
        if scenario.harm != "in":
            networks.drop(host, *others)
        if scenario.harm != "out":
            for other in others:
                networks.drop(other, host)
        if scenario.harm == "half-open":  # its last words are lost, and then its host answers that it is gone
            os.kill(world.pids[victim], signal.SIGKILL)
            world.ranks[victim].wait()
            reconnect(scenario, victim, networks)
        if time.time() - began > scenario.timeout_s / 4:
            raise SlowCutError
    return began


# What the survivors must say of the victim, by kind of harm.
WORDS = {"kill": "has died", "kill idle": "has died", "stop": "is lost", "stop two": "is lost", "out": "is lost",
         "in": "receives nothing|has died, or lost its network", "both": "is lost", "partition": "is lost",
         "half-open": "has died|is lost"}


def judge(findings: Findings, told: list[str], victims: set[int], words: str, began: float,
          *, agrees: bool = True) -> None:
    """What the survivors say: all the same, of one of the victims."""
    stories = Counter()
    for text in told:
        findings.survivors += 1
        findings.wrong += [line for line in text.splitlines() if line.startswith("wrong")]
        found = TOLD.search(text)
        if not found:
            findings.wrong.append(f"not told: {text[-300:]}")
            continue
        findings.delays.append(max(0.0, int(found[1]) / 1e6 - began))
        reason = next((line for line in text.splitlines() if "; found by " in line), "")
        # The number of the rank is that in the communicator, and so not the same in all of them.
        stories[re.sub(r" \(peer \d+", " (peer", reason)] += 1
        is_named = any(f" rank {victim} (pid " in reason for victim in victims) and bool(re.search(words, reason))
        is_placed = is_named and bool(PLACE.search(reason))
        findings.named += is_named
        findings.placed += is_placed
        if not is_placed:
            findings.wrong.append(f"not ranks {victims}, or not where: {text[-600:]}")
    findings.one_story += len(stories) == 1
    if agrees and len(stories) != 1:
        findings.wrong.append(f"{len(stories)} stories: {list(stories)}")


def do_harm(program: str, scenario: Scenario, dice: random.Random) -> Findings:
    findings = Findings()
    slow = 0
    while findings.worlds < scenario.times * (2 if scenario.harm == "partition" else 1):
        networks = Networks(scenario.host(scenario.ranks - 1) + 1) if scenario.needs_networks() else None
        try:
            with a_world(program, scenario, networks) as world:
                time.sleep(dice.uniform(*scenario.pause_s))
                do_harm_once(world, scenario, dice, networks, findings)
        except SlowCutError:
            slow += 1
            if slow > SLOW_MAX:
                findings.wrong.append("it takes too long to cut a host off")
                break
        finally:
            if networks:
                networks.end()
    return findings


def kill_many(program: str, times: int, dice: random.Random) -> tuple[str, list[str]]:
    """Kills a rank in each of so many worlds: all survivors are told, and no name is left in the system.
    What was found; and what is wrong."""
    before = set(os.listdir("/dev/shm"))
    scenario = Scenario("kill -9, 3 ranks", 3, ["mixed", "--count", "4096"], "kill", -(-times // KILLS_AT_ONCE), 30,
                        pause_s=(0, 0.15))
    with ThreadPoolExecutor(KILLS_AT_ONCE) as pool:
        parts = [pool.submit(do_harm, program, scenario, random.Random(dice.random())) for _ in range(KILLS_AT_ONCE)]
        found = [part.result() for part in parts]
    wrong = [each for part in found for each in part.wrong]
    worlds, survivors, named = (sum(getattr(part, what) for part in found) for what in ("worlds", "survivors", "named"))
    slowest_ms = 1e3 * max(delay for part in found for delay in part.delays)
    if left := set(os.listdir("/dev/shm")) - before:
        wrong.append(f"left in /dev/shm: {sorted(left)}")
    return (f"{worlds:,} worlds of 3 ranks, {KILLS_AT_ONCE} at a time: {named:,} of {survivors:,} survivors name the rank that "
            f"was killed; the slowest was told after {slowest_ms:.0f} ms."), wrong


def do_harm_once(world: World, scenario: Scenario, dice: random.Random, networks: Networks | None,
                 findings: Findings) -> None:
    patience = scenario.timeout_s + PATIENCE_S
    if scenario.harm == "partition":
        began = 0.0
        for victim in (0, 1):
            began = harm(world, scenario, victim, networks)
        for side, others in (({0, 1}, {2, 3, 4}), ({2, 3, 4}, {0, 1})):
            judge(findings, [world.end(rank, patience) for rank in side], others, "is lost", began)
        findings.worlds += 2
        return
    if scenario.harm == "stop two":  # the neighbours of all others
        victims = {first := dice.randrange(2), first + 2}
        began = time.time()
        for victim in victims:
            os.kill(world.pids[victim], signal.SIGSTOP)
        told = [world.end(rank, patience) for rank in range(scenario.ranks) if rank not in victims]
        findings.worlds += 1
        judge(findings, told, victims, WORDS[scenario.harm], began)
        return
    if scenario.harm == "kill idle":
        # No operation needs it. Who waits in a communicator with it is told; others are not disturbed.
        victim = dice.randrange(1, scenario.ranks, 2)
        began = harm(world, scenario, victim, networks)
        findings.worlds += 1
        told = [world.end(rank, patience) for rank in range(1, scenario.ranks, 2) if rank != victim]
        judge(findings, told, {victim}, WORDS[scenario.harm], began)
        for rank in range(0, scenario.ranks, 2):
            if world.ranks[rank].poll() is not None:
                findings.wrong.append(f"rank {rank}, which has nothing to do with it, ended: {world.end(rank, 1)[-1200:]}")
        return
    victim = dice.randrange(0, scenario.ranks, 2 if "--idle" in scenario.words else 1)
    victims = scenario.mates(victim) if networks else {victim}
    began = harm(world, scenario, victim, networks)
    findings.worlds += 1
    told = [world.end(rank, patience) for rank in range(scenario.ranks) if rank not in victims]
    judge(findings, told, victims, WORDS[scenario.harm], began)
    if scenario.harm == "stop":
        for each in victims:
            os.kill(world.pids[each], signal.SIGCONT)
        text = world.end(victim, PATIENCE_S)
        if not any(f" rank {each} (pid " in text for each in victims):
            findings.wrong.append(f"it came back, and was not told: {text[-300:]}")
    elif scenario.harm in {"out", "in", "both"} and networks:
        reconnect(scenario, victim, networks)
        for each in victims:
            text = world.end(each, patience)
            if not TOLD.search(text) or "wrong" in text:
                findings.wrong.append(f"it was cut off, connected again, and not told: {text[-300:]}")


def reconnect(scenario: Scenario, victim: int, networks: Networks) -> None:
    host = scenario.host(victim)
    others = [each for each in range(len(networks.hosts)) if each != host]
    if scenario.harm != "in":
        networks.restore(host, *others)
    if scenario.harm != "out":
        for other in others:
            networks.restore(other, host)


def let_be(program: str, scenario: Scenario, dice: random.Random) -> Findings:
    """Nobody must be told anything. Then one is killed: so the others are seen to be at work."""
    findings = Findings(worlds=1)
    networks = Networks(scenario.ranks, "4mbit") if scenario.harm == "link" else None
    try:
        with a_world(program, scenario, networks) as world:
            disturb(world, scenario, dice)
            ended = [rank for rank, each in enumerate(world.ranks) if each.poll() is not None]
            if ended:
                findings.wrong.append(f"ranks {ended} ended: {world.end(ended[0], 1)[-600:]}")
                return findings
            victim = dice.randrange(scenario.ranks)
            killed = harm(world, Scenario("", scenario.ranks, [], "kill"), victim, None)
            told = [world.end(rank, PATIENCE_S) for rank in range(scenario.ranks) if rank != victim]
            # Over a slow link that others fill, notices take longer than ranks wait to agree.
            agrees = scenario.harm != "link"
            judge(findings, told, {victim}, WORDS["kill"], killed, agrees=agrees)
    finally:
        if networks:
            networks.end()
    return findings


def disturb(world: World, scenario: Scenario, dice: random.Random) -> None:
    end = time.monotonic() + scenario.seconds
    if scenario.harm == "pause":
        for number in (signal.SIGSTOP, signal.SIGCONT):
            for pid in world.pids:
                os.kill(pid, number)
            time.sleep(1.5)
    slow = world.pids[dice.randrange(scenario.ranks)]
    while time.monotonic() < end:
        if scenario.harm != "slow":
            time.sleep(0.1)
            continue
        os.kill(slow, signal.SIGSTOP)
        time.sleep(0.095)
        os.kill(slow, signal.SIGCONT)
        time.sleep(0.005)


def scenarios(is_long: bool) -> list[Scenario]:
    many, some, few = (60, 20, 8) if is_long else (3, 2, 1)
    listed = [
        Scenario("kill -9, 4 ranks, all operations, 256 B", 4, ["mixed"], "kill", 2 * many,
                 30),
        Scenario("kill -9, 8 ranks, all operations, 256 B", 8, ["mixed"], "kill", many, 30),
        Scenario("kill -9, 4 ranks, all operations, 1 MiB", 4, ["mixed", "--count", "262144"], "kill",
                 many, 30),
        Scenario("kill -9, 8 ranks, half of them idle", 8, ["mixed", "--idle"], "kill", 2 * many,
                 30),
        Scenario("kill -9 of an idle rank of 8", 8, ["mixed", "--idle"], "kill idle", many, 30),
        Scenario("kill -9, 4 ranks with forked children", 4, ["mixed", "--fork"], "kill", many, 30),
        Scenario("kill -9, 4 ranks, messages alone", 4, ["messages"], "kill", many, 30),
        Scenario("kill -9, 4 ranks of 1 GiB" if is_long else "kill -9, 4 ranks of 64 MiB", 4,
                 ["mixed", "--ballast", "1024" if is_long else "64"], "kill", some, 30),
    ]
    if is_long:
        listed.append(Scenario("kill -9, 4 ranks of 2 GiB", 4, ["mixed", "--ballast", "2048"], "kill",
                               some, 30))
    for timeout in (0.25, 1.0, 2.0) if is_long else (0.25, 1.0):
        limit = f"{timeout:g} s"
        listed += [
            Scenario(f"SIGSTOP, limit {limit}", 4, ["mixed"], "stop", some, timeout),
            Scenario(f"SIGSTOP of two at once, limit {limit}", 4, ["mixed"], "stop two", few, timeout),
            Scenario(f"SIGSTOP of one of two hosts, limit {limit}", 4, ["mixed"], "stop", few, timeout, per_host=2),
            Scenario(f"SIGSTOP, half idle, limit {limit}", 6, ["mixed", "--idle"], "stop", few, timeout),
        ]
    for timeout in (0.25, 1.0, 2.0) if is_long else (1.0,):
        for way, words in (("out", "what it sends"), ("in", "what is sent to it"), ("both", "traffic in both directions")):
            listed.append(Scenario(f"a host cut off, {words} is dropped, limit {timeout:g} s", 4,
                                   ["mixed"], way, few, timeout))
        listed.append(Scenario(f"a rank killed while its host is cut off, which is back at once, limit {timeout:g} s", 4,
                               ["mixed"], "half-open", few, timeout))
        listed.append(Scenario(f"a host of 2 ranks cut off, what is sent to it is dropped, limit {timeout:g} s", 6,
                               ["mixed"], "in", few, timeout, per_host=2))
        listed.append(Scenario(f"3 hosts cut off from 2 others, limit {timeout:g} s", 5, ["mixed"],
                               "partition", few, timeout))
    seconds = 600 if is_long else 6
    listed += [
        Scenario("all ranks pause for 1.5 s, limit 0.5 s", 4, ["mixed"], "pause", 1, 0.5, 3),
        Scenario(f"a rank has 5 % of a core, {seconds} s, limit 2 s", 4, ["mixed"], "slow",
                 seconds=seconds),
        Scenario("a link of 4 Mbit/s, 20 s, limit 2 s" if is_long else "a link of 4 Mbit/s, limit 2 s",
                 3, ["mixed", "--count", "65536"], "link", seconds=20 if is_long else 4),
    ]
    return listed


def row(scenario: Scenario, findings: Findings) -> str:
    survivors = max(1, findings.survivors)
    what = f"{scenario.name}: no false alarm; then kill -9" if scenario.is_harmless() else scenario.name
    return (f"| {what} | {findings.worlds} | {100 * findings.named / survivors:.4g} % "
            f"| {100 * findings.placed / survivors:.4g} % | {findings.one_story} of {findings.worlds} "
            f"| {1e3 * findings.quantile(0.5):.0f} / {1e3 * findings.quantile(0.99):.0f} | {1e3 * findings.quantile(1):.0f} |")


def lateness(scenario: Scenario, findings: Findings, is_long: bool) -> list[str]:
    """Of what is promised: 99 of 100 are told in time, and all with some slack."""
    is_kill = scenario.harm.startswith("kill") or scenario.is_harmless()
    limit = (0 if is_kill else scenario.timeout_s) + TOLD_MAX_S
    wrong = []
    if findings.quantile(1) > limit + SLACK_S:
        wrong.append(f"the last was told after {findings.quantile(1):.3f} s")
    # Few are too few to judge by; and a link that data fills takes longer.
    if is_long and scenario.harm != "link" and findings.quantile(0.99) > limit:
        wrong.append(f"1 of 100 was told after {findings.quantile(0.99):.3f} s")
    return wrong


HEAD = ("| what happens | worlds | name the rank | and operation, step | one story | p50 / p99, ms | max, ms |\n"
        "|---|---|---|---|---|---|---|\n")


class Measured:
    """What --long has found right so far, with the commit in this build folder: rows of the table of deaths, and sections
    of the page. In a file, since the parts are measured one by one, in hours."""

    def __init__(self, build: Path) -> None:
        self.file = build / "reliability.json"
        self.commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True,
                                     check=False, cwd=Path(__file__).parent).stdout.strip()
        said = json.loads(self.file.read_text("utf-8")) if self.file.exists() else {}
        self.texts: dict[str, str] = said.get("texts", {}) if said.get("commit") == self.commit else {}

    def note(self, name: str, text: str) -> None:
        self.texts[name] = text
        self.file.write_text(json.dumps({"commit": self.commit, "texts": self.texts}, indent=1), "utf-8")

    def page(self) -> str:
        """KeyError of what is missing."""
        rows = "\n".join(self.texts[scenario.name] for scenario in scenarios(is_long=True))
        sections = {
            "Ranks that die, stop or are cut off": f"{DEATHS}{HEAD}{rows}",
            SHARED_HEADING: f"{SHARED}{self.texts[SHARED_HEADING]}",
            **{heading: self.texts[heading] for heading in SECTIONS},
        }
        begin = f"""# Reliability

What ranks are told when others die, stop, are cut off or call something else, and what it costs to find that out.
`tools/check --suite reliability` measures all of it, one part after another, which takes hours, and
`python3 tests/reliability/reliability_test.py build --write docs/reliability.md` then writes this page.
These figures are of {time.strftime("%Y-%m-%d")}, commit {self.commit}, on a machine with {os.cpu_count()} processors
({platform.system()} {platform.release().split("-")[0]}), with all ranks on it, over TCP unless stated. A part is written only if nothing was wrong in it.
[Decision 0025](decisions/0025-one-story.md) says how it works.
"""
        return "\n".join([begin, *(f"## {heading}\n\n{text}\n" for heading, text in sections.items())])


DEATHS = """Each world works until harm is done to one rank at a random moment. *Name the rank* counts the survivors that name it;
*one story* the worlds in which all that share a communicator with it, also those in no operation, are told the same. The time is
from the moment when the connections of a killed process are closed, or from that at which a rank is stopped or cut off,
to the error in the program. *Limit* is `HOCKET_FAILURE_TIMEOUT`. All results of successful operations were right, and no
buffer was written to after its operation had failed. A rank that is stopped goes on later, and is told that it counts as lost.

"""


SHARED_HEADING = "Deaths over shared memory"
SHARED = """The tests of each change also do all this a few times over shared memory. Here a rank was killed in each of
"""


def measure_others(build: Path, measured: Measured) -> bool:
    """Whether all is right."""
    is_right = True
    for heading, measure in SECTIONS.items():
        print(f"\n{heading}", flush=True)
        lines, wrong = measure(build)
        print(*lines, *(f"WRONG {each}" for each in wrong), sep="\n", flush=True)
        if wrong:
            is_right = False
        else:
            measured.note(heading, "\n".join(lines))
    return is_right


def kill_over_shared_memory(program: str, times: int, dice: random.Random, measured: Measured) -> bool:
    """Whether all is right."""
    text, wrong = kill_many(program, times, dice)
    print(text, *(f"WRONG {each}" for each in wrong[:5]), sep="\n", flush=True)
    if not wrong and times >= LONG_KILLS:
        measured.note(SHARED_HEADING, text)
    return not wrong


def run_scenarios(program: str, arguments: argparse.Namespace, dice: random.Random, measured: Measured) -> bool:
    """Whether all is right."""
    print(HEAD, end="", flush=True)
    has_networks = os.geteuid() == 0 and all(map(shutil.which, ("ip", "tc", "unshare", "nsenter")))
    is_right = True
    for scenario in scenarios(arguments.long):
        if not re.search(arguments.only, scenario.name):
            continue
        if not has_networks and scenario.needs_networks():
            print(f"skipped: {scenario.name}: network namespaces need root, ip and tc", flush=True)
            continue
        run: Callable[[str, Scenario, random.Random], Findings] = let_be if scenario.is_harmless() else do_harm
        findings = run(program, scenario, dice)
        print(row(scenario, findings), flush=True)
        findings.wrong += lateness(scenario, findings, arguments.long)
        for each in findings.wrong[:5]:
            print(f"WRONG {scenario.name}: {each}", flush=True)
        if findings.wrong:
            is_right = False
        elif arguments.long:
            measured.note(scenario.name, row(scenario, findings))
    return is_right


def main() -> int:
    global TRANSPORT
    parser = argparse.ArgumentParser()
    parser.add_argument("build", type=Path)
    parser.add_argument("--long", action="store_true")
    parser.add_argument("--write", type=Path)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--only", default="", help="scenarios whose name has this pattern, and nothing else")
    parser.add_argument("--figures", action="store_true", help="no scenarios, only what is measured beside them")
    parser.add_argument("--transport", default=TRANSPORT)
    parser.add_argument("--kills", type=int)
    arguments = parser.parse_args()
    TRANSPORT = arguments.transport
    dice = random.Random(arguments.seed)
    print(f"seed {arguments.seed}", flush=True)
    program = str(arguments.build / "tests/reliability/rank")
    measured = Measured(arguments.build)
    if arguments.write:
        try:
            arguments.write.write_text(measured.page(), encoding="utf-8")
        except KeyError as missing:
            print(f"not measured yet, or not right: {missing}")
            return 1
        return 0
    if arguments.kills:
        is_right = kill_over_shared_memory(program, arguments.kills, dice, measured)
    elif arguments.figures:
        is_right = measure_others(arguments.build, measured)
    else:
        is_right = run_scenarios(program, arguments, dice, measured)
    return 0 if is_right else 1


if __name__ == "__main__":
    sys.exit(main())
