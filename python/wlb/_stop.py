"""Whether WLB asks the run to save and end, by the file that WLB_STOP_FILE names. coordinator/wlb/run/stop/stop_file.h has the format.

The file is empty until then. Rank 0 answers in the file of that name and ".step": it makes it at its first look, by which WLB knows
that it may ask, and writes there the step after which to stop, so far ahead that each rank has read it before. So all ranks stop after
the same step without a message between them.
"""
import collections
import math
import os
import time

RANKS_A_SECOND = 100  # that look at the file, of a run
LOOK_EVERY_S_LEAST, LOOK_EVERY_S_MOST = 1.0, 10.0
MARGIN_S = 3.0  # for a network file system to show on one node what was written on another, beside two looks
STEPS_TIMED = 16  # the shortest of so many steps counts
STEPS_AHEAD_LEAST, STEPS_AHEAD_MOST = 2, 1000000  # a rank may be one step ahead of rank 0
ERRORS_MOST = 10


def _variable(name, default):
    text = os.environ.get(name, "")
    return int(text[:9]) if text.isdigit() else default


def _open(path, flags):
    """Waits for nobody, also where it is a FIFO."""
    return os.open(path, flags | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK, 0o600)


def _read(path):
    try:
        descriptor = _open(path, os.O_RDONLY)
    except OSError:
        return b""
    try:
        return os.read(descriptor, 32)
    except OSError:
        return b""
    finally:
        os.close(descriptor)


class _Order:
    def __init__(self, path):
        self.path = path
        self.rank, self.ranks = _variable("RANK", 0), max(_variable("WORLD_SIZE", 1), 1)
        self.look_every_s = min(max(self.ranks / RANKS_A_SECOND, LOOK_EVERY_S_LEAST), LOOK_EVERY_S_MOST)
        self.looked_s = -math.inf
        self.is_asked = False
        self.stop_step = None  # after which all ranks stop
        self.errors = 0
        self.last_step, self.last_s = None, 0.0
        self.step_times_s = collections.deque(maxlen=STEPS_TIMED)

    def time_step(self, step):
        now_s = time.monotonic()
        if self.last_step is not None and step > self.last_step:
            self.step_times_s.append((now_s - self.last_s) / (step - self.last_step))
        self.last_step, self.last_s = step, now_s

    def _write_answer(self, text):
        if self.errors >= ERRORS_MOST:
            return False
        try:
            descriptor = _open(self.path + ".step", os.O_WRONLY | os.O_CREAT)
            try:
                return os.write(descriptor, text) == len(text)
            finally:
                os.close(descriptor)
        except OSError:
            self.errors += 1
            return False

    def look(self):
        now_s = time.monotonic()
        if self.stop_step is not None or now_s - self.looked_s < self.look_every_s:
            return
        if self.looked_s == -math.inf and self.rank == 0:
            self._write_answer(b"")
        self.looked_s = now_s
        self.is_asked = self.is_asked or _read(self.path) != b""
        answer = _read(self.path + ".step") if self.is_asked else b""
        if answer.endswith(b"\n") and answer.strip().isdigit():
            self.stop_step = int(answer)

    def choose_step(self, step):
        """To be called by rank 0, once it knows how long its steps take."""
        if self.step_times_s:
            wait_s = 2 * self.look_every_s + MARGIN_S
            ahead = math.ceil(min(wait_s / max(min(self.step_times_s), 1e-9), STEPS_AHEAD_MOST))
            stop_step = step + max(ahead, STEPS_AHEAD_LEAST)
            if self._write_answer(b"%d\n" % stop_step):
                self.stop_step = stop_step


_order = None


def _should_stop(step):
    global _order
    path = os.environ.get("WLB_STOP_FILE")
    if not path:
        return False
    if _order is None or _order.path != path:
        _order = _Order(path)
    if step is not None:
        step = int(step)
        _order.time_step(step)
    _order.look()
    if step is None or _order.ranks == 1:
        return _order.is_asked
    if _order.is_asked and _order.stop_step is None and _order.rank == 0:
        _order.choose_step(step)
    return _order.stop_step is not None and step >= _order.stop_step


def should_stop(step=None):
    """Whether to save and stop after this step. Where several ranks train, call it with the step, from rank 0 or from all of them, after
    each step: it is true in all after the same one. Without a step it is true at once, in each rank at another time."""
    try:
        return _should_stop(step)
    except Exception:  # nothing here may stop a training run
        return False
