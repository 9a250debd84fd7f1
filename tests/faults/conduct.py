"""Case after case, or some at a time, in turns with whoever else uses the machine."""
import contextlib
import fcntl
import queue
import threading
import time

from bench import Bench

TURN_S = 150  # how long a turn lasts, beside the cases that it began


def conduct(cases, jobs, on_failure, lock=None):
    """Yields the results of cases (kind, trainer, places) as they come, so many at a time. With the file `lock` they take
    turns with whoever else locks it; no cluster outlives its turn."""
    waiting, left = queue.Queue(), len(cases)
    for case in cases:
        waiting.put(case)
    while left > 0:
        with turn(lock):
            for result in take_turn(waiting, min(jobs, left), on_failure, time.monotonic() + TURN_S if lock else None):
                left -= 1
                yield result


@contextlib.contextmanager
def turn(path):
    if path is None:
        yield
        return
    with open(path, "a", encoding="ascii") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def take_turn(waiting, jobs, on_failure, until):
    """Yields the results of what is conducted until then; None: of everything that waits."""
    results = queue.Queue()

    def work():
        try:
            with contextlib.closing(Bench(on_failure)) as bench, contextlib.suppress(queue.Empty):
                while until is None or time.monotonic() < until:
                    results.put(bench.try_case(*waiting.get_nowait()))
        except Exception as error:  # pylint: disable=broad-exception-caught
            results.put(error)

    # Daemons: when a signal ends us nobody waits for them, and their clusters are stopped at exit.
    threads = [threading.Thread(target=work, daemon=True) for _ in range(jobs)]
    for thread in threads:
        thread.start()
    while not results.empty() or any(thread.is_alive() for thread in threads):
        with contextlib.suppress(queue.Empty):
            result = results.get(timeout=0.2)
            if isinstance(result, Exception):
                raise result
            yield result
