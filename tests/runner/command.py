"""A test that is a program of its own: it passes by exit code 0."""
import time

from loop import how_it_ended
from results import FAILED, PASSED, SKIPPED, Result


class CommandRun:
    def __init__(self, command, expected):
        self.command = command
        self.lane = command.lane
        self.fixtures = command.fixtures
        self.slots = command.slots
        self.expected = expected
        self.process = None
        self.killed = self.has_failed = False
        self.lines = []

    def names(self):
        return [self.command.name]

    def doing(self):
        return self.command.name

    def start(self, loop, environment, on_result, _on_overhead, on_done):
        self.on_result = on_result
        self.on_done = on_done
        self.started = time.monotonic()
        self.process = loop.start(self.command.argv, {**environment, **self.command.environment}, self.lines.append,
                                  self._exit)

    def tick(self, now):
        if self.process and not self.killed and now - self.started > self.command.timeout:
            self.killed = True
            self.process.kill()

    def _exit(self, status, cpu):
        output = "\n".join(self.lines)
        reason = how_it_ended(status)
        if self.killed:
            reason = f"did not end within {self.command.timeout:.0f} s"
        outcome = FAILED if reason else PASSED
        if not reason and self.command.skip and self.command.skip.search(output):
            outcome = SKIPPED
        seconds = time.monotonic() - self.started
        self.on_result(Result(self.command.name, self.lane, outcome, seconds, cpu, output, reason))
        self.has_failed = outcome == FAILED
        self.process = None
        self.on_done()
