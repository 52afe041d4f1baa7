"""What earlier runs took, in a file of the build folder: by it the longest begins first, and a run tells its length."""
import json
import os

# Seconds of a test that has never run here (measured on two cores): by its lane (UNKNOWN), or by a part of its name if
# it takes far longer than the lane's others (LONG). Without LONG such a test might begin last, and all would wait for
# it. The first part that fits counts.
UNKNOWN = {"unit": 0.01, "config": 0.02, "house": 0.2, "store_conformance": 0.15, "library": 0.2, "live": 0.6,
           "crash": 4.0, "smoke": 1.0, "browser": 20.0, "deploy": 20.0, "install": 60.0, "servers": 5.0}
LONG = {"Gallery.": 200.0, "StoreCopy.": 120.0, "Browser.unknown": 75.0, "Browser.console": 70.0,
        "Install.AProgram": 65.0, "StripeClient.S13_V05_a_duplicate": 60.0,
        "Differential.T58_a_store_answers_as_the_reference_does/d": 50.0, "Jobs.V29_a_thousand": 45.0,
        "Browser.messages": 40.0, "Browser.routes": 40.0, "CopyUnderLoad.": 20.0, "EachStore.": 20.0,
        "RandomKills.": 15.0, "StoreHealth.": 15.0, "CrashedApprovals.": 11.0, "Differential.": 10.0,
        "OurGateway.": 8.0, "/dynamodb": 0.7}


class Times:
    def __init__(self, path):
        self.path = path
        self.tests = {}
        self.wholes = {}
        try:
            with open(path, encoding="utf-8") as file:
                stored = json.load(file)
            self.tests = stored["tests"]
            self.wholes = stored["wholes"]
        except (OSError, ValueError, KeyError):
            pass  # The first run, or a file of another form.

    def of(self, name, lane):
        if name in self.tests:
            return self.tests[name]
        return next((seconds for part, seconds in LONG.items() if part in name), UNKNOWN.get(lane, 1.0))

    def record(self, results, key, seconds):
        """`key`: which part of the tests ran; `seconds` is None when the run was interrupted."""
        for result in results:
            self.tests[result.name] = round(result.seconds, 3)
        if seconds is not None:
            self.wholes[key] = round(seconds, 1)
        new = f"{self.path}.new"
        with open(new, "w", encoding="utf-8") as file:
            json.dump({"tests": self.tests, "wholes": self.wholes}, file, indent=0)
        os.replace(new, self.path)
