"""Tests that need a process of their own, and why. Mend a test rather than name it here."""
import fnmatch

# (program, pattern of GoogleTest's names, reason)
ALONE = ()


def runs_alone(program, name):
    return any(program == one and fnmatch.fnmatchcase(name, pattern) for one, pattern, _ in ALONE)


def stale(groups):
    """Entries that no test of these programs fits."""
    names = {}
    for group in groups:
        names.setdefault(group.label, set()).update(group.tests)
    return [f"{program} {pattern}" for program, pattern, _ in ALONE
            if program in names and not any(fnmatch.fnmatchcase(name, pattern) for name in names[program])]
