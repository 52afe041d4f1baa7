"""Many tests of one program in one process, and in a new one after a test that ended the first.

Each test of the shard gets a result, whatever its process does:
- the process ends, or is silent for too long: the test that ran has failed, and the rest run in a new process;
- it ends with an error although each of its tests passed (a leak, a race, a destructor): each of them runs again alone,
  and those that end so alone have failed; if none does, the process as a whole has.
"""
import os
import tempfile
import time

from loop import how_it_ended
from results import FAILED, PASSED, Result
from transcript import Transcript


class Shard:
    """`on_result(result)` for each test, where the last one of a name counts; `on_done()` at the end."""

    slots = 1

    def __init__(self, group, names, expected):
        self.group = group
        self.lane = group.lane
        self.fixtures = group.fixtures
        self.expected = expected  # Seconds.
        self.left = list(names)
        self.again = []  # Tests that run alone, because their process ended with an error.
        self.suspects = []  # Those of the last process, unless the next one shows what ended it.
        self.alone = self.found_alone = False
        self.process = None

    def names(self):
        return [self.group.tests[name] for name in self.left]

    def doing(self):
        running = self.transcript.running if self.process else None
        return self.group.tests[running] if running else self.group.label

    def start(self, loop, environment, on_result, on_overhead, on_done):
        self.loop = loop
        self.environment = {**environment, **self.group.environment}
        self.on_result = on_result
        self.on_overhead = on_overhead
        self.on_done = on_done
        self._next()

    def _next(self):
        if self.left:
            self._run(self.left)
            return
        self._suspect()
        if self.again:
            self.alone = True
            self._run([self.again.pop(0)])
        else:
            if self.alone and not self.found_alone:
                self._report(self.bad_end)
            self.process = None
            self.on_done()

    def _run(self, names):
        self.batch = list(names)
        self.ended = []  # Names and outcomes in this process.
        self.transcript = Transcript(names, self._begin, self._end)
        with tempfile.NamedTemporaryFile("w", prefix="idem-tests-", suffix=".flags", delete=False) as file:
            file.write(f"--gtest_filter={':'.join(names)}\n")
        self.flags = file.name
        self.last_time = time.monotonic()
        self.last_cpu = 0.0
        self.killed = False
        argv = [self.group.program, f"--gtest_flagfile={self.flags}", "--gtest_color=no"]
        self.process = self.loop.start(argv, self.environment, self.transcript.read, self._exit)

    def tick(self, now):
        """Ends a test that takes too long, and a process that does not begin or end."""
        if self.process and not self.killed and now - self.last_time > self.group.timeout:
            self.killed = True
            self.process.kill()

    def _suspect(self):
        self.again += self.suspects
        self.suspects = []

    def _begin(self, _name):
        self._suspect()
        now = time.monotonic()
        self.on_overhead(self.lane, now - self.last_time)
        self.last_time = now
        self.last_cpu = self.process.cpu()

    def _end(self, name, outcome, milliseconds, output, causes):
        self.last_time = time.monotonic()
        self.ended.append((name, outcome))
        if self.alone and outcome == PASSED:
            return
        cpu = max(0.0, self.process.cpu() - self.last_cpu)
        self._report(Result(self.group.tests[name], self.lane, outcome, milliseconds / 1000, cpu, output,
                            causes=causes))

    def _report(self, result):
        if self.alone and result.outcome == FAILED:
            self.found_alone = True
        self.on_result(result)

    def _exit(self, status, cpu):
        os.unlink(self.flags)
        now = time.monotonic()
        reason = how_it_ended(status)
        if self.killed:
            reason = f"did not end within {self.group.timeout:.0f} s"
        running = self.transcript.running
        if running is None:
            self.on_overhead(self.lane, now - self.last_time)
        done = {name for name, _ in self.ended}
        if running:
            done.add(running)
            self._fail(running, reason or "the program ended in the middle of it", now - self.last_time)
        rest = [name for name in self.batch if name not in done]
        if rest and not done:
            # What sets up the first suite ends the process, or the program does not even start.
            self.suspects = []
            suite = rest[0].partition(".")[0]
            for name in rest:
                if name.partition(".")[0] == suite:
                    self._fail(name, f"the program ran no test: {reason or 'it ended without an error'}", 0.0)
            rest = [name for name in rest if name.partition(".")[0] != suite]
        bad_end = reason and not running and not any(outcome == FAILED for _, outcome in self.ended)
        if bad_end and self.ended:
            self._note_bad_end(f"all tests of the process passed, and it {reason}")
        if not self.alone:
            self.left = rest
        self._next()

    def _note_bad_end(self, reason):
        names = [name for name, _ in self.ended]
        if len(self.batch) == 1:
            self._fail(names[0], reason, 0.0)
            return
        self.bad_end = Result(f"{self.group.label}: {self.group.tests[names[0]]} ... {self.group.tests[names[-1]]}",
                              self.lane, FAILED, 0.0, 0.0, self.transcript.text(), reason)
        self.suspects = names

    def _fail(self, name, reason, seconds):
        self._report(Result(self.group.tests[name], self.lane, FAILED, seconds, 0.0, self.transcript.text(), reason))
