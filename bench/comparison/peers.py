"""Who is measured, and by which commands: each with the settings that are best for it over TCP, or
over memory that ranks of one host share."""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

from place import Place

OPERATIONS = ("all_reduce", "reduce_scatter", "all_gather", "broadcast", "barrier", "sendrecv",
              "start")


@dataclass(frozen=True)
class Task:
    operation: str
    sizes: tuple[int, ...]
    seconds: float  # a size

    @property
    def words(self) -> list[str]:
        """For the programs of the peers; all that they do to start is a small all_reduce."""
        operation = "all_reduce" if self.operation == "start" else self.operation
        return [operation, str(self.seconds), ",".join(map(str, self.sizes))]


@dataclass(frozen=True)
class Command:
    words: list[str]
    environment: dict[str, str] = field(default_factory=dict)


class Peer:
    """Absent when its program is not there: then `absence` says what to do."""

    name = ""
    how = ""
    over_memory = ""  # how, over shared memory; empty: not there
    path = ""  # of its program, in the build folder
    starter = ""  # the program that starts it, if it does not start itself
    operations: tuple[str, ...] = OPERATIONS
    absence = ""
    size_max = 1 << 40
    handles_crowds = True

    def __init__(self, build: Path) -> None:
        self.build = build
        self.program = build / self.path

    @property
    def is_here(self) -> bool:
        return self.program.exists()

    @property
    def lacks_starter(self) -> bool:
        return bool(self.starter) and shutil.which(self.starter) is None

    def can(self, operation: str, place: Place) -> bool:
        if place.is_crowded and not place.hosts and not self.handles_crowds:
            return False
        if operation == "start" and place.hosts:
            return False
        return operation in self.operations

    def command(self, task: Task, place: Place) -> Command:
        raise NotImplementedError


class Hocket(Peer):
    name = "Hocket"
    path = "bench/hocket-bench"
    how = ("with what `hocket-bench tune` found here" if "HOCKET_TUNING_FILE" in os.environ
           else "as it comes")
    over_memory = how
    absence = "build it: meson compile -C build"

    def command(self, task: Task, place: Place) -> Command:
        return Command(self.words(task, place), {} if place.shares_memory else {"HOCKET_TRANSPORT": "tcp"})

    def words(self, task: Task, place: Place) -> list[str]:
        if task.operation == "start":
            program = str(self.build / "examples" / "all_reduce")
            return [str(self.build / "tools" / "hocket"), "run", "-n", str(place.ranks), "--", program]
        words = [str(self.program), task.operation, "--json"]
        if task.operation != "barrier":
            words += ["--sizes", ",".join(map(str, task.sizes))]
        if task.operation == "broadcast":  # of which the others have no other kind
            words.append("--in-place")
        if not place.hosts:
            return [*words, "--ranks", str(place.ranks)]
        return [*launcher(self.build, place), *words]


def launcher(build: Path, place: Place) -> list[str]:
    """Of one rank on each host, which learns which one it is from the environment."""
    tuning = ["-x", "HOCKET_TUNING_FILE"] if "HOCKET_TUNING_FILE" in os.environ else []
    return [str(build / "tools" / "hocket"), "run", "--hosts", place.host_slots,
            "--rsh", place.rsh, "--no-tag-output", *tuning, "--"]


class OpenMpi(Peer):
    name = "Open MPI"
    path = "bench/collectives.openmpi"
    how = "tcp, processors not bound, yielding where ranks outnumber them"
    over_memory = "vader, processors not bound, yielding where ranks outnumber them"
    memory = "vader"  # its component for shared memory
    absence = "tools/setup --for compare, and a new build folder"
    starter = "mpirun.openmpi"
    settings: tuple[str, ...] = ()

    def command(self, task: Task, place: Place) -> Command:
        words = [self.starter, "--allow-run-as-root", "--oversubscribe", "--bind-to", "none"]
        settings = {"pml": "ob1", "btl": f"{self.memory if place.shares_memory else 'tcp'},self"}
        if place.is_crowded:
            settings["mpi_yield_when_idle"] = "1"
        if place.hosts:
            words += ["--host", place.host_slots]
            settings |= {"plm_rsh_agent": place.rsh, "btl_tcp_if_include": place.interface,
                         "oob_tcp_if_include": place.interface}
        for name, value in settings.items():
            words += ["--mca", name, value]
        words += [*self.settings, "-n", str(place.ranks), str(self.program), *task.words]
        return Command(words)


class OpenMpiRing(OpenMpi):
    name = "Open MPI (ring)"
    how = over_memory = "the same with its segmented ring"
    operations = ("all_reduce",)
    settings = ("--mca", "coll_tuned_use_dynamic_rules", "1",
                "--mca", "coll_tuned_allreduce_algorithm", "5")


class OpenMpi5(OpenMpi):
    name = "Open MPI 5"
    over_memory = "sm, processors not bound, yielding where ranks outnumber them"
    memory = "sm"
    path = "peers/openmpi/collectives"
    absence = "bench/compare --fetch"

    def __init__(self, build: Path) -> None:
        super().__init__(build)
        self.starter = str(self.program.with_name("bin") / "mpirun")

    def command(self, task: Task, place: Place) -> Command:
        prefix = str(self.program.parent)
        environment = {"OPAL_PREFIX": prefix, "PRTE_PREFIX": prefix, "PMIX_PREFIX": prefix,
                       "LD_LIBRARY_PATH": f"{prefix}/lib"}
        return Command(super().command(task, place).words, environment)

    def can(self, operation: str, place: Place) -> bool:
        return not place.hosts and super().can(operation, place)


class Mpich(Peer):
    name = "MPICH"
    path = "bench/collectives.mpich"
    starter = "mpiexec.mpich"
    how = "UCX over tcp also inside a host; it has no yield that works where ranks outnumber processors"
    over_memory = "as it comes; it has no yield that works where ranks outnumber processors"
    absence = "tools/setup --for compare, and a new build folder"
    handles_crowds = False
    size_max = 1 << 18  # it hangs above

    def command(self, task: Task, place: Place) -> Command:
        over_tcp = {"MPIR_CVAR_NOLOCAL": "1", "UCX_TLS": "tcp,self"}
        environment = {} if place.shares_memory else over_tcp
        words = [self.starter]
        if place.hosts:
            environment["UCX_NET_DEVICES"] = place.interface
            words += ["-launcher", "ssh", "-launcher-exec", place.rsh, "-iface", place.interface,
                      "-hosts", ",".join(place.hosts[: place.ranks])]
        return Command([*words, "-n", str(place.ranks), str(self.program), *task.words],
                       environment)


class Mpich5(Peer):
    name = "MPICH 5"
    path = "peers/mpich/collectives"
    how = "UCX over tcp also inside a host"
    over_memory = "as it comes"
    settings = {"UCX_TLS": "tcp,self"}
    absence = "bench/compare --fetch"
    handles_crowds = False

    def can(self, operation: str, place: Place) -> bool:
        return not place.hosts and super().can(operation, place)

    def command(self, task: Task, place: Place) -> Command:
        over_tcp = {"MPIR_CVAR_NOLOCAL": "1", **self.settings}
        environment = {**({} if place.shares_memory else over_tcp),
                       "LD_LIBRARY_PATH": str(self.program.with_name("lib"))}
        words = [str(self.program.with_name("bin") / "mpiexec"), "-n", str(place.ranks)]
        return Command([*words, str(self.program), *task.words], environment)


class Mpich5Libfabric(Mpich5):
    name = "MPICH 5 (libfabric)"
    how = "libfabric's tcp also inside a host"
    over_memory = ""  # the same as MPICH 5 there
    settings = {"MPIR_CVAR_CH4_NETMOD": "ofi", "FI_PROVIDER": "tcp"}


class IntelMpi(Mpich5):
    """Runs what was built with MPICH's headers: they have one binary interface."""

    name = "Intel MPI"
    how = "libfabric's tcp also inside a host, without its collectives over shared memory"
    over_memory = "as it comes, with the fabric shm"

    def __init__(self, build: Path) -> None:
        super().__init__(build)
        self.root = build / "peers" / "impi-rt"

    @property
    def is_here(self) -> bool:
        return super().is_here and self.root.exists()

    def command(self, task: Task, place: Place) -> Command:
        over_tcp = {"I_MPI_FABRICS": "ofi", "I_MPI_OFI_PROVIDER": "tcp", "I_MPI_COLL_INTRANODE": "pt2pt"}
        environment = {"I_MPI_ROOT": str(self.root),
                       **({"I_MPI_FABRICS": "shm"} if place.shares_memory else over_tcp),
                       "LD_LIBRARY_PATH": str(self.root / "lib")}
        words = [str(self.root / "bin" / "mpiexec.hydra"), "-n", str(place.ranks)]
        return Command([*words, str(self.program), *task.words], environment)


class OneCcl(Peer):
    name = "oneCCL"
    path = "peers/oneccl-devel/collectives"
    how = ("libfabric's tcp also inside a host, schedules kept; each rank bound, without a worker; where"
           " ranks outnumber processors not bound, a worker each, yielding; all_reduce of 64 to 256 KiB"
           " by recursive doubling, else as it chooses")
    over_memory = "libfabric's tcp for the start, its own shared memory for data; else the same"
    absence = "bench/compare --fetch"

    def can(self, operation: str, place: Place) -> bool:
        return not place.hosts and super().can(operation, place)

    def command(self, task: Task, place: Place) -> Command:
        environment = {"CCL_PROCESS_LAUNCHER": "none", "CCL_ATL_TRANSPORT": "ofi",
                       "CCL_ATL_SHM": "1" if place.shares_memory else "0", "FI_PROVIDER": "tcp", "CCL_LOG_LEVEL": "error",
                       "CCL_ALLREDUCE": "recursive_doubling:65536-262144"}
        if place.is_crowded:
            environment |= {"CCL_YIELD": "sched_yield", "CCL_SPIN_COUNT": "1", "CCL_WORKER_WAIT": "0"}
        else:
            environment["CCL_WORKER_OFFLOAD"] = "0"
        return Command([str(self.program), str(place.ranks), *task.words], environment)


def new_folder() -> str:
    """Until this program ends."""
    folder = tempfile.mkdtemp(prefix="gloo-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


class Gloo(Peer):
    name = "Gloo"
    path = "bench/collectives.gloo"
    how = "epoll over TCP; all_reduce by its ring; reduce_scatter in place, as it has no other"
    absence = "tools/setup --for compare, and a new build folder"
    algorithm = "ring"

    def command(self, task: Task, place: Place) -> Command:
        environment = {"GLOO_ALGORITHM": self.algorithm, "GLOO_INTERFACE": place.interface}
        words = [str(self.program), str(place.ranks), *task.words]
        if not place.hosts:
            return Command(words, environment)
        environment["GLOO_STORE"] = new_folder()
        exports = [word for name, value in environment.items() for word in ("-x", f"{name}={value}")]
        start = launcher(self.build, place)
        return Command([*start[:2], *exports, *start[2:], *words])


class GlooBcube(Gloo):
    name = "Gloo (bcube)"
    how = "the same with its other algorithm"
    operations = ("all_reduce",)
    algorithm = "bcube"


class C10d(Peer):
    name = "c10d"
    how = "PyTorch's, with its Gloo, called from Python; all_reduce in place, as it has no other"
    operations = ("all_reduce", "all_gather", "broadcast", "barrier", "sendrecv")
    absence = "install python3-torch"

    def __init__(self, build: Path) -> None:
        super().__init__(build)
        self.program = Path(__file__).parents[1] / "peers" / "c10d.py"

    @property
    def is_here(self) -> bool:
        return Path("/usr/lib/python3/dist-packages/torch").exists()

    def can(self, operation: str, place: Place) -> bool:
        return not place.hosts and super().can(operation, place)

    def command(self, task: Task, place: Place) -> Command:
        return Command(["/usr/bin/python3", str(self.program), str(place.ranks), *task.words],
                       {"GLOO_SOCKET_IFNAME": place.interface})


class Sockets(Peer):
    """The limit: not a peer to beat."""

    name = "bare TCP"
    path = "bench/collectives.sockets"
    how = "one connection, polled: what the machine allows"
    operations = ("sendrecv",)
    absence = "build it: meson compile -C build"

    def can(self, operation: str, place: Place) -> bool:
        return place.ranks == 2 and not place.hosts and super().can(operation, place)

    def command(self, task: Task, place: Place) -> Command:
        return Command([str(self.program), *task.words])


LIMITS = (Sockets.name,)


def everyone(build: Path) -> list[Peer]:
    return [kind(build) for kind in (Hocket, OpenMpi, OpenMpiRing, OpenMpi5, Mpich, Mpich5,
                                     Mpich5Libfabric, IntelMpi, OneCcl, Gloo, GlooBcube, C10d,
                                     Sockets)]


def environment_of(command: Command) -> dict[str, str]:
    return {**os.environ, **command.environment}
