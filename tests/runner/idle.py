"""Counts how many of this process's processors were idle lately, by the kernel's numbers (Linux, proc_stat(5))."""
import os
import time

TICKS = os.sysconf("SC_CLK_TCK")


def idle_seconds():
    """Of these processors together, since the machine started; 0 where the kernel does not count them."""
    own = {f"cpu{number}" for number in os.sched_getaffinity(0)}
    ticks = 0
    try:
        with open("/proc/stat", encoding="ascii") as file:
            for line in file:
                fields = line.split()
                if fields and fields[0] in own:
                    ticks += int(fields[4]) + int(fields[5])  # Waiting for a disk is idle, too.
    except OSError:
        return 0.0
    return ticks / TICKS


class Idle:
    """Counts from its start, or from the last time that it was asked to begin anew."""

    def __init__(self, read=idle_seconds, now=time.monotonic):
        self.read = read
        self.now = now
        self.begin()

    def begin(self):
        self.since = self.now()
        self.before = self.read()

    def processors(self, seconds):
        """The mean over the last `seconds` or more; None before they are over. Each answer begins a new count."""
        passed = self.now() - self.since
        if passed < seconds:
            return None
        idle = (self.read() - self.before) / passed
        self.begin()
        return idle
