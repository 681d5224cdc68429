"""The command line of netlab."""

from __future__ import annotations

import argparse
import os
import pwd
import shutil
import signal
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import place
import rails
import session
from plan import RATE_UNITS, TIME_UNITS, Limit, Plan, Wrong, amount, share

ROOT = Path(__file__).resolve().parents[2]
DELAY_LINE = "netlab-delay-line"
TROUBLE = 125  # of our own, as that of `env`
NO_CONNECTION = 255  # as that of ssh
SSH_FLAGS_WITH_A_VALUE = "bcDEeFIiJLlmOopQRSWw"
EXAMPLES = """examples:
  tools/netlab run --hosts 3 -- sh -c 'hocket run --hosts $NETLAB_HOSTS -n 1 --rsh $NETLAB_RSH ./train'
  tools/netlab up --hosts 8 --rate 200mbit --hosts-per-leaf 4 --oversubscription 2
  tools/netlab exec h1 iperf3 -s
  tools/netlab cut h2 0; sleep 5; tools/netlab heal h2 0
docs/netlab.md tells more."""


def add_plan(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--name", default=f"lab{os.getpid()}", help="what the lab is called (lab and our pid)")
    add("--hosts", type=int, default=2, metavar="N", help="h1 to hN (2)")
    add("--rails", type=int, default=1, metavar="N", help="interfaces of each host, eth0… (1)")
    add("--rate", default="1gbit", help="of each link, both ways, as in 200mbit; or none (1gbit)")
    add("--burst", help="what may pass at once, as in 256kb (2 ms of the rate, at least 128kb)")
    add("--queue", help="the longest wait in a link's queue (20ms; 40ms under 500mbit)")
    add("--congestion", default="cubic", metavar="NAME", help="congestion control of TCP (cubic)")
    add("--loss", default="0%", help="share of the frames that each host loses, as in 0.1%%")
    add("--delay", metavar="TIME", help="from host to host, as in 5ms: a round trip takes twice that")
    add("--hosts-per-leaf", type=int, default=0, metavar="N", help="a tree: a switch for N hosts")
    add("--oversubscription", type=float, metavar="F",
        help="a leaf's uplink has its hosts' rates divided by F (1)")


def parser() -> argparse.ArgumentParser:
    top = argparse.ArgumentParser(
        prog="netlab", description="Makes an emulated cluster of network namespaces.",
        epilog=EXAMPLES, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = top.add_subparsers(dest="command", required=True)
    run = commands.add_parser("run", help="make a lab, run a command in its first host, end the lab")
    up = commands.add_parser("up", help="make a lab that lasts until this is interrupted")
    add_plan(run)
    add_plan(up)
    run.add_argument("words", nargs=argparse.REMAINDER, metavar="COMMAND")
    execute = commands.add_parser("exec", help="run a command in a host of a lab")
    cut = commands.add_parser("cut", help="let all frames of a host's rail vanish, silently")
    heal = commands.add_parser("heal", help="mend what was cut")
    for each in (execute, cut, heal):
        each.add_argument("--lab", default=os.environ.get("NETLAB"), help="which, if there are several")
        each.add_argument("host", metavar="HOST")
    execute.add_argument("words", nargs=argparse.REMAINDER, metavar="COMMAND")
    for each in (cut, heal):
        each.add_argument("rail", type=int, nargs="?", metavar="RAIL", help="all, if not given")
    return top


def read_plan(options: argparse.Namespace) -> Plan:
    limit = None
    if options.rate != "none":
        limit = Limit.of(amount(options.rate, RATE_UNITS, "--rate"), options.burst, options.queue)
    plan = Plan(options.name, options.hosts, options.rails, limit, None, options.hosts_per_leaf,
                options.congestion, share(options.loss))
    if options.delay:
        delay_us = amount(options.delay, TIME_UNITS, "--delay")
        plan = replace(plan, delay_us=delay_us, delay_line=find_delay_line())
    return plan.check().with_uplinks(options.oversubscription)


def find_delay_line() -> str:
    """The one that was built last, or one that is installed."""
    built = list(ROOT.glob(f"build*/tools/{DELAY_LINE}"))
    newest = max(built, key=lambda path: path.stat().st_mtime, default=None)
    found = os.environ.get("NETLAB_DELAY_LINE") or newest or shutil.which(DELAY_LINE)
    if not found:
        raise Wrong(f"--delay needs {DELAY_LINE}: build Hocket (tools/check or meson), or say where "
                    "it is by NETLAB_DELAY_LINE")
    return str(found)


def command_of(options: argparse.Namespace) -> list[str]:
    words = options.words[1:] if options.words[:1] == ["--"] else options.words
    if not words:
        raise Wrong("which command? It comes last, after --")
    return list(words)


def check_machine() -> None:
    if os.geteuid() != 0:
        raise Wrong("it must be run by root: it makes namespaces")
    for name in ("ip", "tc"):
        if not shutil.which(name):
            raise Wrong(f"{name} is not here: install iproute2")


def make(options: argparse.Namespace) -> int:
    plan = read_plan(options)
    words = command_of(options) if options.command == "run" else []
    with session.opened(plan) as lab:
        print(f"netlab: {lab.name}: {plan}", file=sys.stderr, flush=True)
        if words:
            return session.run(lab, lab.hosts()[0], words, {**os.environ, **lab.variables()})
        print(lab.name, flush=True)
        session.wait_for_the_end(lab)
    return 0


def use(options: argparse.Namespace) -> int:
    lab = place.find(options.lab)
    if options.command == "exec":
        environment = {**os.environ, **lab.variables()}
        return session.run(lab, options.host, command_of(options), environment)
    change = rails.cut if options.command == "cut" else rails.heal
    change(lab, options.host, options.rail)
    return 0


def main(arguments: Sequence[str] | None = None) -> int:
    options = parser().parse_args(arguments)
    try:
        check_machine()
        return make(options) if options.command in ("run", "up") else use(options)
    except (Wrong, OSError) as error:
        print(f"netlab: {error}", file=sys.stderr)
        return TROUBLE
    except KeyboardInterrupt:  # before the lab was made
        return 128 + signal.SIGINT


def split_ssh(words: list[str]) -> tuple[str, list[str]]:
    """The host, and the words after it; flags of ssh are passed over."""
    while words and words[0].startswith("-"):
        flag, *words = words
        if len(flag) == 2 and flag[1] in SSH_FLAGS_WITH_A_VALUE:
            words = words[1:]
    if len(words) < 2:
        raise Wrong("usage: rsh HOST COMMAND…")
    return words[0].rpartition("@")[2], words[1:]


def remote_shell(arguments: list[str]) -> int:
    """What `ssh HOST COMMAND` would do: the user's shell, with the environment of a login."""
    try:
        check_machine()
        host, words = split_ssh(arguments)
        lab = place.find(os.environ.get("NETLAB"))
        user = pwd.getpwuid(os.getuid())
        login = {"HOME": user.pw_dir, "USER": user.pw_name, "LOGNAME": user.pw_name,
                 "SHELL": user.pw_shell, "PATH": os.environ.get("PATH", os.defpath)}
        os.chdir(user.pw_dir)
        shell = [user.pw_shell or "/bin/sh", "-c", " ".join(words)]
        return session.run(lab, host, shell, {**login, **lab.variables()})
    except (Wrong, OSError) as error:
        print(f"netlab rsh: {error}", file=sys.stderr)
        return NO_CONNECTION
