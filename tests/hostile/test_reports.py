#!/usr/bin/env python3
"""Reports of a user for his own run: huge ones, many, from nodes and ranks that the run does not have, and while its job
ends."""
import json
import os
import threading
import time
import uuid

import hostile
from hostile import MIB, Caller, HostileTest, delivery, report


def lost_ranks(place, run, attempt, count):
    ranks = [{"rank": rank, "time": 1e9} for rank in range(count)]
    return Caller(place).post(f"/v1/runs/{run}/report", report(attempt, "n1", lost_ranks=ranks))[0]


def huge_reports(place, run, attempt, count):
    """Sends reports of almost 8 MB: with one text, many fields, many ranks; returns their statuses."""
    caller, found = Caller(place), set()
    for _ in range(count):
        for more in ({"x": "y" * (7 * MIB)}, {f"k{n}": n for n in range(300000)}, {"ranks": list(range(900000))},
                     {"exits": [{"rank": n, "code": 9, "time": 1e9} for n in range(150000)]}, {"node": "n" * MIB},
                     {"steps": [[0, n, 1, 0, 1, 1, 0, 0, None, None, []] for n in range(200000)]},
                     {"ranks": [[]] * 2000000}):
            found.add(caller.post(f"/v1/runs/{run}/report", report(attempt, "n1") | more)[0])
    return found


def many_reporters(place, run, attempt, first, count):
    caller = Caller(place)
    for number in range(first, first + count):
        caller.post(f"/v1/runs/{run}/report", report(attempt, f"x{number}", number))
        caller.post(f"/v1/runs/{run}/report", report(attempt, "n1", number))


def connections_that_report(place, run, attempt, count, seconds):
    """Reports over many connections for the same node and ranks; they are closed and opened again."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        callers = [Caller(place, 5) for _ in range(count)]
        for number, caller in enumerate(callers):
            caller.post(f"/v1/runs/{run}/report", report(attempt, "n1", number % 8))
        for caller in callers:
            caller.close()


def flood(place, run, attempt, seconds):
    caller, end, count = Caller(place), time.monotonic() + seconds, 0
    while time.monotonic() < end:
        caller.post(f"/v1/runs/{run}/report", report(attempt, "n1", step=count))
        count += 1
    return count


def attempt_record(seq, world_size, nodes):
    places = [{"rank": rank, "node": node, "local_rank": 0} for rank, node in enumerate(nodes)]
    return {"seq": seq, "time": time.time(), "type": "attempt", "data": {
        "layout": {"tp": 1, "cp": 1, "pp": 1, "dp": 1}, "world_size": world_size, "rank_map": places}}


def ranks_beyond_the_map(place, job):
    """A map of one rank, another of more nodes than the job has, and a decision that reads the attempt again from the
    database; then reports of ranks beyond the first map. Returns the statuses."""
    caller, run, attempt = Caller(place), str(job), str(uuid.uuid4())
    busy = {"rank": 0, "step": 1, "activity": "computing", "for_s": 1, "process": "running"}
    caller.post("/v1/runs", {"run_id": run, "job_id": job, "restart_count": 0})
    found = [caller.post(f"/v1/runs/{run}/records", delivery(run, attempt, [record]))[0] for record in (
        attempt_record(1, 1, ["n1"]), attempt_record(2, 60000, ["x", "y"]))]
    decision = {"attempt_id": attempt, "job_id": job, "nodes": ["n1"], "tasks_per_node": 1, "previous": None}
    found.append(caller.post(f"/v1/runs/{run}/attempts", decision)[0])
    for rank in (50000, 100, 2, 1):
        found.append(caller.post(f"/v1/runs/{run}/report", report(attempt, "n1", rank))[0])
    found.append(caller.post(f"/v1/runs/{run}/report", report(attempt, "n1", 0, activities=[busy]))[0])
    found.append(caller.get(f"/v1/runs/{run}/ranks")[0])
    time.sleep(2.5)  # wlbd judges the activity each second
    return found


def attempts_with_many_ranks(place, job, ranks, count):
    """Maps of many ranks for new attempts of one run, numbered so that the database stores none. Returns the statuses."""
    caller, run, found = Caller(place), str(job), set()
    caller.post("/v1/runs", {"run_id": run, "job_id": job, "restart_count": 0})
    first = str(uuid.uuid4())
    text = json.dumps(delivery(run, first, [attempt_record(2, ranks, ["n1"] * ranks)]))
    for _ in range(count):
        found.add(caller.post(f"/v1/runs/{run}/records", text.replace(first, str(uuid.uuid4())).encode())[0])
    return found


STRANGE = [{"rank": -2}, {"rank": 2**31}, {"rank": 2**63}, {"rank": 1.5}, {"rank": "0"}, {"rank": None}, {"ranks": {}},
           {"ranks": [-1, 2**40]}, {"step": -1}, {"step": 2**63 - 1}, {"step": 1e300}, {"node": ""}, {"node": "n1\n"},
           {"node": "n[1-4]"}, {"node": "../n1"}, {"node": "n" * 300}, {"node": 1}, {"source": "rank0"}, {"source": "run"},
           {"source": "run", "step_id": "1.0; scontrol"}, {"source": "run", "step_id": "4294967295.4294967295"},
           {"source": "run", "step_id": 12.0}, {"goodbye": "yes"}, {"lost_ranks": [1]}, {"lost_ranks": [{}]},
           {"lost_ranks": [{"rank": 0, "time": 1e300}]}, {"lost_ranks": [{"rank": 0, "time": -1e300}]},
           {"exits": [{"rank": 0, "code": 256, "time": 1}]}, {"exits": [{"rank": 0, "code": -1, "time": 1}]},
           {"activities": 7}, {"activities": [7]}, {"activities": [{"rank": 0}] * 4097},
           {"activities": [{"rank": 0, "step": 1, "activity": "saving", "for_s": 1e308, "process": "running"}]},
           {"activities": [{"rank": 0, "step": 1, "activity": "saving", "for_s": 1, "process": "running",
                            "groups": [["\x1b[2J" * 9, 2**63, 1, 2]] * 17}]},
           {"activities": [{"rank": 0, "step": 1, "activity": "saving", "for_s": 1, "process": "running", "groups": [["a", 2, 2, 2]],
                            "call": {"kind": "send", "group": -1, "seq": 2**63, "bytes": 1, "for_s": 1}}]},
           {"steps": 7}, {"steps": [7]}, {"steps": [[0] * 11] * 257}, {"steps": [[0] * 10]}, {"steps": [[0] * 10 + [[]]] * 2},
           {"steps": [[2**63, 1, 1, 0, 1, 1, 0, 0, None, None, []]]}, {"steps": [[0, 1, 1e308, 0, 1, 1, 0, 0, None, None, []]]},
           {"steps": [[0, 1, 1, 0, 1, 1e308, 0, 0, "nan" * 99, "-inf", []]]},
           {"steps": [[0, 1, 1, 0, 1, 1, 0, 0, "nan", "inf", [["\x1b[2J" * 9, 2**63, -1, 1e300]] * 17]]},
           {"steps": [[0, 10**12, None, None, None, None, None, None, None, None, [["a", 10**15, 10**13, 10**18]] * 16]]},
           {"steps": [[0, 2**62, 0, 0, 0, 0, 0, 0, None, None, []]]}, {"lost_steps": -1}, {"lost_steps": 2**63}, {"lost_steps": {}},
           {"exits": 3}, {"agent": 1}, {"stepd": "gone"}, {"stepd": 7}, {"attempt_id": "x"}, {"attempt_id": None}]


def strange_reports(place, run, attempt):
    caller, found = Caller(place), []
    for more in STRANGE:
        status, text = caller.post(f"/v1/runs/{run}/report", report(attempt, "n1") | more)
        if status not in (200, 400, 403, 404):
            found.append((more, status, text[:200]))
    return found


class Reports(HostileTest):
    def most_descriptors(self, during):
        """The most descriptors that wlbd had while `during` was called."""
        most, stopping = [0], threading.Event()

        def count():
            while not stopping.is_set():
                most[0] = max(most[0], len(os.listdir(f"/proc/{self.daemon.pid}/fd")))

        counter = threading.Thread(target=count)
        counter.start()
        try:
            during()
        finally:
            stopping.set()
            counter.join()
        return most[0]

    def test_lost_ranks(self):
        run, attempt = self.own_run()
        before = len(os.listdir(f"/proc/{self.daemon.pid}/fd"))
        most = self.most_descriptors(lambda: self.attack(lost_ranks, run, attempt, 200000, processes=2))
        self.assertLess(most - before, 64)

    def test_huge_reports(self):
        run, attempt = self.own_run()
        self.assertLessEqual(self.attack(huge_reports, run, attempt, 1)[0], {0, 400, 413})

    def test_many_reporters(self):
        run, attempt = self.own_run()
        self.begin_attack(many_reporters, run, attempt, 0, 1500).results()
        self.assertLess(self.daemon.metric("wlbd_reporters"), 64)

    def test_connections(self):
        run, attempt = self.own_run()
        self.attack(connections_that_report, run, attempt, 50, 2, processes=3)

    def test_flood(self):
        run, attempt = self.own_run()
        self.attack(flood, run, attempt, 2.5, processes=4)

    def test_strange(self):
        run, attempt = self.own_run()
        self.assertEqual(self.attack(strange_reports, run, attempt), [[]])

    def test_ranks_beyond_the_map(self):
        job = self.own_job("--ntasks-per-node=1", "--nodelist=n1")
        self.assertEqual(self.attack(ranks_beyond_the_map, job), [[200, 400, 200, 403, 403, 403, 403, 200, 200]])

    def test_attempts_with_many_ranks(self):
        job = self.own_job("--ntasks-per-node=1", "--nodelist=n1")
        before = self.others_attempts()
        self.assertEqual(self.attack(attempts_with_many_ranks, job, 30000, 80, processes=2, within_s=240), [{409}] * 2)
        self.assertLess(self.others_attempts() - before, 100)

    def others_attempts(self):
        """Those in wlbd's memory that the watch has not begun; wlbd keeps each for a minute after its end."""
        since_s = max(self.daemon.started_s, time.monotonic() - 60)
        return self.daemon.metric("wlbd_attempts") - sum(begun_s > since_s for begun_s in self.watch.begun_s)

    def test_job_that_ends_meanwhile(self):
        run, attempt = self.own_run("--nodelist=n2", "--requeue")
        attack = self.begin_attack(flood, run, attempt, 3, processes=2)
        others = self.begin_attack(connections_that_report, run, attempt, 10, 3)
        time.sleep(1)
        self.cluster.run("scontrol", "requeue", run)
        time.sleep(1)
        self.cluster.run("scancel", run)
        attack.results()
        others.results()


if __name__ == "__main__":
    hostile.main()
