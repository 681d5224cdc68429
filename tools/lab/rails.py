"""Rails of an open lab that fail and heal."""

from __future__ import annotations

import json

import network
from keeper import SWITCH
from place import Lab
from plan import Wrong


def ports(lab: Lab, host: str, rail: int | None) -> dict[str, str]:
    """The switch's ends of a host's rails, or of one of them, and the bridge each belongs to."""
    lab.holder(host)
    said = network.call(["ip", "-json", "link", "show"], lab.holder(SWITCH))
    bridges = {each["ifname"]: each["ifalias"] for each in json.loads(said) if "ifalias" in each}
    found = {name: to for name, to in bridges.items() if name.rsplit("r", 1)[0] == host}
    if rail is None:
        return found
    name = network.port(host, rail)
    if name not in found:
        raise Wrong(f"{host} has no rail {rail}: it has 0 to {len(found) - 1}")
    return {name: found[name]}


def cut(lab: Lab, host: str, rail: int | None) -> None:
    """Frames vanish, both ways: the host sees a link that is up, and no error."""
    lines = [f"link set {port} nomaster" for port in ports(lab, host, rail)]
    network.run("ip", lines, lab.holder(SWITCH))


def heal(lab: Lab, host: str, rail: int | None) -> None:
    lines = [f"link set {port} master {to}" for port, to in ports(lab, host, rail).items()]
    network.run("ip", lines, lab.holder(SWITCH))
