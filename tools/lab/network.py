"""The network of a lab: bridges, links between them and the hosts, and what limits these.

It is made by ip and tc in the namespace of the switch; hosts are known by processes that hold them.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import kernel
from plan import Limit, Plan, Wrong

# Classic BPF: drop (2) if a random number of 32 bits is less than the threshold, else go on (0).
DROP_AT_RANDOM = "4,32 0 0 4294963256,53 1 0 {threshold},6 0 0 2,6 0 0 0"

AVAILABLE = Path("/proc/sys/net/ipv4/tcp_available_congestion_control")


def call(command: list[str], at: int | None = None, text: str = "") -> str:
    """What a program says in the network of the process `at`, or in our own."""
    opened = kernel.open_namespaces(at, ["net"]) if at else []

    def enter() -> None:
        for each in opened:
            kernel.enter(each)

    try:
        done = subprocess.run(command, input=text, text=True, capture_output=True, check=False,
                              preexec_fn=enter)
    finally:
        for each in opened:
            os.close(each)
    if done.returncode != 0:
        raise Wrong(f"{command[0]} failed in the lab: {done.stderr.strip()}")
    return done.stdout


def run(program: str, lines: list[str], at: int | None = None) -> None:
    """Commands of ip or tc, all in one process."""
    if lines:
        call([program, "-batch", "-"], at, "\n".join(lines) + "\n")


def limited(interface: str, limit: Limit | None) -> list[str]:
    if not limit:
        return []
    return [f"qdisc add dev {interface} root tbf rate {limit.rate}bit "
            f"burst {limit.burst_bytes}b latency {limit.queue_us}us"]


def port(host: str, rail: int) -> str:
    """The switch's end of a host's link."""
    return f"{host}r{rail}"


def bridge_of(plan: Plan, number: int, rail: int) -> str:
    return f"leaf{number // plan.hosts_per_leaf}r{rail}" if plan.hosts_per_leaf else f"rail{rail}"


def bridge(name: str) -> list[str]:
    return [f"link add {name} type bridge stp_state 0 mcast_snooping 0", f"link set {name} up"]


def line_ends(port_name: str) -> tuple[str, str]:
    """Of a delay line, which lies between a host's link and the switch: the host's end comes first."""
    return f"{port_name}in", f"{port_name}out"


def start_delay_line(plan: Plan) -> None:
    """One for the whole lab, with which it ends. Only what leaves a host waits there."""
    ports = [port(host, rail) for host in plan.host_names() for rail in range(plan.rails)]
    command = [plan.delay_line, str(plan.delay_us), *(end for each in ports for end in line_ends(each))]
    line = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, text=True)
    assert line.stdout and line.stderr
    if line.stdout.readline() != "ready\n":
        raise Wrong(f"the delay line did not start: {line.stderr.read().strip()}")


def make_switch(plan: Plan) -> None:
    """A bridge for each rail, or with leaves a spine for each rail and a bridge for each leaf."""
    links: list[str] = []
    limits: list[str] = []
    for rail in range(plan.rails):
        if not plan.hosts_per_leaf:
            links += bridge(f"rail{rail}")
            continue
        links += bridge(f"spine{rail}")
        for leaf in range(plan.leaves()):
            up, down = f"up{leaf}r{rail}", f"down{leaf}r{rail}"
            links += [
                *bridge(f"leaf{leaf}r{rail}"),
                f"link add {up} type veth peer name {down}",
                f"link set {up} master leaf{leaf}r{rail} up",
                f"link set {down} master spine{rail} up",
            ]
            limits += limited(up, plan.uplink) + limited(down, plan.uplink)
    run("ip", links)
    run("tc", limits)


def connect(plan: Plan, hosts: list[int]) -> None:
    """Gives each host, known by a process in it, its links."""
    links: list[str] = []
    limits: list[str] = []
    for number, (name, pid) in enumerate(zip(plan.host_names(), hosts)):
        for rail in range(plan.rails):
            its, bridge_name = port(name, rail), bridge_of(plan, number, rail)
            near = its
            if plan.delay_us:
                near, far = line_ends(its)
                links += [
                    f"link add {its} type veth peer name {far}",
                    f"link set {far} up",
                ]
            links += [
                f"link add {near} type veth peer name eth{rail} netns {pid}",
                f"link set {near} up",
                # The alias tells `heal` where the port belongs.
                f"link set {its} alias {bridge_name}",
                f"link set {its} master {bridge_name} up",
            ]
            if plan.loss:
                links.append(f"link set {its} gso_max_segs 1")
            limits += limited(its, plan.limit)
    run("ip", links)
    run("tc", limits)
    if plan.delay_us:
        start_delay_line(plan)
    for number, pid in enumerate(hosts, 1):
        set_up_host(plan, number, pid)


def check_congestion_control(name: str) -> None:
    available = AVAILABLE.read_text("ascii").split()
    if name not in available:
        raise Wrong(f"the kernel has no congestion control {name!r}: it has {', '.join(available)}; "
                    f"`modprobe tcp_{name}` may add it")


def local_route(destination: str, source: str, interface: str, congestion: str) -> str:
    return (f"route replace table local local {destination} dev {interface} proto kernel scope host "
            f"src {source} congctl {congestion}")


def set_up_host(plan: Plan, number: int, pid: int) -> None:
    """Gives a host its addresses, routes and limits.

    The routes choose the congestion control. The setting tcp_congestion_control of a network namespace
    would not do: it takes only what the whole machine allows, and a lab changes nothing there.
    """
    links = [
        "link set lo up",
        local_route("127.0.0.0/8", "127.0.0.1", "lo", plan.congestion),
        local_route("127.0.0.1", "127.0.0.1", "lo", plan.congestion),
    ]
    limits: list[str] = []
    for rail in range(plan.rails):
        name = f"eth{rail}"
        address = f"10.77.{rail}.{number}"
        links.append(f"address add {address}/24 dev {name}")
        if plan.loss:
            # A frame of 64 KiB that the links never see in pieces would be lost as a whole.
            links.append(f"link set {name} gso_max_segs 1")
            threshold = min(round(plan.loss * 2**32), 2**32 - 1)
            bytecode = DROP_AT_RANDOM.format(threshold=threshold)
            limits += [
                f"qdisc add dev {name} clsact",
                f'filter add dev {name} ingress bpf da bytecode "{bytecode}"',
            ]
        links += [
            f"link set {name} up",
            # In place of the routes that the kernel has just made.
            f"route replace 10.77.{rail}.0/24 dev {name} proto kernel scope link src {address} "
            f"congctl {plan.congestion}",
            local_route(address, address, name, plan.congestion),
        ]
        limits += limited(name, plan.limit)
    run("ip", links, pid)
    run("tc", limits, pid)
