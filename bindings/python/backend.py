"""Builds the wheel (PEP 517) with Meson alone, so that `pip install` needs no network.

The wheel has the extension, with the library in it, the program `hocket`, and what hocket.torch is
compiled from.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import subprocess
import sysconfig
import tempfile
import zipfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
OPTIONS = ("--buildtype=release", "-Dpython=enabled", "-Ddefault_library=static", "-Dtests=disabled",
           "-Dbench=disabled", "-Dexamples=disabled", "-Ddocs=disabled")
HEADERS = ("hocket.h", "export.h")  # of the C ABI, for hocket.torch
EXTENSION = "bindings/python/hocket/_core.abi3.so"
PROGRAM = "tools/hocket"
TAG = f"cp311-abi3-{sysconfig.get_platform().replace('-', '_').replace('.', '_')}"


def get_requires_for_build_wheel(config_settings: object = None) -> list[str]:
    return []


def build_wheel(wheel_directory: str, config_settings: object = None,
                metadata_directory: str | None = None) -> str:
    with tempfile.TemporaryDirectory() as folder:
        # pip hides this Python's own packages from what it starts, and Debian's meson is one of them.
        outside = {name: text for name, text in os.environ.items() if name != "PYTHONPATH"}
        subprocess.run(["meson", "setup", folder, ROOT, *OPTIONS], env=outside, check=True)
        subprocess.run(["ninja", "-C", folder, EXTENSION, PROGRAM], env=outside, check=True)
        told = subprocess.check_output(["meson", "introspect", "--projectinfo", folder], env=outside)
        version = json.loads(told)["version"]
        for binary in (EXTENSION, PROGRAM):
            subprocess.run(["strip", "--strip-unneeded", Path(folder, binary)], check=True)
        name = f"hocket-{version}-{TAG}.whl"
        write(Path(wheel_directory, name), version, Path(folder))
    return name


def write(wheel: Path, version: str, build: Path) -> None:
    info = f"hocket-{version}.dist-info"
    files = {str(each.relative_to(HERE)): each.read_bytes()
             for each in sorted((HERE / "hocket").rglob("*"))
             if each.suffix in (".py", ".pyi", ".typed", ".cpp", ".hpp")}
    for header in HEADERS:
        files[f"hocket/include/hocket/{header}"] = (ROOT / "include/hocket" / header).read_bytes()
    files["hocket/_core.abi3.so"] = (build / EXTENSION).read_bytes()
    files[f"hocket-{version}.data/scripts/hocket"] = (build / PROGRAM).read_bytes()
    files[f"{info}/METADATA"] = (
        f"Metadata-Version: 2.1\nName: hocket\nVersion: {version}\n"
        "Summary: Collective communication between processes\nLicense: Apache-2.0\n"
        "Requires-Python: >=3.11\n").encode()
    files[f"{info}/WHEEL"] = (
        f"Wheel-Version: 1.0\nGenerator: hocket\nRoot-Is-Purelib: false\nTag: {TAG}\n").encode()
    files[f"{info}/entry_points.txt"] = (
        b"[torch.distributed.backends]\nhocket = hocket.torch:register\n")
    files[f"{info}/LICENSE"] = (ROOT / "LICENSE").read_bytes()
    record = "".join(f"{name},sha256={digest(data)},{len(data)}\n" for name, data in files.items())
    files[f"{info}/RECORD"] = (record + f"{info}/RECORD,,\n").encode()
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            entry = zipfile.ZipInfo(name)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = (0o100755 if "/scripts/" in name else 0o100644) << 16
            archive.writestr(entry, data)


def digest(data: bytes) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
