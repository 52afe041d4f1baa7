"""Stores as gateways leave them: the files, and what a retry of each confirmed key is answered."""
import pathlib
import shutil
import threading
import time

from api import Api, ask_all
from gateway import Gateway, Place

# The ways in which the last gateway ends. A start after "killed" ends the attempts that were under way.
ENDS = ("killed", "stopped")
# Longer than a store takes to note how far it is. What is confirmed after that is the tail: a loss of it may look like
# a crash of the machine before its confirmation.
NOTED_SECONDS = 2.0
TAIL_SECONDS = 0.05
HELD = 4


class Image:
    """`paths`: {key: path} of the confirmed keys; `right`: what their retries are answered; `tail`: the last keys."""

    def __init__(self, store, end, folder, older):
        self.store, self.end, self.folder, self.older = store, end, folder, older
        self.paths, self.tail, self.right, self.ran = {}, set(), {}, {}

    def copy_to(self, place):
        shutil.rmtree(place.files, ignore_errors=True)
        shutil.copytree(self.folder, place.files)


def make_image(store, end, keys, folder, program):
    """Three gateways, one after the other: the first two stop, so that the last one finds files of all kinds. The store
    of the second one is made of a backup, so that no log has what is older."""
    folder = pathlib.Path(folder)
    place = Place(folder / "made", store, program)
    place.files.mkdir(parents=True)
    api = Api()
    try:
        place.configure(api.url)
        image = Image(store, end, folder / "image", folder / "older")
        for part in range(3):
            _serve(place, api, image, keys // 3, part)
            if part == 0:
                _make_of_a_backup(place)
        image.ran = api.runs()
        shutil.copytree(place.files, image.folder)
        api.let_go.set()
        image.right = _right_answers(image, Place(folder / "right", store, program), api)
    finally:
        api.close()
    return image


def _make_of_a_backup(place):
    backup = str(place.folder / "backup")
    for words in (("backup", place.url(), backup), ("restore", backup, place.url(), "--replace")):
        code, output = place.run("store", *words)
        if code != 0:
            raise AssertionError(f"store {words[0]} ends with {code}: {output}")
    for old in place.files.glob("*.before-restore-*"):
        shutil.rmtree(old) if old.is_dir() else old.unlink()


def _serve(place, api, image, keys, part):
    gateway = Gateway(place)
    if gateway.address is None:
        raise AssertionError(f"the gateway does not serve: {gateway.text()}")
    lost = keys // 8
    first = {f"done-{part}-{n}": f"/pay/{n}" for n in range(keys - lost)}
    first |= {f"lost-{part}-{n}": f"/lose/{n}" for n in range(lost // 2)}
    later = {f"later-{part}-{n}": f"/later/{n}" for n in range(lost - lost // 2)}
    _confirm(image, gateway, first | later)
    _until_done(gateway, later)
    _settle_one(gateway)
    if part < 2:
        if gateway.stop() != 0:
            raise AssertionError(f"the gateway does not stop: {gateway.text()}")
        shutil.rmtree(image.older, ignore_errors=True)
        shutil.copytree(place.files, image.older)
        return
    if image.end == "killed":
        _hold(image, gateway, api)
    _make_tail(image, gateway)
    if image.end == "killed":
        gateway.kill()
    elif gateway.stop() != 0:
        raise AssertionError(f"the gateway does not stop: {gateway.text()}")


def _confirm(image, gateway, paths):
    answers = ask_all(gateway.address, paths)
    missing = [key for key, answer in answers.items() if answer is None]
    if missing:
        raise AssertionError(f"no answer to {missing[:3]}: {gateway.text()}")
    image.paths |= paths


def _until_done(gateway, later):
    """Until each request that was accepted for later has its answer."""
    deadline = time.monotonic() + 60
    while any(answer.status != 201 for answer in ask_all(gateway.address, later).values()):
        if time.monotonic() > deadline:
            raise AssertionError(f"not all was done later: {gateway.text()}")
        time.sleep(0.02)  # Only spares the processor.


def _settle_one(gateway):
    """An operator settles an unknown record, so that the store has evidence and a journal."""
    unknown = gateway.operate("GET", "/v1/keys?state=unknown&limit=1")["keys"][0]
    gateway.operate("POST", f"/v1/keys/{unknown['ref']}/resolve", {
        "as": "completed", "fence": unknown["fence"], "evidence": "the provider's list", "reason": "it was done",
        "by": "operator",
        "response": {"status": 201, "headers": [["Content-Type", "application/json"]], "body_b64": "e30="}})


def _hold(image, gateway, api):
    """Requests that are under way when the gateway is killed."""
    held = {f"held-{n}": f"/hold/{n}" for n in range(HELD)}
    for key, path in held.items():
        threading.Thread(target=ask_all, args=(gateway.address, {key: path}), daemon=True).start()
    for _ in held:
        if not api.held.acquire(timeout=60):
            raise AssertionError("no request reached the API")
    image.paths |= held


def _make_tail(image, gateway):
    deadline = time.monotonic() + NOTED_SECONDS
    number = 0
    while time.monotonic() < deadline:
        key = f"tail-{number}"
        _confirm(image, gateway, {key: f"/pay/{number}"})
        image.tail.add(key)
        number += 1
        time.sleep(TAIL_SECONDS)  # The tail takes a time, not a number of keys.


def _right_answers(image, place, api):
    """Of an undamaged copy, whose answers must be those that a client would call right."""
    place.files.parent.mkdir(parents=True)
    image.copy_to(place)
    place.configure(api.url)
    gateway = Gateway(place)
    if gateway.address is None:
        raise AssertionError(f"the undamaged store is refused: {gateway.text()}")
    answers = ask_all(gateway.address, image.paths)
    gateway.kill()
    for key, answer in answers.items():
        kinds = (201,) if key.startswith(("done", "later", "tail")) else (201, 409)
        if answer is None or answer.status not in kinds:
            raise AssertionError(f"the undamaged store answers {key} with {answer}: {gateway.text()}")
    if again := api.runs():
        raise AssertionError(f"the undamaged store ran again: {again}")
    shutil.rmtree(place.folder)
    return {key: answer.said for key, answer in answers.items()}
