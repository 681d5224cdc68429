"""Compiles what binds torch to Hocket, and keeps it for as long as both stay as they are."""

from __future__ import annotations

import fcntl
import hashlib
import os
import platform
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path
from typing import IO

import torch

import hocket
from hocket import _core

NAME = "_c10d"
SOURCES = Path(__file__).resolve().parent / "c10d"
CORE = Path(_core.__file__)  # has the C ABI


def extension() -> Path:
    """Where the compiled extension is, or will be."""
    folder = Path(os.environ.get("XDG_CACHE_HOME") or Path("~/.cache").expanduser()) / "hocket"
    return folder / _key(_options()) / f"{NAME}.so"


def built() -> Path:
    """The compiled extension. Of several processes on a host, one compiles it."""
    path = extension()
    try:
        path.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
        if path.parent.stat().st_uid not in (0, os.getuid()):
            raise PermissionError(f"{path.parent} belongs to another user")
        if not path.exists():
            with open(path.parent / "lock", "w") as lock:
                _lock(lock)
                if not path.exists():
                    _compile(path)
    except OSError as error:
        raise RuntimeError(f"hocket.torch can't be compiled in {path.parent}: {error}; "
                           "set XDG_CACHE_HOME to a folder of yours") from error
    return path


def _lock(file: IO[str]) -> None:
    try:
        fcntl.flock(file, fcntl.LOCK_EX)
    except OSError:
        pass  # a network's file system without locks: several may compile it, each in its own folder


def _compile(path: Path) -> None:
    if not compiler():
        raise RuntimeError("the extension of hocket.torch can't be compiled without a C++ compiler: install g++, "
                           "or set CXX")
    print(f"hocket: compiling for torch {torch.__version__}, once, into {path.parent}", file=sys.stderr)
    with tempfile.TemporaryDirectory(dir=path.parent) as folder:
        made = Path(folder) / path.name
        command = [*compiler(), *_options(), "-o", str(made)]
        ran = subprocess.run(command, capture_output=True, text=True, check=False)
        if ran.returncode != 0:
            raise RuntimeError(f"hocket can't be compiled for torch {torch.__version__}:\n{ran.stderr}")
        made.replace(path)


def compiler() -> list[str]:
    """The words that call it: CXX, else g++ or clang++. Empty if there is none. Whether the program that CXX
    names exists is not checked."""
    # Torch and what is compiled here exchange streams and exceptions of one libstdc++.
    chosen = [each for each in shlex.split(os.environ.get("CXX", "")) if each != "-static-libstdc++"]
    return chosen or [each for each in ("g++", "clang++") if shutil.which(each)][:1]


def _options() -> list[str]:
    """Of the compiler. They do not depend on it: what one has compiled is used where there is none."""
    package = Path(torch.__file__).resolve().parent
    # Of a wheel; Debian has torch's headers where compilers look, but for these.
    own = [each for each in (package / "include", package / "include/torch/csrc/api/include")
           if each.is_dir()] or [Path("/usr/include/torch/csrc/api/include")]
    abi = [f'-DPYBIND11_{each}="{value}"' for each in ("COMPILER_TYPE", "STDLIB", "BUILD_ABI")
           if (value := getattr(torch._C, f"_PYBIND11_{each}", None))]
    return [
        "-std=c++20", "-O2", "-fPIC", "-shared", "-fvisibility=hidden",
        f"-DTORCH_EXTENSION_NAME={NAME}", f"-D_GLIBCXX_USE_CXX11_ABI={int(torch._C._GLIBCXX_USE_CXX11_ABI)}",
        *abi, *(f"-isystem{each}" for each in own), f"-I{sysconfig.get_path('include')}",
        f"-I{_headers()}", str(SOURCES / "backend.cpp"),
        f"-L{CORE.parent}", f"-l:{CORE.name}", f"-Wl,-rpath,{CORE.parent}",
        f"-L{package / 'lib'}", f"-Wl,-rpath,{package / 'lib'}", "-ltorch_python", "-ltorch_cpu", "-lc10",
    ]


def _headers() -> Path:
    """Of Hocket: in the package; or in the source tree, of which this is a part."""
    for folder in Path(__file__).resolve().parents:
        if (folder / "include/hocket/hocket.h").exists():
            return folder / "include"
    raise RuntimeError("hocket.torch: the headers of Hocket are missing from the package")


def _key(options: list[str]) -> str:
    digest = hashlib.sha256()
    for part in (*options, torch.__version__, hocket.__version__, sys.implementation.cache_tag,
                 platform.machine(), *platform.libc_ver()):
        digest.update(f"{part}\0".encode())
    for source in (*sorted(SOURCES.iterdir()), _headers() / "hocket/hocket.h"):
        digest.update(source.read_bytes())
    return digest.hexdigest()[:16]
