#!/usr/bin/env python3
"""Uses Hocket as others do: builds the two programs beside this file in one of three ways, runs them.

pkg-config and cmake are given an install that was moved away from its prefix, subproject the source
tree. Libraries of both kinds that the build makes are tried: the shared one and the archive. The
fourth way, transport, builds examples/transport with such an install, and has it judged. The fifth,
embed, builds examples/embed and tests of the headers with all warnings, by gcc and by clang. The
last, installed, looks at the install itself: how large it is, and where the links of its pages lead.
"""

from __future__ import annotations

import argparse
import fcntl
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "docs"))
from links import dangling  # noqa: E402

INSTALLED_MIB_MAX = 40  # programs, libraries and modules together; 15 when this was written
# Each with its ranks, without any where it starts them itself, and what they print, sorted.
EMBEDDED = (
    ("examples/embed/event_loop.cpp", 2,
     [f"rank {i}: 100 sums, the last of 3, and N ticks of the timer" for i in range(2)]),
    ("examples/embed/own_store.cpp", None, [f"rank {i} of 3: the highest is 2" for i in range(3)]),
    ("examples/embed/library.cpp", 2,
     [f"rank {i}: 2 ranks, whose mean is 0.5 and 0.5" for i in range(2)]),
    ("examples/embed/callbacks.c", 3,
     [f"rank {i} of 3: gradients 18, counts 72" for i in range(3)]),
    ("tests/integration/capi.c", 3, []),
    ("tests/integration/capi_stores.c", 3, []),
    ("tests/integration/methods.cpp", 3, []),
)
PROGRAMS = {"program.cpp": ("CXX", "c++20"), "program.c": ("CC", "c11")}


def run(*command: str | Path, **environment: str | Path) -> str:
    """What the command printed; when it fails, that is printed and the test ends."""
    words = [str(word) for word in command]
    env = os.environ | {name: str(value) for name, value in environment.items()}
    done = subprocess.run(words, capture_output=True, text=True, check=False, env=env)
    if done.returncode != 0:
        sys.exit(f"failed: {shlex.join(words)}\n{done.stdout}{done.stderr}")
    return done.stdout


def run_program(program: Path, version: str, **environment: str | Path) -> None:
    if (printed := run(program, **environment)) != f"hocket {version}: 11 22 33\n":
        sys.exit(f"{program} printed {printed!r}")


def installed_files(build: Path) -> list[Path]:
    """What ninja has to make before an install; after a full build it is all there."""
    targets = json.loads((build / "meson-info/intro-targets.json").read_text("utf-8"))
    files = [name for target in targets if target["installed"] for name in target["filename"]]
    return [Path(name).relative_to(build) for name in files]


class Installed:
    """A staged install, moved away from its prefix."""

    def __init__(self, options: argparse.Namespace) -> None:
        stage, self.prefix = options.work / "stage", options.work / "moved"
        for folder in (stage, self.prefix):
            shutil.rmtree(folder, ignore_errors=True)
        with (options.build / "meson-private/consumer.lock").open("w", encoding="utf-8") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)  # one at a time in the build folder
            run("ninja", "-C", options.build, *installed_files(options.build))
            run(options.meson, "install", "-C", options.build, "--no-rebuild", "--destdir", stage)
        os.rename(stage / options.prefix.relative_to("/"), self.prefix)
        self.libraries = next(self.prefix.rglob("hocket.pc")).parents[1]

    def kinds(self) -> list[str]:
        suffixes = {"shared": "so", "static": "a"}
        found = [k for k, end in suffixes.items() if (self.libraries / f"libhocket.{end}").exists()]
        return found or sys.exit(f"no libhocket in {self.libraries}")

    def drop_shared(self) -> None:
        """From here on a program that is not static doesn't start."""
        for library in self.libraries.glob("libhocket.so*"):
            library.unlink()


def pkg_config(options: argparse.Namespace) -> None:
    installed = Installed(options)
    ask = ["pkg-config", f"--define-variable=prefix={installed.prefix}", "hocket"]
    path = installed.libraries / "pkgconfig"
    for kind in installed.kinds():
        if kind == "static":
            installed.drop_shared()
            ask += ["--static"]
        cflags, libs = (run(*ask, part, PKG_CONFIG_PATH=path) for part in ("--cflags", "--libs"))
        if "-D" in cflags.replace(str(installed.prefix), ""):
            sys.exit(f"hocket.pc hands its users defines of ours: {cflags}")
        search = {"LD_LIBRARY_PATH": installed.libraries} if kind == "shared" else {}
        for source, (variable, standard) in PROGRAMS.items():
            program, compiler = options.work / f"{source}-{kind}", shlex.split(os.environ[variable])
            compiled = ("-c", HERE / source, "-o", f"{program}.o")
            run(*compiler, f"-std={standard}", *shlex.split(cflags), *compiled)
            run(*compiler, f"{program}.o", *shlex.split(libs), "-o", program)
            run_program(program, options.version, **search)
        print(f"{kind}: {libs.strip()}")


def cmake(options: argparse.Namespace) -> None:
    if not shutil.which("cmake"):
        print("cmake is not installed")
        sys.exit(77)
    installed = Installed(options)
    for kind in installed.kinds():
        build = options.work / kind
        defines = [
            f"-DCMAKE_PREFIX_PATH={installed.prefix}",
            f"-Dhocket_USE_STATIC_LIBS={kind == 'static'}",
            f"-Dhocket_wanted_version={options.version}",
        ]
        run("cmake", "-G", "Ninja", "-S", HERE / "cmake", "-B", build, *defines)
        run("cmake", "--build", build)
        if kind == "static":
            installed.drop_shared()
        for program in ("program_cpp", "program_c"):
            run_program(build / program, options.version)
        print(f"{kind}: hocket::hocket {options.version}")


def subproject(options: argparse.Namespace) -> None:
    project, build = options.work / "project", options.work / "build"
    links = {name: HERE / name for name in PROGRAMS}
    links |= {"meson.build": HERE / "subproject/meson.build", "subprojects/hocket": options.source}
    (project / "subprojects").mkdir(parents=True, exist_ok=True)
    for name, target in links.items():
        (project / name).unlink(missing_ok=True)
        (project / name).symlink_to(target)
    if not (build / "build.ninja").exists():
        choices = ("--buildtype=plain", "--force-fallback-for=hocket", "-Ddefault_library=static")
        run(options.meson, "setup", build, project, *choices)
    run("ninja", "-C", build)
    if tests := json.loads((build / "meson-info/intro-tests.json").read_text("utf-8")):
        sys.exit(f"as a subproject Hocket still has its tests: {tests[0]['name']}, …")
    for program in ("program_cpp", "program_c"):
        run_program(build / program, options.version)
    print("static: dependency('hocket')")


def transport(options: argparse.Namespace) -> None:
    """The example of a transport passes the conformance suite, and carries an all-reduce."""
    installed, build = Installed(options), options.work / "build"
    if "shared" not in installed.kinds():
        print("a transport that is loaded needs the shared library")
        sys.exit(77)
    ask = f"pkg-config --define-variable=prefix={installed.prefix}"
    path = installed.libraries / "pkgconfig"
    shutil.rmtree(build, ignore_errors=True)
    run(options.meson, "setup", build, options.source / "examples/transport", "-Dwerror=true",
        PKG_CONFIG=ask, PKG_CONFIG_PATH=path)
    run("ninja", "-C", build)
    loaded = {"HOCKET_TRANSPORT_PATH": build / "neighbor.so", "HOCKET_TRANSPORT": "neighbor",
              "LD_LIBRARY_PATH": installed.libraries}
    host = run("sh", "-c", "cat /proc/sys/kernel/random/boot_id; readlink /proc/self/ns/net")
    print(run(options.conformance, **loaded,
              TEST_UNREACHABLE_ADDRESS="/".join(host.split()) + " nobody"))
    program, flags = options.work / "all_reduce", run(*shlex.split(ask), "--cflags", "--libs",
                                                      "hocket", PKG_CONFIG_PATH=path)
    run(*shlex.split(os.environ["CXX"]), "-std=c++20", options.source / "examples/all_reduce.cpp",
        *shlex.split(flags), "-o", program)
    launcher = installed.prefix / "bin/hocket"
    if not launcher.exists():
        return
    printed = run(launcher, "run", "-n", "3", "--", program, **loaded)
    if sorted(printed.splitlines()) != [f"[{i}] rank {i} of 3: the sum is 6" for i in range(3)]:
        sys.exit(f"{program} printed {printed!r}")


def embed(options: argparse.Namespace) -> None:
    """Programs that embed an installed Hocket, and tests of its headers, by each compiler there is."""
    installed = Installed(options)
    launcher = installed.prefix / "bin/hocket"
    if "shared" not in installed.kinds() or not launcher.exists():
        print("the build has no shared library, or no launcher")
        sys.exit(77)
    ask = ["pkg-config", f"--define-variable=prefix={installed.prefix}", "--cflags", "--libs"]
    flags = shlex.split(run(*ask, "hocket", PKG_CONFIG_PATH=installed.libraries / "pkgconfig"))
    warnings = ("-Wall", "-Wextra", "-Wpedantic", "-Werror")
    for cc, cxx in (("gcc", "g++"), ("clang", "clang++")):
        if not shutil.which(cxx):
            print(f"{cxx} is not installed")
            continue
        for source, ranks, wanted in EMBEDDED:
            path, program = options.source / source, options.work / f"{Path(source).name}-{cc}"
            compiler = (cc, "-std=c11") if path.suffix == ".c" else (cxx, "-std=c++20")
            run(*compiler, *warnings, "-I", options.source / "tests", path, *flags, "-pthread",
                "-o", program)
            found = {"LD_LIBRARY_PATH": installed.libraries}
            started = (launcher, "run", "--no-tag-output", "-n", ranks, "--", program)
            printed = run(*started, **found) if ranks else run(program, **found)
            lines = sorted(re.sub(r"\d+ ticks", "N ticks", line) for line in printed.splitlines())
            if lines != wanted:
                sys.exit(f"{program} printed {printed!r}")
        print(f"{cxx}: {len(EMBEDDED)} programs")


def is_stripped_by(build: Path) -> bool:
    options = json.loads((build / "meson-info/intro-buildoptions.json").read_text("utf-8"))
    return next(each["value"] for each in options if each["name"] == "strip")


def installed(options: argparse.Namespace) -> None:
    """Pages whose links lead somewhere, programs that know their places, and no debug information."""
    prefix = Installed(options).prefix
    pages = list(prefix.rglob("*.md"))
    if wrong := dangling(pages, prefix):
        sys.exit("links of installed pages that lead nowhere:\n" + "\n".join(wrong))
    print(f"{len(pages)} pages")

    if (program := prefix / "bin/hocket").exists():
        for device in json.loads(run(program, "info", "--json"))["devices"]:
            files = re.findall(r"/\S+\.so", device["reason"])
            if len(files) != len(set(files)):
                sys.exit(f"the program names one file twice: {device['reason']}")

    if not is_stripped_by(options.build):
        print("the build folder has -Dstrip=false")
        return
    files = [path for path in prefix.rglob("*") if path.is_file() and not path.is_symlink()]
    binaries = [path for path in files if path.read_bytes()[:7] in (b"\x7fELF\x02\x01\x01", b"!<arch>")]
    for path in binaries:
        if ".debug_info" in run("readelf", "--section-headers", "--wide", path):
            sys.exit(f"{path.relative_to(prefix)} has debug information")
    size_mib = sum(path.stat().st_size for path in binaries) / 2**20
    print(f"{len(binaries)} programs and libraries of {size_mib:.1f} MiB")
    if size_mib > INSTALLED_MIB_MAX:
        sys.exit(f"that is more than {INSTALLED_MIB_MAX} MiB")


def main() -> None:
    ways = {"pkg-config": pkg_config, "cmake": cmake, "subproject": subproject,
            "transport": transport, "embed": embed, "installed": installed}
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("way", choices=ways)
    for name in ("source", "build", "work", "prefix", "conformance"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    for name in ("meson", "version", "sanitizer"):
        parser.add_argument(f"--{name}", required=True)
    options = parser.parse_args()
    if options.sanitizer != "none":
        print(f"the build has -Db_sanitize={options.sanitizer}, and its users would need it too")
        sys.exit(77)
    options.work.mkdir(parents=True, exist_ok=True)
    ways[options.way](options)


if __name__ == "__main__":
    main()
