"""Processes that one thread starts, reads and reaps.

The runner is the reaper of whatever a test leaves (PR_SET_CHILD_SUBREAPER), so that a server of a killed test does not
outlive the run. Each process leads a group of its own: Ctrl-C reaches the runner alone, which then ends the groups.
"""
import ctypes
import os
import selectors
import signal
import time

PR_SET_CHILD_SUBREAPER = 36
# Python ignores these, and a program inherits what is ignored.
RESET = [signal.SIGPIPE, signal.SIGXFSZ]
PART_BYTES = 1 << 16
# A longer line is cut into several, and one turn reads no more of one process, so that a test that writes without an
# end keeps nobody from its time limit and from Ctrl-C.
LINE_BYTES = 1 << 16
PARTS_OF_A_TURN = 64


class Process:
    """A program that runs; `on_line(text)` for each line that it writes, `on_exit(status, cpu_seconds)` at its end."""

    def __init__(self, pid, output, on_line, on_exit):
        self.pid = pid
        self.output = output
        self.on_line = on_line
        self.on_exit = on_exit
        self.rest = b""

    def kill(self):
        try:
            os.killpg(self.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass

    def cpu(self):
        """Seconds of the processor that it and those of its children that it has waited for have taken."""
        try:
            with open(f"/proc/{self.pid}/stat", "rb") as file:
                fields = file.read().rpartition(b")")[2].split()
        except OSError:
            return 0.0
        return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")


class Loop:
    def __init__(self):
        ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        self.selector = selectors.DefaultSelector()
        self.processes = {}
        self.interrupts = 0
        woken, wake = os.pipe()
        for end in (woken, wake):
            os.set_blocking(end, False)
        self.woken = woken
        self.selector.register(woken, selectors.EVENT_READ)
        signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, self._interrupt)

    def _interrupt(self, *_):
        self.interrupts += 1

    def start(self, argv, environment, on_line, on_exit):
        read, write = os.pipe()
        os.set_blocking(read, False)
        actions = [(os.POSIX_SPAWN_OPEN, 0, "/dev/null", os.O_RDONLY, 0),
                   (os.POSIX_SPAWN_DUP2, write, 1), (os.POSIX_SPAWN_DUP2, write, 2)]
        try:
            pid = os.posix_spawnp(argv[0], argv, environment, file_actions=actions, setpgroup=0, setsigmask=[],
                                  setsigdef=RESET)
        except OSError as error:
            os.close(read)
            on_line(f"{argv[0]}: {error.strerror}")
            on_exit(127 << 8, 0.0)
            return None
        finally:
            os.close(write)
        process = Process(pid, read, on_line, on_exit)
        self.processes[pid] = process
        self.selector.register(read, selectors.EVENT_READ, process)
        return process

    def turn(self, seconds):
        """Handles what happens within so many seconds."""
        for key, _ in self.selector.select(seconds):
            if key.data is None:
                self._drain(key.fd)
            else:
                self._read(key.data)
        self._reap()

    def _drain(self, end):
        try:
            while os.read(end, 4096):
                pass
        except BlockingIOError:
            pass

    def _read(self, process):
        """What lies in the pipe; afterwards, at its end, the pipe is closed."""
        for _ in range(PARTS_OF_A_TURN):
            if process.output is None:
                return
            try:
                part = os.read(process.output, PART_BYTES)
            except BlockingIOError:
                return
            if not part:
                self._close(process)
                return
            *lines, process.rest = (process.rest + part).split(b"\n")
            if len(process.rest) > LINE_BYTES:
                lines.append(process.rest)
                process.rest = b""
            for line in lines:
                process.on_line(line.decode("utf-8", "replace"))

    def _close(self, process):
        if process.output is None:
            return
        self.selector.unregister(process.output)
        os.close(process.output)
        process.output = None
        if process.rest:
            process.on_line(process.rest.decode("utf-8", "replace"))
            process.rest = b""

    def _reap(self):
        while True:
            try:
                pid, status, usage = os.wait4(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            process = self.processes.pop(pid, None)
            if process is None:
                continue  # What a test left.
            self._read(process)
            # A server that it left may hold the pipe open for ever.
            self._close(process)
            process.on_exit(status, usage.ru_utime + usage.ru_stime)

    def end_all(self):
        """Kills what runs, and what was left; returns after the last of them has ended."""
        for process in list(self.processes.values()):
            process.kill()
        deadline = time.monotonic() + 10
        while time.monotonic() < deadline:
            left = children_of(os.getpid())
            for pid in left:
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass
            if not left:
                return
            self.turn(0.05)


def children_of(parent):
    found = []
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        try:
            with open(f"/proc/{name}/stat", "rb") as file:
                fields = file.read().rpartition(b")")[2].split()
        except OSError:
            continue
        if int(fields[1]) == parent:
            found.append(int(name))
    return found


def how_it_ended(status):
    """In words; empty: as it should."""
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        return f"ended by {signal.Signals(number).name}"
    code = os.WEXITSTATUS(status)
    return f"ended with code {code}" if code else ""
