"""How many processors did nothing lately: what the kernel counts (Linux, proc_stat(5)), for the whole machine."""
import os
import time

TICKS = os.sysconf("SC_CLK_TCK")


def idle_seconds():
    """Of all processors together, since the machine started; 0 where nobody counts them."""
    try:
        with open("/proc/stat", encoding="ascii") as file:
            fields = file.readline().split()
    except OSError:
        return 0.0
    return (int(fields[4]) + int(fields[5])) / TICKS  # Waiting for a disk is idle, too.


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
        """The mean over the last `seconds` or more; None before they are over. Each answer begins anew."""
        passed = self.now() - self.since
        if passed < seconds:
            return None
        idle = (self.read() - self.before) / passed
        self.begin()
        return idle
