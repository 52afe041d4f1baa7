"""Reads the output of a program of GoogleTest, line by line, into results.

A test may leave a line unfinished, so that "[       OK ]" follows its words in one line; and a test may print such
lines of its own. The names tell them apart: only those that this process was asked to run count.
"""
import collections
import re

from results import FAILED, PASSED, SKIPPED

BEGIN = re.compile(r"\[ RUN      \] (\S+)$")
END = re.compile(r"\[(       OK |  FAILED  |  SKIPPED )\] (\S+?)(?:, where .*)? \((\d+) ms\)$")
# Printed by tests/support/time_spent.cpp before the end of a test.
SPENT = re.compile(r"\[ SPENT    \] (\S+) (\d+) us$")
# Nobody reads more of one test, and a loop that prints may not fill the memory.
KEPT_LINES = 2000
OUTCOMES = {"       OK ": PASSED, "  FAILED  ": FAILED, "  SKIPPED ": SKIPPED}


class Transcript:
    """`on_begin(name)`, `on_end(name, outcome, milliseconds, output, causes)`."""

    def __init__(self, names, on_begin, on_end):
        self.waiting = set(names)
        self.running = None
        self.lines = collections.deque(maxlen=KEPT_LINES)
        self.causes = {}
        self.on_begin = on_begin
        self.on_end = on_end

    def read(self, line):
        begin = BEGIN.search(line)
        if begin and self.running is None and begin[1] in self.waiting:
            self.waiting.remove(begin[1])
            self.running, self.causes = begin[1], {}
            self.lines.clear()
            self.on_begin(begin[1])
            return
        end = END.search(line)
        if end and end[2] == self.running:
            if end.start():
                self.lines.append(line[:end.start()])
            name, self.running = self.running, None
            self.on_end(name, OUTCOMES[end[1]], int(end[3]), self.text(), self.causes)
            self.lines.clear()
            return
        spent = SPENT.search(line)
        if spent and self.running:
            self.causes[spent[1]] = self.causes.get(spent[1], 0) + int(spent[2]) / 1e6
            line = line[:spent.start()]
            if not line:
                return
        self.lines.append(line)

    def text(self):
        """What was written since the last begin or end of a test."""
        return "\n".join(self.lines)
