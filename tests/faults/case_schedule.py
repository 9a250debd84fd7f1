"""Runs cases one after the other or several at a time, in turns with other programs that lock the same file."""
import contextlib
import fcntl
import queue
import threading
import time

from case_runner import CaseRunner

TURN_S = 150  # within this time of a turn cases are begun; those that were begun are finished


def run_cases(cases, jobs, on_failure, lock=None):
    """Runs cases, each the arguments of CaseRunner.run_case, `jobs` at a time, and yields their results in the order of their
    ends. With the file `lock` they take turns with other programs that lock it; no cluster outlives its turn."""
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
    """Yields the results of the cases that are begun before the time `until`; None: of all cases that wait."""
    results = queue.Queue()

    def run_waiting():
        try:
            with contextlib.closing(CaseRunner(on_failure)) as runner, contextlib.suppress(queue.Empty):
                while until is None or time.monotonic() < until:
                    results.put(runner.run_case(*waiting.get_nowait()))
        except Exception as error:  # pylint: disable=broad-exception-caught
            results.put(error)

    # Daemon threads are not waited for when a signal ends the program; their clusters are stopped at exit.
    threads = [threading.Thread(target=run_waiting, daemon=True) for _ in range(jobs)]
    for thread in threads:
        thread.start()
    while not results.empty() or any(thread.is_alive() for thread in threads):
        with contextlib.suppress(queue.Empty):
            result = results.get(timeout=0.2)
            if isinstance(result, Exception):
                raise result
            yield result
