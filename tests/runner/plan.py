"""What there is to run, as CTest knows it: one description for both.

CTest's file names a program and `--gtest_filter=NAME` for each test of GoogleTest. The tests of one program in one
environment are a group, whose tests a process may run one after another. Every other test is a command.
"""
import dataclasses
import json
import os
import re
import subprocess

FILTER = "--gtest_filter="
NOT_BUILT = "_NOT_BUILT"


class PlanError(Exception):
    """There is nothing to run, and the text says why."""


@dataclasses.dataclass
class Group:
    program: str
    lane: str
    environment: dict
    timeout: float
    fixtures: tuple
    tests: dict = dataclasses.field(default_factory=dict)  # GoogleTest's name: CTest's.

    @property
    def label(self):
        return os.path.basename(self.program)


@dataclasses.dataclass
class Command:
    name: str
    lane: str
    argv: list
    environment: dict
    timeout: float
    fixtures: tuple
    slots: int = 1
    skip: object = None  # A compiled expression; output that has it tells a skipped test.
    sets_up: tuple = ()
    cleans_up: tuple = ()


@dataclasses.dataclass
class Plan:
    groups: list
    commands: list
    set_up: list
    clean_up: list

    def count(self):
        return sum(len(group.tests) for group in self.groups) + len(self.commands)


def ask_ctest(build):
    """CTest's list. It first runs each program that is newer than the list of its tests."""
    asked = subprocess.run(["ctest", "--test-dir", build, "--show-only=json-v1"], capture_output=True, text=True)
    start = asked.stdout.find("{")
    if asked.returncode != 0 or start < 0:
        raise PlanError(f"ctest does not list the tests of {build}:\n{asked.stdout}{asked.stderr}")
    return json.loads(asked.stdout[start:])["tests"]


def read_plan(build, lanes=None, name=None):
    """`lanes`: those alone; `name`: an expression that a test's name must have."""
    groups, commands, set_up, clean_up, not_built = {}, [], [], [], []
    wanted = re.compile(name) if name else None
    for test in ask_ctest(build):
        properties = {entry["name"]: entry["value"] for entry in test.get("properties", [])}
        if properties.get("DISABLED"):
            continue
        lane = (properties.get("LABELS") or ["other"])[0]
        sets_up = tuple(properties.get("FIXTURES_SETUP", ()))
        cleans_up = tuple(properties.get("FIXTURES_CLEANUP", ()))
        is_fixture = bool(sets_up or cleans_up)
        if test["name"].endswith(NOT_BUILT):
            not_built.append(test["name"].removesuffix(NOT_BUILT))
            continue
        if not is_fixture and ((lanes and lane not in lanes) or (wanted and not wanted.search(test["name"]))):
            continue
        argv = test.get("command")
        if not argv:
            raise PlanError(f"the program of {test['name']} is not built")
        shared = {
            "lane": "servers" if is_fixture else lane,
            "environment": dict(one.split("=", 1) for one in properties.get("ENVIRONMENT", ())),
            "timeout": properties.get("TIMEOUT", 1500),
            "fixtures": tuple(properties.get("FIXTURES_REQUIRED", ())),
        }
        names = [word.removeprefix(FILTER) for word in argv if word.startswith(FILTER)]
        if names and not is_fixture:
            key = (argv[0], str(shared))
            group = groups.setdefault(key, Group(program=argv[0], **shared))
            # CMake leaves GoogleTest's words about the parameter in some names, and from 3.31 on only the suite of a
            # test of types. Two tests of one name would have one result.
            full = test["name"].partition("  # ")[0]
            group.tests[names[0]] = full + names[0].rpartition(".")[2] if full.endswith(".") else full
            continue
        skip = properties.get("SKIP_REGULAR_EXPRESSION")
        command = Command(name=test["name"], argv=argv, slots=int(properties.get("PROCESSORS", 1)),
                          skip=re.compile("|".join(skip)) if skip else None, sets_up=sets_up, cleans_up=cleans_up,
                          **shared)
        (set_up if sets_up else clean_up if cleans_up else commands).append(command)
    plan = Plan(list(groups.values()), commands, set_up, clean_up)
    check(plan, lanes, name, not_built)
    return keep_needed_fixtures(plan)


def check(plan, lanes, name, not_built):
    if not lanes and not name and not_built:
        raise PlanError("not built: " + ", ".join(sorted(set(not_built))))
    found = {group.lane for group in plan.groups} | {command.lane for command in plan.commands}
    for lane in lanes or ():
        if lane not in found or any(one == f"test_{lane}" for one in not_built):
            raise PlanError(f"the lane {lane} has no tests, or they are not built")
    if plan.count() == 0:
        raise PlanError("no tests found")


def keep_needed_fixtures(plan):
    needed = {name for one in plan.groups + plan.commands for name in one.fixtures}
    plan.set_up = [one for one in plan.set_up if needed & set(one.sets_up)]
    plan.clean_up = [one for one in plan.clean_up if needed & set(one.cleans_up)]
    return plan
