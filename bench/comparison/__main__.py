"""Hocket beside its peers: see bench/compare."""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import plots
from fetch import fetch
from machine import CONTROL, conditions
from peers import OPERATIONS, Hocket, Peer, everyone
from place import Place, lab_of_environment
from results import as_json, cells
from rounds import Match, play
from sizes import numbers, show_size
from table import page, show_ratio

ROOT = Path(__file__).resolve().parents[2]
SIZES = (8, 512, 4096, 32 << 10, 256 << 10, 2 << 20, 16 << 20, 64 << 20)
QUICK_SIZES = (8, 4096, 256 << 10, 2 << 20, 16 << 20)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="bench/compare", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="all_reduce and messages, five minutes")
    parser.add_argument("--operations", type=lambda words: words.split(","), help="of "
                        + ", ".join(OPERATIONS))
    parser.add_argument("--ranks", type=numbers, help="such as 2,4,8")
    parser.add_argument("--sizes", type=numbers, help="such as 8,4K,2M")
    parser.add_argument("--rounds", type=int, help="in which all take their turn (5; quick: 3)")
    parser.add_argument("--peers", type=lambda words: words.split(","), help="only these, and Hocket")
    parser.add_argument("--shm", action="store_true", help="over shared memory instead of TCP")
    parser.add_argument("--congestion", default="reno", help="TCP congestion control for all, in a"
                        " network namespace of its own (reno); system: as it is, and no namespace")
    parser.add_argument("--fetch", action="store_true", help="get newer peers from PyPI first")
    parser.add_argument("--build", type=Path, default=ROOT / "build", help="the build folder")
    parser.add_argument("--out", type=Path, default=ROOT / "build",
                        help="the folder for the page; its plots and its JSON go into one below")
    parser.add_argument("--name", default="comparison", help="of the page")
    options = parser.parse_args()
    unknown = set(options.operations or ()) - set(OPERATIONS)
    if unknown:
        parser.error(f"no operation is called {', '.join(sorted(unknown))}")
    options.page = options.out / f"{options.name}.md"
    options.sizes = options.sizes or (QUICK_SIZES if options.quick else SIZES)
    options.rounds = options.rounds or (3 if options.quick else 5)
    options.ranks = options.ranks or ((2, 4) if options.quick else (2, 4, 8))
    options.operations = options.operations or (
        ["all_reduce", "sendrecv"] if options.quick else list(OPERATIONS))
    return options


def enter_namespace(control: str) -> None:
    """This program again, where the loopback device and its congestion control are our own."""
    if control == "system" or "NETLAB_HOSTS" in os.environ or "COMPARE_NAMESPACE" in os.environ:
        return
    if os.geteuid() != 0 or not shutil.which("unshare") or not shutil.which("ip"):
        print("compare: only root can set the congestion control for all: left as it is,"
              f" {CONTROL.read_text(encoding='ascii').strip()}", file=sys.stderr)
        return
    # Some peers will not use the loopback device: what they send to their own address goes there.
    script = ("ip link set lo up && ip link add eth0 type veth peer name eth1"
              " && ip addr add 10.77.0.1/24 dev eth0 && ip link set eth0 up && ip link set eth1 up"
              f" && echo {control} > {CONTROL} && exec \"$@\"")
    words = ["unshare", "--net", "sh", "-c", script, "sh", sys.executable, *sys.argv]
    os.execvpe("unshare", words, {**os.environ, "COMPARE_NAMESPACE": control})


def wanted(options: argparse.Namespace) -> list[Peer]:
    all_peers = everyone(options.build)
    asked = options.peers
    unknown = set(asked or ()) - {peer.name for peer in all_peers}
    if unknown:
        raise SystemExit(f"compare: nobody is called {', '.join(sorted(unknown))}; there are "
                         + ", ".join(peer.name for peer in all_peers))
    peers = [peer for peer in all_peers if not asked or peer.name in asked or isinstance(peer, Hocket)]
    if not options.shm:
        return peers
    for peer in peers:
        peer.how = peer.over_memory
    return [peer for peer in peers if peer.over_memory]


def usable(peers: list[Peer]) -> list[Peer]:
    able = []
    for peer in peers:
        if peer.is_here and not peer.lacks_starter:
            able.append(peer)
        else:
            why = f"{peer.starter} is not there" if peer.is_here else peer.absence
            print(f"compare: without {peer.name}: {why}", file=sys.stderr)
    if not any(isinstance(peer, Hocket) for peer in able):
        raise SystemExit("compare: Hocket itself is not built")
    return able


def matches_of(options: argparse.Namespace) -> list[Match]:
    hosts, rsh = lab_of_environment()
    matches = []
    for operation in options.operations:
        for ranks in options.ranks:
            fits = (ranks <= len(hosts) if hosts else True) and (operation != "sendrecv" or ranks == 2)
            if fits:
                matches.append(Match(operation, Place(ranks, hosts, rsh, options.shm)))
    return matches


def summary(match: Match) -> str:
    """In one line, so far."""
    shown = [f"{show_size(cell.size)} {show_ratio(cell.ratio)}" for cell in cells(match)
             if cell.ratio is not None]
    return ", ".join(shown) or "nobody to compare with"


def repeatable(words: list[str]) -> list[str]:
    """Without where this machine has its folders."""
    kept = []
    for word, before in zip(words, ["", *words]):
        if not {word, before} & {"--out", "--build"}:
            kept.append(word)
    return kept


def write(options: argparse.Namespace, matches: list[Match], all_peers: list[Peer],
          found: dict[str, object]) -> None:
    folder = options.out / options.name
    folder.mkdir(parents=True, exist_ok=True)
    names = {}
    for i, match in enumerate(matches):
        names[i] = f"{options.name}/{match.operation}-{match.place.ranks}.svg"
        (options.out / names[i]).write_text(plots.draw(match), encoding="utf-8")
    words = " ".join(["bench/compare", *repeatable(sys.argv[1:])])
    options.page.write_text(page(matches, all_peers, found, names, words), encoding="utf-8")
    document = {"conditions": found, "matches": [as_json(match) for match in matches]}
    (folder / "all.json").write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")


def main() -> int:
    options = arguments()
    if options.fetch and "COMPARE_NAMESPACE" not in os.environ:
        fetch(options.build, ROOT / "bench" / "peers")
    enter_namespace(options.congestion)
    all_peers = wanted(options)
    able = usable(all_peers)
    found = conditions(options.build)
    matches = matches_of(options)
    for match in matches:
        title = f"{match.operation}, {match.place.ranks} ranks"
        for this in play(match, able, options.sizes, options.rounds, options.build):
            state = "void, the processors moved" if this.is_void else summary(match)
            print(f"{title}, round {len(match.rounds)}: {state}", flush=True)
    write(options, matches, all_peers, found)
    print(f"\n{options.page}")
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except subprocess.CalledProcessError as error:
        sys.exit(f"compare: {error}")
