"""What became of each test."""
import dataclasses

PASSED, FAILED, SKIPPED = "passed", "failed", "skipped"


@dataclasses.dataclass
class Result:
    name: str
    lane: str
    outcome: str
    seconds: float
    cpu: float = 0.0
    output: str = ""
    reason: str = ""
    causes: dict = dataclasses.field(default_factory=dict)  # Seconds by what they went to.
