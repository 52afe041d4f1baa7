"""How much of the processors nobody uses."""
import time

LOOK_SECONDS = 1.0


def idle_and_all():
    with open("/proc/stat", encoding="ascii") as file:
        fields = [int(word) for word in file.readline().split()[1:9]]
    return fields[3] + fields[4], sum(fields)


class Machine:
    def __init__(self):
        self.last = idle_and_all()
        self.looked = time.monotonic()
        self.share = 0.0

    def idle_share(self):
        """Of the last second or so; 0 until that much has passed since forget()."""
        now = time.monotonic()
        if now - self.looked >= LOOK_SECONDS:
            idle, all_of_it = idle_and_all()
            self.share = (idle - self.last[0]) / max(1, all_of_it - self.last[1])
            self.last, self.looked = (idle, all_of_it), now
        return self.share

    def forget(self):
        """What has begun now shows after a second."""
        self.last, self.looked, self.share = idle_and_all(), time.monotonic(), 0.0
