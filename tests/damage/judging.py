"""What a store does after a damage: before a start, at it, to the retries of each confirmed key, and at the next start.
"""
import collections
import json
import pathlib
import re

from api import ask_all
from damages import what_nothing_tells
from gateway import Gateway

# What a case may come to, the best first. The rest are faults.
ANSWERED = "answers right"
REFUSED = "refused at the start"
SOME_503 = "503 for some keys"
TAIL = "the last second is lost"
UNNOTICED = "cannot be noticed"
FAULTS = ("OTHER ANSWER", "RAN AGAIN", "CRASHED LATER", "CRASHED AT THE START", "NO ANSWER", "NO LOCATED TEXT",
          "CHANGED BY A CHECK", "JUDGED OTHERWISE")
NEW_KEYS = 3

Verdict = collections.namedtuple("Verdict", "result faults detail")


class Judge:
    """Of one case at a time, in the place of its process."""

    def __init__(self, place, api):
        self.place, self.api = place, api
        place.folder.mkdir(parents=True, exist_ok=True)
        place.configure(api.url)

    def judge(self, image, case):
        self.faults, self.detail = [], []
        image.copy_to(self.place)
        case.apply(self.place.files)
        before = _state_of(self.place.files)
        said = self._ask_commands()
        if _state_of(self.place.files) != before:
            self._fault("CHANGED BY A CHECK", "a command that only looks changed a file")
        gateway = Gateway(self.place)
        if gateway.address is None:
            result = self._refused(gateway)
        else:
            result = self._served(image, gateway)
        self._compare(said, result)
        lost = {"RAN AGAIN", "OTHER ANSWER"}
        if (why := what_nothing_tells(case)) and set(self.faults) <= lost:
            return Verdict(UNNOTICED if self.faults else result, [], why)
        return Verdict(result, self.faults, "; ".join(self.detail))

    def _fault(self, name, detail):
        self.faults.append(name)
        self.detail.append(detail)

    # ---- before the start ----

    def _ask_commands(self):
        """Whether each of the commands finds the store good."""
        said = {}
        for name, words in {"store check": ("store", "check", self.place.url()),
                            "config check": ("config", "check", "--ask-store", *self.place.settings()),
                            "doctor": ("doctor", "--json", *self.place.settings())}.items():
            code, output = self.place.run(*words)
            if code is None or code < 0 or code >= 128:
                self._fault("CRASHED AT THE START", f"{name} ended with {code}: {output[-300:]}")
            elif name == "doctor":
                said[name] = not [one for one in _checks_in(output)
                                  if one["check"] == "store" and one["result"] == "problem"]
            else:
                said[name] = code == 0
            if name == "store check":
                self.check_output = output
        return said

    def _compare(self, said, result):
        """`store check` reads all; the others and the start look at as much as each other."""
        for name, is_good in said.items():
            if result == REFUSED and is_good:
                self._fault("JUDGED OTHERWISE", f"{name} finds it good, and the start refuses it")
            if result != REFUSED and not is_good and name != "store check":
                self._fault("JUDGED OTHERWISE", f"{name} finds it bad, and the start takes it")
        if result == SOME_503 and said.get("store check"):
            self._fault("JUDGED OTHERWISE", "store check finds it good, and keys are answered 503")

    # ---- the start ----

    def _refused(self, gateway):
        text = gateway.text()
        code = gateway.code
        if code is None:
            gateway.kill()
            self._fault("NO ANSWER", "the start neither serves nor ends")
        elif code < 0:
            self._fault("CRASHED AT THE START", f"signal {-code}: {text[-300:]}")
        elif str(self.place.path) not in text:
            self._fault("NO LOCATED TEXT", text[-300:])
        self.detail.append(re.sub(rf"{re.escape(str(self.place.files))}/?", "", text.strip().split("\n")[-1])[:240])
        self._note_runs({})
        return REFUSED

    def _served(self, image, gateway):
        results = [self._retry(image, gateway, "the first start")]
        new = {f"new-{n}": f"/pay/{n}" for n in range(NEW_KEYS)}
        answers = ask_all(gateway.address, new)
        if any(answer is None for answer in answers.values()):
            self._fault("CRASHED LATER" if gateway.code is not None else "NO ANSWER",
                        f"a new key: {gateway.text()[-300:]}")
        code = gateway.stop()
        if code != 0:
            self._fault("CRASHED LATER", f"ends with {code}: {gateway.text()[-300:]}")
        self.api.runs()
        again = Gateway(self.place)
        if again.address is None:
            # A start that served may be followed by one that refuses, and by none that crashes.
            self._refused(again)
            return max(results, key=_rank)
        results.append(self._retry(image, again, "the second start"))
        again.kill()
        return max(results, key=_rank)

    def _retry(self, image, gateway, when):
        """Each confirmed key once more."""
        answers = ask_all(gateway.address, image.paths)
        ran = self.api.runs()
        if gateway.code is not None:
            self._fault("CRASHED LATER", f"{when}: {gateway.text()[-300:]}")
        refused, wrong, silent = [], [], []
        for key, answer in answers.items():
            if answer is None:
                silent.append(key)
            elif answer.said == image.right[key] or key in ran:
                continue
            elif answer.status == 503:
                refused.append(key)
            else:
                wrong.append(key)
        if silent and gateway.code is None:
            self._fault("NO ANSWER", f"{len(silent)} keys at {when}")
        if refused:
            codes = sorted({answers[key].code for key in refused})
            self.detail.append(f"{len(refused)} of {len(answers)} keys 503 {', '.join(codes)} at {when}")
        lost = self._note_runs(image.tail, ran, when)
        if others := [key for key in wrong if key not in image.tail]:
            key = others[0]
            self._fault("OTHER ANSWER", f"{len(others)} keys at {when}, such as {key}: {answers[key]}, not "
                                        f"{image.right[key][0]}")
        elif wrong:
            lost = True
        return TAIL if lost else SOME_503 if refused else ANSWERED

    def _note_runs(self, tail, ran=None, when="the start"):
        """Whether keys of the tail ran again; others are a fault."""
        ran = self.api.runs() if ran is None else ran
        if again := [key for key in ran if key not in tail]:
            self._fault("RAN AGAIN", f"{len(again)} keys at {when}, such as {sorted(again)[0]}")
        if lost := [key for key in ran if key in tail]:
            self.detail.append(f"{len(lost)} of the last {len(tail)} keys ran again at {when}")
        return bool(lost)


def _rank(result):
    return (ANSWERED, REFUSED, SOME_503, TAIL).index(result)


def _checks_in(output):
    """Of `idem doctor --json`; its log may come first."""
    return json.loads(output[output.index('{"checks"'):].strip().split("\n")[0])["checks"]


def _state_of(folder):
    """Names, lengths and times of change of all files."""
    facts = {}
    for path in sorted(pathlib.Path(folder).rglob("*")):
        state = path.stat()
        facts[str(path)] = (state.st_size if path.is_file() else 0, state.st_mtime_ns)
    return facts
