#!/usr/bin/env python3
"""`hocket run` on one host: what ranks are given, where their output goes, and how a job ends."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import re
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

import launcher
from launcher import PATIENCE, SOON, Case, Job, wait_until

# Whoever started the tests may ignore it, as nohup does, and then so would all that they start.
signal.signal(signal.SIGHUP, signal.SIG_DFL)

STUBBORN = ["sh", "-c", "trap '' TERM INT HUP; echo ready; while :; do sleep 1; done"]


class Environment(Case):
    def variables(self, *arguments: str, **variables: str) -> list[dict[str, str]]:
        program = "import json, os; print(json.dumps(dict(os.environ)))"
        status, stdout, stderr = self.ran("--no-tag-output", *arguments, "--", sys.executable, "-c",
                                          program, **variables)
        self.assertEqual((status, stderr), (0, b""))
        ranks = [json.loads(line) for line in stdout.splitlines()]
        return sorted(ranks, key=lambda rank: int(rank["RANK"]))

    def test_every_rank_knows_its_place(self) -> None:
        ranks = self.variables("-n", "3")
        self.assertEqual([each["RANK"] for each in ranks], ["0", "1", "2"])
        for rank, each in enumerate(ranks):
            self.assertEqual(each["LOCAL_RANK"], str(rank))
            self.assertEqual(each["ROLE_RANK"], str(rank))
            for name in ("WORLD_SIZE", "LOCAL_WORLD_SIZE", "ROLE_WORLD_SIZE"):
                self.assertEqual(each[name], "3")
            self.assertEqual((each["GROUP_RANK"], each["GROUP_WORLD_SIZE"]), ("0", "1"))
            self.assertEqual(each["MASTER_ADDR"], "127.0.0.1")
            self.assertGreater(int(each["MASTER_PORT"]), 0)
            self.assertEqual((each["TORCHELASTIC_RESTART_COUNT"],
                              each["TORCHELASTIC_MAX_RESTARTS"]), ("0", "0"))
            self.assertEqual((each["ROLE_NAME"], each["HOCKET_ATTEMPT"]), ("default", "0"))

    def test_ranks_share_the_job_and_its_secret(self) -> None:
        ranks, others = self.variables("-n", "2"), self.variables()
        for name in ("HOCKET_JOB", "HOCKET_SECRET", "HOCKET_STORE", "MASTER_PORT",
                     "TORCHELASTIC_RUN_ID"):
            self.assertEqual(ranks[0][name], ranks[1][name], name)
        self.assertRegex(ranks[0]["HOCKET_SECRET"], "^[0-9a-f]{64}$")
        self.assertEqual(ranks[0]["HOCKET_JOB"], ranks[0]["TORCHELASTIC_RUN_ID"])
        for name in ("HOCKET_JOB", "HOCKET_SECRET"):
            self.assertNotEqual(ranks[0][name], others[0][name], name)

    def test_the_job_and_the_secret_can_be_given(self) -> None:
        (rank,) = self.variables("--job", "mine", HOCKET_SECRET="of all")
        self.assertEqual((rank["HOCKET_JOB"], rank["HOCKET_SECRET"]), ("mine", "of all"))

    def test_the_secret_may_be_in_a_file(self) -> None:
        with tempfile.NamedTemporaryFile() as file:
            file.write(b"in a file\n")
            file.flush()
            (rank,) = self.variables(HOCKET_SECRET_FILE=file.name, HOCKET_JOB="ours")
        self.assertEqual((rank["HOCKET_JOB"], rank["HOCKET_SECRET"]), ("ours", "in a file"))

    def test_the_rest_is_inherited(self) -> None:
        (rank,) = self.variables(RANK="99", SOMETHING="else")
        self.assertEqual((rank["RANK"], rank["SOMETHING"]), ("0", "else"))

    def test_signals_are_as_they_were(self) -> None:
        status = r"grep -E '^Sig(Blk|Ign)' /proc/self/status"
        _, stdout, _ = self.ran("--no-tag-output", "sh", "-c", status)
        plain = subprocess.run(["sh", "-c", status], capture_output=True, timeout=PATIENCE,
                               check=True)
        self.assertEqual(stdout, plain.stdout)

    def test_a_program_is_found_without_a_search_path(self) -> None:
        ran = subprocess.run(["env", "-u", "PATH", launcher.HOCKET, "run", "echo", "found"],
                             capture_output=True, timeout=PATIENCE, check=False)
        self.assertEqual((ran.returncode, ran.stdout), (0, b"[0] found\n"))

    def test_a_variable_that_is_not_set_stays_so(self) -> None:
        (rank,) = self.variables("-x", "NOT_SET_HERE", "-x", "EMPTY=")
        self.assertNotIn("NOT_SET_HERE", rank)
        self.assertEqual(rank["EMPTY"], "")

    def test_no_descriptor_is_left_open(self) -> None:
        _, stdout, _ = self.ran("--no-tag-output", "ls", "/proc/self/fd")
        self.assertEqual(stdout.split(), [b"0", b"1", b"2", b"3"])  # the last is the folder itself

    def test_open_files_are_limited_as_they_were_and_do_not_limit_the_ranks(self) -> None:
        script = f"ulimit -Sn 64; exec {launcher.HOCKET} run -n 64 sh -c 'ulimit -Sn'"
        ran = subprocess.run(["sh", "-c", script], stdin=subprocess.DEVNULL, timeout=PATIENCE,
                             stdout=subprocess.PIPE, check=True)
        self.assertEqual(sorted(ran.stdout.splitlines()),
                         sorted(f"[{rank}] 64".encode() for rank in range(64)))

    def test_sixty_four_ranks(self) -> None:
        status, stdout, _ = self.ran("-n", "64", "sh", "-c", "echo $RANK of $WORLD_SIZE")
        lines = {f"[{rank}] {rank} of 64".encode() for rank in range(64)}
        self.assertEqual((status, set(stdout.splitlines())), (0, lines))


class Output(Case):
    def test_lines_bear_the_rank_and_keep_their_stream(self) -> None:
        status, stdout, stderr = self.ran("-n", "2", "--", "sh", "-c", "echo a; echo b >&2")
        self.assertEqual(status, 0)
        self.assertEqual(sorted(stdout.splitlines()), [b"[0] a", b"[1] a"])
        self.assertEqual(sorted(stderr.splitlines()), [b"[0] b", b"[1] b"])

    def test_a_last_line_is_completed(self) -> None:
        self.assertEqual(self.ran("printf", r"a\nb")[1], b"[0] a\n[0] b\n")

    def test_without_tags_bytes_are_as_they_were(self) -> None:
        content = bytes(range(256)) * 1000
        with tempfile.NamedTemporaryFile() as file:
            file.write(content)
            file.flush()
            self.assertEqual(self.ran("--no-tag-output", "cat", file.name), (0, content, b""))

    def test_lines_of_many_ranks_are_never_mixed(self) -> None:
        program = "i=0; while [ $i -lt 500 ]; do printf '%s' $RANK; printf '%1000s' x; echo; i=$((i+1)); done"
        _, stdout, _ = self.ran("-n", "4", "sh", "-c", program)
        lines = stdout.splitlines()
        self.assertEqual(len(lines), 2000)
        for line in lines:
            self.assertRegex(line, rb"^\[(\d)\] \1 {999}x$")

    def test_lines_of_both_streams_in_one_pipe_are_never_mixed(self) -> None:
        program = "import os; [os.write(1 + i % 2, b'%03d' % i * 300 + b'\\n') for i in range(999)]"
        job = self.job("-n", "2", sys.executable, "-c", program, stderr=subprocess.STDOUT)
        time.sleep(1)  # the pipe is full then
        lines = job.finish()[1].splitlines()
        self.assertEqual(len(lines), 2 * 999)
        for line in lines:
            self.assertRegex(line, rb"^\[\d\] (\d{3})\1{299}$")

    def test_a_very_long_line_comes_in_pieces(self) -> None:
        _, stdout, _ = self.ran("head", "-c", "1000000", "/dev/zero")
        pieces = stdout.splitlines()
        self.assertGreater(len(pieces), 10)
        self.assertEqual(b"".join(piece.removeprefix(b"[0] ") for piece in pieces), bytes(1000000))

    def test_nothing_is_lost_to_a_slow_reader(self) -> None:
        job = self.job("-n", "2", "--no-tag-output", "head", "-c", "20000000", "/dev/zero")
        assert job.process.stdout
        time.sleep(1)
        worker = Path(f"/proc/{job.worker()}/status").read_text("ascii")
        resident = re.search(r"VmHWM:\s+(\d+) kB", worker)
        assert resident
        got = 0
        while chunk := job.process.stdout.read(1 << 20):
            got += len(chunk)
        self.assertEqual(got, 40000000)
        if "libasan" not in Path("/proc/self/maps").read_text("utf-8"):
            self.assertLess(int(resident[1]), 200_000)
        self.assertEqual(job.process.wait(PATIENCE), 0)

    def test_files_for_each_rank(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            to = f"{folder}/a/b"
            _, stdout, _ = self.ran("-n", "2", "--output-dir", to, "sh", "-c",
                                    "printf 'out %s' $RANK; echo err $RANK >&2")
            self.assertEqual(sorted(stdout.splitlines()), [b"[0] out 0", b"[1] out 1"])
            texts = {path.name: path.read_text("ascii") for path in Path(to).iterdir()}
            self.assertEqual(texts, {"rank-0.out": "out 0", "rank-0.err": "err 0\n",
                                     "rank-1.out": "out 1", "rank-1.err": "err 1\n"})

    def test_files_that_cannot_be_written_are_an_error_before_anything_starts(self) -> None:
        status, stdout, stderr = self.ran("--output-dir", "/dev/null/a", "echo", "a")
        self.assertEqual((status, stdout), (1, b""))
        self.assertIn(b"--output-dir", stderr)

    def test_colors_on_a_terminal_only(self) -> None:
        for variables, expected in (({}, rb"\x1b\[\d+m\[0\]\x1b\[0m a\r\n"),
                                    ({"NO_COLOR": "1"}, rb"\[0\] a\r\n")):
            ours, theirs = pty.openpty()
            job = self.job("echo", "a", stdout=theirs, **variables)
            os.close(theirs)
            self.assertEqual(job.process.wait(PATIENCE), 0)
            self.assertRegex(os.read(ours, 1000), b"^" + expected + b"$")
            os.close(ours)

    def test_rank_0_reads_stdin_and_the_others_nothing(self) -> None:
        job = self.job("-n", "3", "cat", stdin=subprocess.PIPE)
        stdout, _ = job.process.communicate(b"typed\n", timeout=PATIENCE)
        self.assertEqual((job.process.returncode, stdout), (0, b"[0] typed\n"))

    def on_terminal(self, *arguments: str) -> tuple[int, int]:
        """A launcher in the foreground of a terminal of its own: its pid, and our end of that."""
        pid, terminal = pty.fork()
        if pid == 0:
            os.execv(launcher.HOCKET, [launcher.HOCKET, "run", *arguments])
        self.addCleanup(os.close, terminal)
        return pid, terminal

    def exit_status(self, pid: int) -> int:
        end = time.monotonic() + SOON
        while time.monotonic() < end:
            ended, status = os.waitpid(pid, os.WNOHANG)
            if ended:
                return os.waitstatus_to_exitcode(status)
            time.sleep(0.02)
        os.kill(pid, signal.SIGKILL)
        raise AssertionError("it does not end")

    def test_what_is_typed_on_a_terminal_reaches_rank_0(self) -> None:
        pid, terminal = self.on_terminal("-n", "2", "sh", "-c", "read line && echo got $line")
        os.write(terminal, b"typed\n")
        shown = b""
        while b"got typed" not in shown:
            shown += os.read(terminal, 1000)
        self.assertEqual(self.exit_status(pid), 1)  # rank 1 has nothing to read

    def test_an_interrupt_of_the_terminal_ends_the_job(self) -> None:
        pid, terminal = self.on_terminal("-n", "2", "sh", "-c", "echo ready; exec sleep 600")
        shown = b""
        while shown.count(b"ready") < 2:
            shown += os.read(terminal, 1000)
        os.write(terminal, b"\x03")
        self.assertEqual(self.exit_status(pid), 128 + signal.SIGINT)

    def test_when_nobody_reads_the_job_ends(self) -> None:
        job = self.job("-n", "2", "yes")
        assert job.process.stdout
        self.assertEqual(job.process.stdout.readline()[-3:], b" y\n")
        job.process.stdout.close()
        self.assertEqual(job.process.wait(SOON), 128 + signal.SIGPIPE)
        self.assert_gone(job)

    def test_a_full_disk_ends_the_job(self) -> None:
        with open("/dev/full", "wb") as full:
            job = self.job("yes", stdout=full.fileno())
        status, _, stderr = job.finish()
        self.assertEqual(status, 1)
        self.assertIn(b"No space left on device", stderr)

    def test_output_held_open_by_a_grandchild_holds_up_nothing(self) -> None:
        job = self.job("-n", "2", "sh", "-c", "setsid sleep 600 & echo started")
        begin = time.monotonic()
        status, stdout, _ = job.finish(SOON)
        self.assertEqual((status, sorted(stdout.splitlines())),
                         (0, [b"[0] started", b"[1] started"]))
        self.assertLess(time.monotonic() - begin, SOON)
        self.assertEqual(job.running(), [])


class Failure(Case):
    def test_the_first_to_fail_ends_all_and_is_named(self) -> None:
        program = "[ $RANK = 2 ] && { echo the reason >&2; exit 7; }; exec sleep 600"
        job = self.job("-n", "4", "sh", "-c", program)
        status, _, stderr = job.finish(SOON)
        self.assertEqual(status, 7)
        self.assertRegex(stderr, rb"hocket run: rank 2 failed first, on \S+ \(pid \d+\), after "
                                 rb"\d+\.\d s: exit status 7\n")
        self.assertIn(b"its stderr:\n  | the reason\n", stderr)
        self.assertEqual(stderr.count(b"failed first"), 1)
        self.assertEqual(job.running(), [])

    def test_a_signal_is_named(self) -> None:
        status, _, stderr = self.ran("-n", "2", "sh", "-c", "[ $RANK = 1 ] && kill -SEGV $$; sleep 600")
        self.assertEqual(status, 128 + signal.SIGSEGV)
        self.assertRegex(stderr, rb"rank 1 failed first.*: killed by SIGSEGV \(Segmentation fault\)")

    def test_the_last_twenty_lines_are_shown(self) -> None:
        _, _, stderr = self.ran("--no-tag-output", "sh", "-c", "seq 1000 >&2; exit 1")
        shown = re.findall(rb"^  \| (\d+)$", stderr, re.MULTILINE)
        self.assertEqual([int(each) for each in shown], list(range(981, 1001)))

    def test_they_are_shown_with_files_too(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            _, _, stderr = self.ran("--output-dir", folder, "sh", "-c", "echo why >&2; exit 1")
            self.assertIn(b"  | why\n", stderr)

    def with_followers(self, end: str) -> tuple[int, bytes]:
        """Rank 3 ends so, the others when they see that it has."""
        with tempfile.TemporaryDirectory() as folder:
            os.mkfifo(f"{folder}/pipe")
            program = (f"if [ $RANK = 3 ]; then exec 5> {folder}/pipe; sleep 1; {end}; fi; "
                       f"echo $RANK sees >&2; cat {folder}/pipe; exit 1")
            status, _, stderr = self.ran("-n", "4", "sh", "-c", program)
        return status, stderr

    def test_who_crashed_is_told_from_those_who_followed(self) -> None:
        for _ in range(3):
            status, stderr = self.with_followers("kill -SEGV $$")
            self.assertEqual(status, 128 + signal.SIGSEGV)
            self.assertIn(b"hocket run: rank 3 failed first, ", stderr)

    def test_those_who_failed_together_are_all_named(self) -> None:
        _, stderr = self.with_followers("echo the reason >&2; exit 5")
        self.assertRegex(stderr, rb"ranks .*\b3 failed within \d+ ms of each other\n")
        self.assertRegex(stderr, rb"hocket run: rank 3 failed, on \S+ \(pid \d+\), after .*: exit "
                                 rb"status 5\nthe last lines of its stderr:\n  \| the reason\n")
        self.assertNotIn(b"failed first", stderr)

    def test_a_rank_that_ends_early_without_failure_is_fine(self) -> None:
        status, stdout, stderr = self.ran("-n", "3", "sh", "-c",
                                          "[ $RANK = 0 ] && exit; sleep 1; echo late")
        self.assertEqual((status, sorted(stdout.split(b"\n"))), (0, [b"", b"[1] late", b"[2] late"]))
        self.assertEqual(stderr, b"")

    def test_who_ignores_sigterm_is_killed_after_the_grace_time(self) -> None:
        program = ("if [ $RANK = 1 ]; then sleep 1; exit 5; fi; trap '' TERM; "
                   "while :; do sleep 0.1; done")
        job = self.job("-n", "3", "--grace", "1s", "sh", "-c", program)
        begin = time.monotonic()
        self.assertEqual(job.finish(SOON)[0], 5)
        self.assertGreater(time.monotonic() - begin, 1.9)
        self.assertEqual(job.running(), [])

    def test_who_ends_at_sigterm_may_say_so(self) -> None:
        program = ("[ $RANK = 1 ] && { sleep 1; exit 5; }; "
                   "trap 'echo saved; exit 0' TERM; while :; do sleep 0.1; done")
        status, stdout, _ = self.ran("-n", "2", "--grace", "30s", "sh", "-c", program)
        self.assertEqual((status, stdout), (5, b"[0] saved\n"))

    def test_programs_that_cannot_be_started(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            script = Path(folder, "script")
            script.write_text("#!/nonexistent/interpreter\n", "ascii")
            script.chmod(0o755)
            plain = Path(folder, "plain")
            plain.write_text("no script", "ascii")
            for program, expected in (("nonexistent-program", 127), (f"{folder}/nothing", 127),
                                      (str(script), 127), (folder, 126), (str(plain), 126)):
                with self.subTest(program):
                    status, stdout, stderr = self.ran("-n", "2", program)
                    self.assertEqual((status, stdout), (expected, b""))
                    self.assertIn(f"{program} can't be started: ".encode(), stderr)
            plain.chmod(0o755)
            status, _, stderr = self.ran(str(plain))
            self.assertEqual(status, 126)
            self.assertIn(b"begins with #!", stderr)


class Restarts(Case):
    def test_all_ranks_start_anew(self) -> None:
        program = "echo $RANK in $HOCKET_ATTEMPT; [ $HOCKET_ATTEMPT$RANK = 01 ] && exit 3; " \
                  "[ $HOCKET_ATTEMPT = 0 ] && sleep 600; true"
        status, stdout, stderr = self.ran("-n", "2", "--max-restarts", "3", "sh", "-c", program)
        self.assertEqual(status, 0)
        self.assertIn(b"[0] 0 in 1\n", stdout)
        self.assertIn(b"[1] 1 in 1\n", stdout)
        self.assertNotIn(b"in 2", stdout)
        self.assertIn(b"hocket run: restarting all ranks: restart 1 of at most 3\n", stderr)

    def test_not_more_often_than_allowed(self) -> None:
        status, stdout, stderr = self.ran("--max-restarts", "2", "sh", "-c",
                                          "echo $TORCHELASTIC_RESTART_COUNT; exit 9")
        self.assertEqual((status, stdout), (9, b"[0] 0\n[0] 1\n[0] 2\n"))
        self.assertEqual(stderr.count(b"restarting"), 2)

    def test_nothing_of_the_former_attempt_is_left(self) -> None:
        with tempfile.NamedTemporaryFile() as file:
            program = f"[ $HOCKET_ATTEMPT = 1 ] && exec kill -0 $(cat {file.name}); " \
                      f"setsid sleep 600 & echo $! > {file.name}; exit 3"
            status, _, stderr = self.ran("--max-restarts", "1", "sh", "-c", program)
        self.assertEqual(status, 1)
        self.assertIn(b"No such process", stderr)

    def test_a_program_that_is_not_there_is_not_tried_again(self) -> None:
        status, _, stderr = self.ran("--max-restarts", "5", "nonexistent-program")
        self.assertEqual(status, 127)
        self.assertNotIn(b"restarting", stderr)

    def test_last_lines_are_those_of_the_attempt(self) -> None:
        _, _, stderr = self.ran("--max-restarts", "1", "sh", "-c",
                                "[ $HOCKET_ATTEMPT = 0 ] && echo of the first >&2; exit 3")
        self.assertEqual(stderr.count(b"  | of the first\n"), 1)

    def test_who_was_told_to_end_does_not_restart(self) -> None:
        job = self.started("--max-restarts", "5", "sh", "-c", "echo ready; exec sleep 600", ranks=2)
        job.process.send_signal(signal.SIGTERM)
        status, _, stderr = job.finish(SOON)
        self.assertEqual((status, stderr), (128 + signal.SIGTERM, b""))


class Signals(Case):
    def test_signals_that_end_the_job_reach_the_ranks(self) -> None:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
            name = number.name.removeprefix("SIG")
            program = f"trap 'echo got {name}; exit 0' {name}; echo ready; while :; do sleep 0.1; done"
            job = self.started("sh", "-c", program, ranks=2)
            job.process.send_signal(number)
            status, stdout, _ = job.finish(SOON)
            self.assertEqual((status, sorted(stdout.splitlines())),
                             (128 + number, [f"[{rank}] got {name}".encode() for rank in (0, 1)]))
            self.assertEqual(job.running(), [])

    def test_signals_for_the_user_end_nothing(self) -> None:
        program = "trap 'echo one' USR1; trap 'echo two; exit 0' USR2; echo ready; " \
                  "while :; do sleep 0.1; done"
        job = self.started("sh", "-c", program, ranks=1)
        assert job.process.stdout
        job.process.send_signal(signal.SIGUSR1)
        self.assertEqual(job.process.stdout.readline(), b"[0] one\n")
        job.process.send_signal(signal.SIGUSR2)
        status, stdout, _ = job.finish(SOON)
        self.assertEqual((status, stdout), (0, b"[0] two\n"))

    def test_a_second_interrupt_kills_at_once(self) -> None:
        job = self.started("--grace", "10m", *STUBBORN, ranks=2)
        job.process.send_signal(signal.SIGINT)
        time.sleep(1)
        self.assertIsNone(job.process.poll())
        job.process.send_signal(signal.SIGINT)
        self.assertEqual(job.finish(SOON)[0], 128 + signal.SIGINT)
        self.assertEqual(job.running(), [])

    def test_a_second_interrupt_waits_for_no_reader(self) -> None:
        job = self.started("sh", "-c", "trap '' INT; echo ready; exec yes", ranks=2)
        time.sleep(0.5)
        job.process.send_signal(signal.SIGINT)
        time.sleep(1)
        job.process.send_signal(signal.SIGINT)
        self.assertEqual(job.process.wait(SOON), 128 + signal.SIGINT)
        self.assert_gone(job)

    def test_one_signal_to_every_process_is_one(self) -> None:
        saves = "for i in 1 2 3 4 5 6 7 8 9 10; do sleep 0.1; done; echo saved; exit 0"
        job = self.started("--grace", "30s", "sh", "-c",
                           f"trap '{saves}' TERM; echo ready; while :; do sleep 0.1; done", ranks=2)
        for pid in [job.worker(), job.process.pid, *job.running(), job.process.pid]:
            try:
                os.kill(pid, signal.SIGTERM)
            except ProcessLookupError:  # one of the sleeps
                continue
        status, stdout, _ = job.finish(SOON)
        self.assertEqual((status, sorted(stdout.splitlines())),
                         (128 + signal.SIGTERM, [b"[0] saved", b"[1] saved"]))

    def test_a_signal_while_a_failure_ends_the_job(self) -> None:
        program = ("[ $RANK = 1 ] && { echo ready; sleep 1; exit 5; }; "
                   "trap 'sleep 2; echo saved; exit 0' TERM; echo ready; while :; do sleep 0.1; done")
        job = self.started("--grace", "30s", sys.executable, "-c",
                           f"import os; os.execvp('sh', ['sh', '-c', {program!r}])", ranks=2)
        assert job.process.stderr
        self.assertIn(b"rank 1 failed first", job.process.stderr.readline())
        job.process.send_signal(signal.SIGTERM)
        status, stdout, _ = job.finish(SOON)
        self.assertEqual((status, stdout), (5, b"[0] saved\n"))

    def test_a_rank_that_went_to_another_process_group(self) -> None:
        program = ("import os, signal, time; os.setpgid(0, os.getpgid(os.getppid())); "
                   "signal.signal(signal.SIGTERM, lambda *_: os._exit(os.write(1, b'told\\n') - 5)); "
                   "os.write(1, b'ready\\n'); [time.sleep(0.1) for _ in range(6000)]")
        job = self.started("--grace", "10m", sys.executable, "-c", program, ranks=2)
        job.process.send_signal(signal.SIGTERM)
        status, stdout, _ = job.finish(SOON)
        self.assertEqual((status, sorted(stdout.splitlines())),
                         (128 + signal.SIGTERM, [b"[0] told", b"[1] told"]))

    def test_a_caller_that_ignores_the_death_of_children(self) -> None:
        script = ("import os, signal, sys; signal.signal(signal.SIGCHLD, signal.SIG_IGN); "
                  "os.execv(sys.argv[1], sys.argv[1:])")
        job = subprocess.run([sys.executable, "-c", script, launcher.HOCKET, "run", "--no-tag-output",
                              "grep", "-h", "^SigIgn", "/proc/self/status", "/nonexistent"], capture_output=True, timeout=SOON, check=False)
        self.assertEqual(job.returncode, 2)
        ignored = int(job.stdout.split()[1], 16)
        self.assertTrue(ignored & 1 << signal.SIGCHLD - 1)  # as it was

    def test_to_stop_and_to_continue(self) -> None:
        job = self.started("sh", "-c", "echo ready; sleep 1; echo done", ranks=1)

        def state(pid: int) -> str:
            return Path(f"/proc/{pid}/stat").read_text("ascii").rsplit(") ")[1][0]

        job.process.send_signal(signal.SIGTSTP)
        wait_until(lambda: state(job.process.pid) == "T", "the launcher has stopped")
        job.process.send_signal(signal.SIGCONT)
        self.assertEqual(job.finish()[0], 0)

    def test_what_was_ignored_stays_ignored(self) -> None:
        job = Job("sh", "-c", "true")
        job.finish()
        process = subprocess.Popen(
            ["nohup", launcher.HOCKET, "run", "sh", "-c", "echo ready; sleep 1; echo done"],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        assert process.stdout
        process.stdout.readline()
        process.send_signal(signal.SIGHUP)
        stdout, _ = process.communicate(timeout=PATIENCE)
        self.assertEqual((process.returncode, stdout), (0, b"[0] done\n"))


class NothingIsLeft(Case):
    """Ranks with a child of the common kind, one in a session of its own, and a daemon."""

    FAMILY = ("sleep 600 & setsid sleep 600 & (setsid sh -c 'sleep 600 & exec sleep 600' &) ; "
              "trap '' TERM; echo ready; while :; do sleep 1; done")

    def family(self) -> Job:
        job = self.started("--grace", "1s", "sh", "-c", self.FAMILY, ranks=2)
        wait_until(lambda: len(job.running()) >= 2 + 2 * 6, "all have started")
        return job

    def test_after_sigterm(self) -> None:
        job = self.family()
        job.process.send_signal(signal.SIGTERM)
        self.assertEqual(job.finish(SOON)[0], 128 + signal.SIGTERM)
        self.assertEqual(job.running(), [])

    def test_after_kill_of_the_guardian(self) -> None:
        job = self.family()
        job.process.kill()
        self.assert_gone(job)

    def test_after_kill_of_the_worker(self) -> None:
        job = self.family()
        os.kill(job.worker(), signal.SIGKILL)
        status, _, stderr = job.finish(SOON)
        self.assertEqual(status, 128 + signal.SIGKILL)
        self.assertIn(b"its worker was killed by SIGKILL", stderr)
        self.assertEqual(job.running(), [])

    def test_when_stderr_is_broken_or_full(self) -> None:
        for is_full in (False, True):
            with self.subTest(is_full=is_full):
                ours, theirs = os.pipe()
                self.addCleanup(os.close, theirs)
                if is_full:
                    self.addCleanup(os.close, ours)
                    os.write(theirs, bytes(fcntl.fcntl(theirs, fcntl.F_GETPIPE_SZ)))
                else:
                    os.close(ours)
                job = self.started("sh", "-c", "setsid sleep 600 & echo ready; exec sleep 600",
                                   ranks=2, stderr=theirs)
                os.kill(job.worker(), signal.SIGKILL)
                self.assertEqual(job.process.wait(SOON), 128 + signal.SIGKILL)
                self.assertEqual(job.running(), [])
                refused = self.job("--output-dir", "/dev/null/a", "true", stderr=theirs)
                self.assertEqual(refused.process.wait(SOON), 1)

    def test_the_grace_is_short_when_the_guardian_was_killed(self) -> None:
        job = self.started("--grace", "10m", *STUBBORN, ranks=2)
        job.process.kill()
        self.assert_gone(job)

    def test_both_are_not_killed_by_one_name(self) -> None:
        job = self.started(*STUBBORN, ranks=1)
        names = [Path(f"/proc/{pid}/comm").read_text("ascii").strip()
                 for pid in (job.process.pid, job.worker())]
        self.assertEqual(names, ["hocket", "hocket-worker"])

    def test_after_kill_of_the_process_group(self) -> None:
        job = self.family()
        os.killpg(job.process.pid, signal.SIGKILL)
        self.assert_gone(job)

    def test_after_kill_of_both(self) -> None:
        job = self.started(*STUBBORN, ranks=4)
        worker = job.worker()
        os.kill(worker, signal.SIGSTOP)  # neither sees the other die
        job.process.kill()
        os.kill(worker, signal.SIGKILL)
        # The ranks die with the worker; their children only when they next look for them.
        self.assert_gone(job)

    def test_where_proc_shows_other_processes(self) -> None:
        program = "sleep 600 > /dev/null & echo $!"
        script = (f"{launcher.HOCKET} run -n 2 --no-tag-output sh -c '{program}' > $0; echo $?; "
                  # A process that was killed takes a moment to go, and its parent to bury it.
                  "for pid in $(cat $0); do for i in $(seq 50); do kill -0 $pid || continue 2; "
                  "sleep 0.1; done; echo left; done; exit 0")
        with tempfile.NamedTemporaryFile() as file:
            command = ["unshare", "--pid", "--fork", "--kill-child", "sh", "-c", script, file.name]
            try:
                if subprocess.run([*command[:4], "true"], capture_output=True, timeout=SOON,
                                  check=False).returncode:
                    self.skipTest("no process namespaces here")
            except OSError as error:
                self.skipTest(f"no process namespaces here: {error}")
            ran = subprocess.run(command, capture_output=True, timeout=SOON, check=False)
        self.assertEqual(ran.stdout, b"0\n", ran.stderr)
        self.assertIn(b"/proc does not show the processes of this job", ran.stderr)

    def test_after_ranks_that_leave_daemons(self) -> None:
        job = self.job("-n", "2", "sh", "-c", "(setsid sh -c 'trap \"\" TERM; sleep 600' &); exit 0")
        self.assertEqual(job.finish(SOON)[0], 0)
        self.assertEqual(job.running(), [])

    def test_former_children_of_who_became_the_launcher_are_spared(self) -> None:
        script = f"sleep 600 > /dev/null & echo $!; exec {launcher.HOCKET} run true"
        shell = subprocess.run(["sh", "-c", script], stdout=subprocess.PIPE, timeout=PATIENCE,
                               check=True)
        os.kill(int(shell.stdout), signal.SIGKILL)  # it is still there


if __name__ == "__main__":
    launcher.HOCKET = sys.argv.pop(1)
    unittest.main(verbosity=2)  # with the reasons of what is skipped
