"""What the runner makes of tests that fail, abort, hang, skip or end their process: those of sample.cpp."""
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
import types
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.dont_write_bytecode = True
sys.path.insert(0, str(HERE))

from idle import Idle
from schedule import IDLE_PROCESSORS, IDLE_SECONDS, MOST_FOR_EACH_SLOT, Schedule

SAMPLE = pathlib.Path(os.environ["IDEM_BIN_DIR"]) / "runner_sample"


class Runner(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.lines = []

    def add(self, name, command, properties="LABELS unit"):
        self.lines.append(f"add_test([=[{name}]=] {command})\n"
                          f"set_tests_properties([=[{name}]=] PROPERTIES {properties})\n")

    def add_tests(self, *names, timeout=60, more=""):
        for name in names:
            self.add(name, f"[=[{SAMPLE}]=] [=[--gtest_filter={name}]=]", f"LABELS unit TIMEOUT {timeout} {more}")

    def start(self, *arguments):
        (self.folder / "CTestTestfile.cmake").write_text("".join(self.lines))
        return subprocess.Popen([sys.executable, HERE / "run", self.folder, *arguments], stdout=subprocess.PIPE,
                                stderr=subprocess.STDOUT, text=True)

    def run_all(self, *arguments):
        """The exit code and the output."""
        runner = self.start(*arguments)
        output, _ = runner.communicate(timeout=60)
        return runner.returncode, output

    def assert_failed(self, output, name, reason=""):
        self.assertIn(f"---- FAILED {name} (", output)
        summary = output[output.index(" FAILED:\n"):]
        lines = [line for line in summary.splitlines() if line.startswith(f"  {name} (")]
        self.assertEqual(len(lines), 1, output)
        self.assertIn(reason, lines[0])

    def assert_count(self, output, tests, failed, skipped=0):
        self.assertRegex(output, rf": {tests} tests in [0-9:]+ minutes, {failed} failed, {skipped} skipped\n$")

    def test_many_tests_run_in_one_process(self):
        self.add_tests("Shared.first", "Shared.second")
        code, output = self.run_all()
        self.assertEqual(code, 0, output)
        self.assert_count(output, 2, 0)

    def test_tests_that_pass_end_with_0(self):
        self.add_tests("Passing.one", "Passing.two", "Passing.three", "Deadly.dies", "Unfinished.line")
        code, output = self.run_all()
        self.assertEqual(code, 0, output)
        self.assert_count(output, 5, 0)
        self.assertRegex(output, r"(?m)^unit +5 +0 +0 ")

    def test_a_failing_test_fails_the_run_and_shows_its_output(self):
        self.add_tests("Passing.one", "Failing.fails", "Failing.passes")
        code, output = self.run_all()
        self.assertEqual(code, 1)
        self.assert_failed(output, "Failing.fails", ": Expected equality")
        self.assertIn("words of the failure", output)
        self.assert_count(output, 3, 1)

    def test_an_aborting_test_is_named_and_the_rest_run(self):
        self.add_tests("Passing.one", "Aborting.aborts", "Aborting.passes", "Passing.two", "Failing.fails")
        code, output = self.run_all("--jobs", "1")
        self.assertEqual(code, 1)
        self.assert_failed(output, "Aborting.aborts", "ended by SIGABRT")
        self.assertIn("words before the end", output)
        self.assert_failed(output, "Failing.fails")
        self.assert_count(output, 5, 2)

    def test_a_test_that_ends_the_process_without_an_error_has_failed(self):
        self.add_tests("Exiting.exits", "Exiting.passes")
        code, output = self.run_all()
        self.assertEqual(code, 1)
        self.assert_failed(output, "Exiting.exits", "the program ended in the middle of it")
        self.assert_count(output, 2, 1)

    def test_a_hanging_test_is_named_and_the_rest_run(self):
        self.add_tests("Passing.one", "Hanging.hangs", "Hanging.passes", timeout=1)
        code, output = self.run_all()
        self.assertEqual(code, 1)
        self.assert_failed(output, "Hanging.hangs", "did not end within 1 s")
        self.assertIn("words before the silence", output)
        self.assert_count(output, 3, 1)

    def test_a_test_that_writes_without_an_end_is_ended_and_one_long_line_is_no_trouble(self):
        self.add_tests("Endless.line")
        self.add_tests("Endless.output", "Passing.one", timeout=1)
        code, output = self.run_all()
        self.assertEqual(code, 1)
        self.assert_failed(output, "Endless.output", "did not end within 1 s")
        self.assert_count(output, 3, 1)

    def test_a_process_that_ends_badly_after_its_tests_names_the_one_to_blame(self):
        self.add_tests("BadEnd.ends_with_a_code", "BadEnd.passes", "Passing.one")
        code, output = self.run_all()
        self.assertEqual(code, 1)
        self.assert_failed(output, "BadEnd.ends_with_a_code", "ended with code 23")
        self.assert_count(output, 3, 1)

    def test_a_suite_that_cannot_be_set_up_fails_and_the_rest_run(self):
        self.add_tests("NoSetUp.one", "NoSetUp.two", "Passing.one")
        code, output = self.run_all()
        self.assertEqual(code, 1)
        for name in ("NoSetUp.one", "NoSetUp.two"):
            self.assert_failed(output, name, "the program ran no test: ended by SIGABRT")
        self.assert_count(output, 3, 2)

    def test_a_test_that_the_program_does_not_have_fails(self):
        self.add_tests("Passing.one", "Passing.gone")
        code, output = self.run_all()
        self.assertEqual(code, 1)
        self.assert_failed(output, "Passing.gone", "the program ran no test")

    def test_skipped_tests_are_counted_and_named(self):
        self.add_tests("Passing.one", "Skipping.skips")
        self.add("Script.skips", "sh -c [=[echo '# SKIP no browser']=]",
                 "LABELS browser SKIP_REGULAR_EXPRESSION [=[# SKIP no browser]=]")
        code, output = self.run_all()
        self.assertEqual(code, 0, output)
        self.assert_count(output, 3, 0, 2)
        self.assertIn("2 skipped:\n", output)
        self.assertIn("\n  Skipping.skips: nothing to ask here\n", output)
        self.assertRegex(output, r"(?m)^browser +1 +1 +0 ")

    def test_tests_of_parameters_and_types_have_their_own_results(self):
        self.add_tests("Few/OfNumbers.are_not_two/0", "Few/OfNumbers.are_not_two/1", "Few/OfNumbers.are_not_two/2",
                       "OfTypes/0.are_small", "OfTypes/1.are_small")
        code, output = self.run_all()
        self.assertEqual(code, 1)
        self.assert_failed(output, "Few/OfNumbers.are_not_two/1")
        self.assert_failed(output, "OfTypes/0.are_small")
        self.assert_count(output, 5, 2)

    def test_the_same_test_in_two_environments_is_two_tests(self):
        for kind in ("a", "b"):
            self.add(f"{kind}/Passing.one", f"[=[{SAMPLE}]=] --gtest_filter=Passing.one",
                     f"LABELS live ENVIRONMENT KIND={kind}")
        code, output = self.run_all()
        self.assertEqual(code, 0, output)
        self.assert_count(output, 2, 0)

    def test_tests_of_types_that_have_the_name_of_their_suite_alone_keep_their_results(self):
        for test in ("are_small", "are_large"):
            self.add("OfTypes/int.", f"[=[{SAMPLE}]=] [=[--gtest_filter=OfTypes/0.{test}]=]", "LABELS unit TIMEOUT 60")
        code, output = self.run_all()
        self.assertEqual(code, 1)
        self.assert_failed(output, "OfTypes/int.are_small")
        self.assert_failed(output, "OfTypes/int.are_large", "the program ran no test")
        self.assert_count(output, 2, 2)

    def test_no_tests_is_an_error(self):
        code, output = self.run_all()
        self.assertEqual((code, output), (2, "FAILED: no tests found\n"))
        self.add_tests("Passing.one")
        code, output = self.run_all("--lane", "library")
        self.assertEqual(code, 2)
        self.assertIn("the lane library has no tests", output)
        code, output = self.run_all("--only", "Nothing")
        self.assertEqual((code, output), (2, "FAILED: no tests found\n"))

    def test_a_program_that_is_not_built_is_an_error(self):
        self.add_tests("Passing.one")
        self.add("Script.is_missing", "/nothing/here")
        self.assertEqual(self.run_all(), (2, "FAILED: the program of Script.is_missing is not built\n"))
        self.lines.pop()
        self.add("test_live_NOT_BUILT", "test_live_NOT_BUILT")
        code, output = self.run_all()
        self.assertEqual((code, output), (2, "FAILED: not built: test_live\n"))
        for part in (("--lane", "unit"), ("--only", "Passing")):
            code, output = self.run_all(*part)
            self.assertEqual(code, 0, output)

    def test_a_command_that_fails_is_a_failed_test(self):
        self.add("Script.fails", "sh -c [=[echo its words; exit 3]=]")
        code, output = self.run_all()
        self.assertEqual(code, 1)
        self.assert_failed(output, "Script.fails", "ended with code 3")
        self.assertIn("its words", output)

    def test_a_fixture_is_set_up_before_its_users_and_cleaned_up_behind_them(self):
        def note(word):
            return f"sh -c [=[echo {word} >>{self.folder}/order]=]"
        self.add("Servers.Start", note("start"), "FIXTURES_SETUP servers")
        self.add("Servers.Stop", note("stop"), "FIXTURES_CLEANUP servers")
        for _ in range(2):
            self.add(f"User.{len(self.lines)}", note("use"), "LABELS live FIXTURES_REQUIRED servers")
        self.add_tests("Passing.one")
        code, output = self.run_all()
        self.assertEqual(code, 0, output)
        self.assertEqual((self.folder / "order").read_text().split(), ["start", "use", "use", "stop"])
        self.assert_count(output, 5, 0)
        (self.folder / "order").unlink()
        self.assertEqual(self.run_all("--lane", "unit")[0], 0)
        self.assertFalse((self.folder / "order").exists())

    def test_users_of_a_fixture_that_cannot_be_set_up_fail(self):
        self.add("Servers.Start", "false", "FIXTURES_SETUP servers")
        self.add_tests("Passing.one", "Passing.two", more="FIXTURES_REQUIRED servers")
        self.add_tests("Passing.three")
        code, output = self.run_all()
        self.assertEqual(code, 1)
        for name in ("Passing.one", "Passing.two"):
            self.assert_failed(output, name, "Servers.Start failed")
        self.assert_count(output, 4, 3)

    def test_what_a_test_leaves_does_not_outlive_the_run(self):
        self.add_tests("Leaving.leaves_a_process")
        code, output = self.run_all()
        self.assertEqual(code, 0, output)
        pid = int((self.folder / "left_process").read_text())
        self.assertFalse(pathlib.Path(f"/proc/{pid}").exists())

    def test_an_interrupt_ends_the_tests_and_stops_the_servers(self):
        self.add("Servers.Start", "true", "FIXTURES_SETUP servers")
        self.add("Servers.Stop", f"touch [=[{self.folder}/stopped]=]", "FIXTURES_CLEANUP servers")
        self.add("Script.waits", f"sh -c [=[echo $$ >{self.folder}/pid.new; mv {self.folder}/pid.new "
                 f"{self.folder}/pid; exec sleep 1000]=]", "LABELS live FIXTURES_REQUIRED servers")
        runner = self.start()
        while not (self.folder / "pid").exists():
            self.assertIsNone(runner.poll())
            time.sleep(0.01)
        runner.send_signal(signal.SIGINT)
        output, _ = runner.communicate(timeout=30)
        self.assertEqual(runner.returncode, 130, output)
        self.assertIn("\ninterrupted: ", output)
        self.assertFalse(pathlib.Path(f"/proc/{(self.folder / 'pid').read_text().strip()}").exists())
        self.assertTrue((self.folder / "stopped").exists())

    def test_the_times_of_a_run_tell_how_long_the_next_one_takes(self):
        self.add_tests("Passing.one", "Passing.two")
        self.assertIn("(estimated)", self.run_all()[1])
        self.assertEqual(set(json.loads((self.folder / "test-times.json").read_text())["tests"]),
                         {"Passing.one", "Passing.two"})
        self.assertIn("(as the last time)", self.run_all()[1])


class Seconds:
    """A machine of two processors on which a test lets time pass."""

    def __init__(self):
        self.passed = self.idle = 0.0

    def run(self, seconds, idle_processors):
        self.passed += seconds
        self.idle += seconds * idle_processors

    def counts(self):
        return Idle(read=lambda: self.idle, now=lambda: self.passed)


class Company(unittest.TestCase):
    """How many run at once."""

    def schedule(self, *slots, jobs=2, most=None):
        self.machine = Seconds()
        commands = [types.SimpleNamespace(name=f"Script.{number}", lane="live", fixtures=(), sets_up=(), slots=count)
                    for number, count in enumerate(slots)]
        plan = types.SimpleNamespace(groups=[], commands=commands, set_up=[], clean_up=[])
        return Schedule(plan, types.SimpleNamespace(of=lambda name, lane: 1.0), jobs, self.machine.counts(), most)

    def test_one_more_begins_whenever_processors_were_idle(self):
        schedule = self.schedule(*[1] * 20)
        self.assertTrue(schedule.next() and schedule.next())
        self.assertIsNone(schedule.next())
        self.machine.run(IDLE_SECONDS / 2, 2.0)
        self.assertIsNone(schedule.next(), "too early")
        self.machine.run(IDLE_SECONDS / 2, 2.0)
        self.assertTrue(schedule.next())
        self.assertIsNone(schedule.next(), "what it needs is not known yet")
        self.machine.run(IDLE_SECONDS, IDLE_PROCESSORS / 2)
        self.assertIsNone(schedule.next(), "the processors are busy")
        while len(schedule.running) < 2 * MOST_FOR_EACH_SLOT:
            self.machine.run(IDLE_SECONDS, 1.0)
            self.assertTrue(schedule.next())
        self.machine.run(IDLE_SECONDS, 2.0)
        self.assertIsNone(schedule.next(), "their memory")

    def test_one_that_wants_all_processors_runs_alone(self):
        schedule = self.schedule(1, 2, 1)
        first, second = schedule.next(), schedule.next()
        self.assertEqual((first.slots, second.slots), (1, 1))
        self.machine.run(IDLE_SECONDS, 2.0)
        self.assertIsNone(schedule.next(), "it would have company")
        schedule.ended(first)
        schedule.ended(second)
        alone = schedule.next()
        self.assertEqual(alone.slots, 2)
        self.machine.run(IDLE_SECONDS, 2.0)
        self.assertIsNone(schedule.next())

    def test_on_one_processor_it_runs_alone_too(self):
        schedule = self.schedule(1, 2, jobs=1)
        first = schedule.next()
        self.assertEqual(first.slots, 1)
        self.machine.run(IDLE_SECONDS, 1.0)
        self.assertIsNone(schedule.next())
        schedule.ended(first)
        self.assertEqual(schedule.next().slots, 2)

    def test_nobody_gets_company_where_a_number_was_asked_for(self):
        schedule = self.schedule(1, 1, jobs=1, most=1)
        self.assertTrue(schedule.next())
        self.machine.run(IDLE_SECONDS, 2.0)
        self.assertIsNone(schedule.next())


if __name__ == "__main__":
    unittest.main()
