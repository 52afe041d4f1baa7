"""Decides which process runs when: the longest begins first, and servers begin before the tests that need them.

As many run at once as there are slots. But many tests wait for a server or for a lease to end, and leave processors
idle. So one more begins whenever more than IDLE_PROCESSORS were idle for IDLE_SECONDS. A fixed number above that of the
processors would be simpler, but then tests that compute ran at the same time, and tests that measure time failed.
"""
from command import CommandRun
from idle import Idle
from shard import Shard

# A shard takes about so long: long enough that starting its process costs little, short enough that the last ones end
# at about the same time.
SHARD_SECONDS = 12.0


def shards_of(group, times):
    """Neighbours stay together; a test that takes long gets a process of its own."""
    shards, names, seconds = [], [], 0.0
    for name, full in group.tests.items():
        takes = times.of(full, group.lane)
        if takes >= SHARD_SECONDS:
            shards.append(Shard(group, [name], takes))
            continue
        if names and seconds + takes > SHARD_SECONDS:
            shards.append(Shard(group, names, seconds))
            names, seconds = [], 0.0
        names.append(name)
        seconds += takes
    if names:
        shards.append(Shard(group, names, seconds))
    return shards


# Half a second is long beside the start of a gateway, and short beside a test that waits.
IDLE_SECONDS = 0.5
IDLE_PROCESSORS = 0.4
# Each test may start servers and gateways: their memory, not their time, sets this bound.
MOST_FOR_EACH_SLOT = 4


class Schedule:
    """The order of a plan. The commands that set up a fixture run first, those that clean it up after its last user."""

    def __init__(self, plan, times, slots, idle=None, most=None):
        """`most`: how many may run at once, however idle the processors are."""
        self.slots = slots
        self.most = most or slots * MOST_FOR_EACH_SLOT
        self.idle = idle or Idle()
        jobs = [shard for group in plan.groups for shard in shards_of(group, times)]
        jobs += [CommandRun(command, times.of(command.name, command.lane)) for command in plan.commands]
        # One that needs all slots comes last: waiting for them in between would leave slots empty.
        jobs.sort(key=lambda job: (job.slots, -job.expected))
        self.waiting = [CommandRun(command, times.of(command.name, "servers")) for command in plan.set_up] + jobs
        self.last = [CommandRun(command, times.of(command.name, "servers")) for command in plan.clean_up]
        self.unready = {name for command in plan.set_up for name in command.sets_up}
        self.running = []

    def seconds(self):
        """About how long all of it takes."""
        jobs = self.waiting + self.last
        longest = max((job.expected for job in jobs), default=0.0)
        # Most of the time of a test is waiting: so about two run on each processor.
        at_once = min(self.most, 2 * self.slots)
        return max(longest, sum(job.expected * job.slots for job in jobs) / at_once)

    def next(self):
        """A job that may start now, or None."""
        free = self._free()
        for index, job in enumerate(self.waiting):
            # A job that wants more slots than the machine has runs alone.
            has_room = min(job.slots, self.slots) <= free and (job.slots == 1 or len(self.running) < self.slots)
            if not has_room or self.unready & set(job.fixtures):
                continue
            self.running.append(self.waiting.pop(index))
            return job
        if not self.waiting and not self.running and self.last:
            # One after another, in the order of the plan.
            self.running.append(self.last.pop(0))
            return self.running[0]
        return None

    def _free(self):
        used = sum(job.slots for job in self.running)
        if used < self.slots:
            # What the processors did before these run says nothing.
            self.idle.begin()
            return self.slots - used
        # A job that asked for more than one slot gets no company beyond the slots.
        if used >= self.most or any(job.slots > 1 for job in self.running):
            return 0
        idle = self.idle.processors(IDLE_SECONDS)
        return 1 if idle is not None and idle > IDLE_PROCESSORS else 0

    def ended(self, job):
        """The jobs that can never run, because it should have set up what they need."""
        self.running.remove(job)
        command = getattr(job, "command", None)
        if command and command.sets_up:
            if job.has_failed:
                lost = [one for one in self.waiting if set(one.fixtures) & set(command.sets_up)]
                self.waiting = [one for one in self.waiting if one not in lost]
                return lost
            busy = [one.command for one in self.running + self.waiting if getattr(one, "command", None)]
            self.unready -= {name for name in command.sets_up
                             if not any(name in other.sets_up for other in busy)}
        return []

    def is_over(self):
        return not (self.waiting or self.running or self.last)

    def give_up(self):
        """Only what cleans up is left to do."""
        self.waiting = []
        self.running = []
