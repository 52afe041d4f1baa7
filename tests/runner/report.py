"""What a run prints: its start, its progress, each failing test at once, and the tables of its end."""
import os
import sys
import time

from budgets import MINUTES
from results import FAILED, SKIPPED

EVERY_SECONDS = 30
COMPUTING = "the processor, for the test and its programs"
WAITING = "waiting, for a server's work too"


def clock(seconds):
    whole = int(seconds + 0.5)
    return f"{whole // 60}:{whole % 60:02}"


def number(count):
    return f"{count:,}"


def why(result):
    """": " and the reason, or what GoogleTest wrote where a test failed or was skipped; empty: nobody knows."""
    if result.reason:
        return f": {result.reason}"
    lines = result.output.splitlines()
    for line, following in zip(lines, lines[1:]):
        if line.endswith(": Failure"):
            return f": {line.removesuffix(': Failure')}: {following}"
        if line.endswith(": Skipped"):
            return f": {following}"
    return ""


class Report:
    def __init__(self, out=None):
        self.out = out or sys.stdout
        self.is_terminal = self.out.isatty()
        self.results = {}
        self.overhead = {}
        self.began = self.said = time.monotonic()
        self.has_line = False

    def say(self, text=""):
        self._clear()
        print(text, file=self.out, flush=True)

    def start(self, count, lanes, slots, has_company, seconds, source):
        self.count = count
        self.expected = seconds
        tests = "1 test" if count == 1 else f"{number(count)} tests"
        company = " and more while processors are idle" if has_company else ""
        self.say(f"{tests} ({', '.join(lanes)}), {slots} processes at once{company};"
                 f" about {clock(seconds)} minutes {source}")

    def add(self, result):
        self.results[result.name] = result
        if result.outcome == FAILED:
            self.say(f"---- FAILED {result.name} ({result.lane}, {result.seconds:.1f} s)"
                     f"{': ' if result.reason else ''}{result.reason}")
            if result.output:
                self.say(result.output)
            self.say("----")

    def add_overhead(self, lane, seconds):
        self.overhead[lane] = self.overhead.get(lane, 0.0) + seconds

    def progress(self, doing):
        """One line that a terminal shows anew, or one now and then."""
        now = time.monotonic()
        if now - self.said < (0.2 if self.is_terminal else EVERY_SECONDS):
            return
        self.said = now
        failed = sum(result.outcome == FAILED for result in self.results.values())
        line = f"{number(len(self.results))} of {number(self.count)} tests, {clock(now - self.began)} of about " \
               f"{clock(self.expected)} minutes"
        if failed:
            line += f", {failed} FAILED"
        line += ": " + ", ".join(doing)
        if not self.is_terminal:
            self.say(line)
            return
        self._clear()
        print(line[:self._columns() - 1], end="", file=self.out, flush=True)
        self.has_line = True

    def _columns(self):
        try:
            return os.get_terminal_size(self.out.fileno()).columns or 80
        except OSError:
            return 80

    def _clear(self):
        if self.has_line:
            print("\r\033[K", end="", file=self.out)
            self.has_line = False

    def end(self, seconds, slowest, interrupted):
        results = list(self.results.values())
        failed = [result for result in results if result.outcome == FAILED]
        skipped = [result for result in results if result.outcome == SKIPPED]
        self._lanes(results)
        self._slowest(results, slowest)
        if slowest > 10:
            self._causes(results)
        if skipped:
            self.say(f"\n{number(len(skipped))} skipped:")
            for result in skipped:
                self.say(f"  {result.name}{why(result)}")
        if failed:
            self.say(f"\n{number(len(failed))} FAILED:")
            for result in failed:
                self.say(f"  {result.name} ({result.lane}){why(result)}")
        verdict = "interrupted" if interrupted else "FAILED" if failed else "passed"
        self.say(f"\n{verdict}: {number(len(results))} tests in {clock(seconds)} minutes,"
                 f" {number(len(failed))} failed, {number(len(skipped))} skipped")

    def _lanes(self, results):
        self.say(f"\n{'lane':<20}{'tests':>7}{'skipped':>9}{'failed':>8}{'minutes':>9}{'budget':>8}")
        over = []
        for lane in sorted({result.lane for result in results}):
            of_lane = [result for result in results if result.lane == lane]
            minutes = (sum(result.seconds for result in of_lane) + self.overhead.get(lane, 0.0)) / 60
            budget = MINUTES.get(lane)
            counts = [sum(result.outcome == outcome for result in of_lane) for outcome in (SKIPPED, FAILED)]
            self.say(f"{lane:<20}{number(len(of_lane)):>7}{counts[0]:>9}{counts[1]:>8}{clock(minutes * 60):>9}"
                     f"{clock(budget * 60) if budget else '-':>8}")
            if budget and minutes > budget:
                over.append(lane)
        for lane in over:
            self.say(f"warning: the lane {lane} took longer than its budget (CONTRIBUTING.md, Tests)")

    def _slowest(self, results, count):
        self.say(f"\nthe {count} slowest, in seconds:")
        for result in sorted(results, key=lambda result: -result.seconds)[:count]:
            self.say(f"{result.seconds:>8.1f}  {result.lane:<18}{result.name}")

    def _causes(self, results):
        """Seconds of all processes together. A second is counted once: a test of a group counts there alone."""
        causes = {"starting and ending processes": sum(self.overhead.values())}
        for result in results:
            left = result.seconds
            for cause, seconds in result.causes.items():
                words = cause.replace("_", " ")
                causes[words] = causes.get(words, 0.0) + seconds
                left -= seconds
            left = max(0.0, left)
            group = group_of(result)
            if group:
                causes[group] = causes.get(group, 0.0) + left
                continue
            busy = min(left, result.cpu)
            for cause, seconds in ((COMPUTING, busy), (WAITING, left - busy)):
                causes[cause] = causes.get(cause, 0.0) + seconds
        self.say("\nseconds by cause, of all processes together:")
        for cause, seconds in sorted(causes.items(), key=lambda entry: -entry[1]):
            self.say(f"{seconds:>8.1f}  {cause}")


def group_of(result):
    if result.name.startswith("Gallery."):
        return "the gallery of idem check"
    if result.lane == "crash":
        return "kills (the crash lane)"
    if "ifferential" in result.name:
        return "differential runs"
    if result.lane in ("browser", "deploy", "install", "servers"):
        return f"the lane {result.lane}"
    return None
