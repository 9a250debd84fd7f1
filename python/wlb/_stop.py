"""Whether WLB asks the run to save and end, by the file that WLB_STOP_FILE names: it is made for that, on the node itself.

Its text is the first step after which to stop, or empty for at once. With a step that is still to come, all ranks stop after the same
one without a word between them.
"""
import os
import time

ASK_EVERY_S = 1.0

_asked_s = -ASK_EVERY_S
_stop_step = None  # None: not asked to stop; -1: at once


def stop_step():
    """The step after which to stop: None for none, -1 for at once. Looks at the file once a second at most."""
    global _asked_s, _stop_step
    path = os.environ.get("WLB_STOP_FILE")
    now_s = time.monotonic()
    if path and _stop_step is None and now_s - _asked_s >= ASK_EVERY_S:
        _asked_s = now_s
        try:
            with open(path, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK)) as file:
                text = file.read(32).strip()
            _stop_step = int(text) if text.isdigit() else -1
        except OSError:
            pass
    return _stop_step


def should_stop(step=None):
    """Whether to save and stop after this step. Give the step where several ranks train, so that all stop after the same one."""
    try:
        stop = stop_step()
        return stop is not None and (step is None or int(step) >= stop)
    except Exception:
        return False
