#!/usr/bin/env python3
"""Many endless reads of the largest run, and many questions to Slurm, do not keep other users from reading, recording or
restarting."""
import contextlib
import json
import os
import signal
import threading
import time
import uuid

import hostile
from harness import clock_s
from hostile import ANSWER_MOST_S, BOTH, STRANGER, Caller, HostileTest, close_all, delivery, event, head_of, read_status

STEPS = 300_000


def read_repeatedly(place, paths, seconds):
    """Reads the paths repeatedly; returns the number of replies by status."""
    caller, end, found = Caller(place), time.monotonic() + seconds, {}
    while time.monotonic() < end:
        for path in paths:
            status, _ = caller.get(path)
            found[status] = found.get(status, 0) + 1
    return found


def request_and_close(place, path, seconds):
    """Sends requests and closes their connections before the reply."""
    caller, end = Caller(place), time.monotonic() + seconds
    while time.monotonic() < end:
        links = []
        try:
            for _ in range(20):
                links.append(place.connect(2))
                links[-1].sendall(head_of("GET", path, 0, caller.credential("GET", path)))
        except OSError:
            pass
        time.sleep(0.1)
        close_all(links)


def request_and_read_nothing(place, path, seconds, count=40):
    """Sends `count` requests and reads no reply: the replies stay in wlbd, or wait for the database."""
    caller, links = Caller(place), []
    for _ in range(count):
        try:
            links.append(place.connect(2))
            links[-1].sendall(head_of("GET", path, 0, caller.credential("GET", path)))
        except OSError:
            continue
    time.sleep(seconds)
    close_all(links)


class LargestTest(HostileTest):
    """Tests with a run of 300,000 steps that belongs to nobody."""

    LARGEST = "900000"

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        if not cls.shown(cls.LARGEST):
            cls.make_largest()

    @classmethod
    def make_largest(cls):
        cls.cluster.sql(f"""
            with run as (insert into runs (name, job_id, uid, user_name, state, submitted_at, ended_at)
                         values ('900000', 900000, 65534, 'nobody', 'complete', now(), now()) returning id),
            attempt as (insert into attempts (run_id, number, uuid, state)
                        select id, 1, gen_random_uuid(), 'complete' from run returning id, run_id)
            insert into steps (run_id, step, attempt_id, loss, tokens, step_time_s, tokens_per_s, recorded_at, parts)
            select run_id, s, id, 5.0 / s, 4096, 0.5, 8192, now(), '{{"forward_s": 0.1, "backward_s": 0.2}}'
            from attempt, generate_series(1, {STEPS}) s""")
        cls.cluster.sql("analyze")

    def paths(self):
        return [f"/v1/runs/{self.LARGEST}?steps=all", "/v1/runs?limit=100000", f"/v1/runs/{self.LARGEST}",
                f"/v1/runs/{self.LARGEST}/steps?from=1&limit=100000", "/v1/runs?user=nobody"]

    def under_way(self):
        return int(self.cluster.sql("select count(*) from pg_stat_activity where state = 'active' and "
                                    "datname = current_database() and pid <> pg_backend_pid()")[0][0])


class WideTest(HostileTest):
    """Tests with a run of nobody whose pages of steps have 8 MiB."""

    WIDE = "900001"

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        if not cls.shown(cls.WIDE):
            cls.cluster.sql("""
                with run as (insert into runs (name, job_id, uid, user_name, state, submitted_at, ended_at)
                             values ('900001', 900001, 65534, 'nobody', 'complete', now(), now()) returning id),
                attempt as (insert into attempts (run_id, number, uuid, state)
                            select id, 1, gen_random_uuid(), 'complete' from run returning id, run_id),
                parts as (select jsonb_object_agg(rpad('part' || p, 64, '_'), 0.123456789) as parts from generate_series(1, 32) p)
                insert into steps (run_id, step, attempt_id, recorded_at, parts)
                select run_id, s, id, now(), parts from attempt, parts, generate_series(1, 10000) s""")
            cls.cluster.sql("analyze")


class LongReplies(WideTest):
    def test_answers_that_nobody_takes(self):
        """Each of many connections would hold a page of steps for half a minute."""
        path = f"/v1/runs/{self.WIDE}/steps?limit=10000"
        self.attack(request_and_read_nothing, path, 12, 100, within_s=60)
        self.watch.stop()
        self.becomes(lambda: int(self.cluster.sql("select count(*) from pg_stat_activity where state = 'active' and "
                                                  "datname = current_database() and pid <> pg_backend_pid()")[0][0]) == 0, 60)


class Reads(LargestTest):
    def test_largest_run(self):
        self.attack(read_repeatedly, self.paths(), 4, uid=BOTH, processes=6)
        self.assertLessEqual(self.under_way(), 16)

    def test_senders_that_leave(self):
        self.attack(request_and_close, self.paths()[0], 3, uid=BOTH, processes=2)
        self.assertLessEqual(self.under_way(), 16)
        self.watch.stop()
        began = time.monotonic()
        self.assertTrue(self.becomes(lambda: self.under_way() == 0, 40), "statements of senders that left go on")
        print(f"the last statement ended after {time.monotonic() - began:.1f} s", end=" ")

    def test_answers_that_nobody_takes(self):
        self.attack(request_and_read_nothing, self.paths()[0], 3, uid=BOTH, processes=2)

    def test_list_in_a_loop(self):
        self.attack(read_repeatedly, ["/v1/runs?limit=1", "/v1/runs"], 3, uid=BOTH, processes=6)

    def test_show_in_a_loop(self):
        """The command, as anybody may type it."""
        end = time.monotonic() + 3
        while time.monotonic() < end:
            self.as_user("wlb", "show", self.LARGEST, timeout_s=60)
            self.as_user("wlb", "runs", timeout_s=60)


# ---- what waits for the database ------------------------------------------------------------------------------------------

def deliveries_that_wait(place, run, count, seconds):
    """Sends more large deliveries of one user at once than are handled at a time, each of another source."""
    caller, links, path = Caller(place), [], f"/v1/runs/{run}/records"
    for number in range(count):
        body = json.dumps(delivery(run, str(uuid.uuid4()), [event(seq, f"{number} {seq} " + "x" * 4000)
                                                            for seq in range(1, 1001)])).encode()
        try:
            links.append(place.connect(2))
            links[-1].settimeout(5)
            links[-1].sendall(head_of("POST", path, len(body), caller.credential("POST", path, body)) + body)
        except OSError:
            continue
    time.sleep(seconds)
    close_all(links)


class Waiting(LargestTest):
    """Some users' statements wait for the database in such numbers that there might be no place for root's."""

    def test_reads_of_two_users(self):
        self.attack(request_and_read_nothing, self.paths()[0], 3, 300, uid=BOTH, processes=4)
        self.watch.stop()
        self.becomes(lambda: self.under_way() == 0, 60)

    def test_large_deliveries_of_one_user(self):
        run, _ = self.own_run()
        self.attack(deliveries_that_wait, run, 10, 3, processes=3)


# ---- what waits for Slurm ---------------------------------------------------------------------------------------------------

def announcement(job):
    return json.dumps({"run_id": str(job), "job_id": job, "restart_count": 0, "policy": {"layout": "auto"}}).encode()


def announce_at_once(place, first_job, count, seconds):
    """Announces runs of jobs that Slurm does not know, each over a connection of its own; returns the numbers of 503 and of
    those that still waited after that time."""
    caller, links, path = Caller(place), [], "/v1/runs"
    first_job += os.getpid() % 1000 * count
    for job in range(first_job, first_job + count):
        body = announcement(job)
        links.append(place.connect(10))
        links[-1].sendall(head_of("POST", path, len(body), caller.credential("POST", path, body)) + body)
    time.sleep(seconds)
    for link in links:
        link.settimeout(0.001)
    statuses = [read_status(link) for link in links]
    close_all(links)
    return statuses.count(503), statuses.count(0)


def announce_one_by_one(place, job, seconds):
    """Returns the statuses, and how long the slowest answer took."""
    caller, end, statuses, slowest_s = Caller(place), time.monotonic() + seconds, set(), 0
    while time.monotonic() < end:
        began = clock_s()
        statuses.add(caller.post("/v1/runs", announcement(job))[0])
        slowest_s = max(slowest_s, clock_s() - began)
        job += 1
    return statuses, slowest_s


class SlowSlurm(HostileTest):
    STOPPED_S, GOING_S = 0.25, 0.005

    @contextlib.contextmanager
    def slow_slurmctld(self):
        """slurmctld goes on for a moment now and then, so that it answers each question late."""
        pid = int((self.cluster.dir / "run/slurmctld.pid").read_text().split()[0])
        ending = threading.Event()

        def slow_down():
            stopped_s = self.STOPPED_S
            while not ending.is_set():
                os.kill(pid, signal.SIGSTOP)
                ending.wait(stopped_s)
                os.kill(pid, signal.SIGCONT)
                began = time.monotonic()
                time.sleep(self.GOING_S)
                # On a busy machine it goes on for longer: it is stopped for longer in turn.
                stopped_s = min(max(self.STOPPED_S, (time.monotonic() - began) * self.STOPPED_S / self.GOING_S), 1)

        thread = threading.Thread(target=slow_down)
        thread.start()
        try:
            yield
        finally:
            ending.set()
            thread.join()

    def test_questions_of_one_user(self):
        """One user's questions wait in great number for a slow slurmctld: those of others are answered before them."""
        with self.slow_slurmctld():
            flood = self.begin_attack(announce_at_once, 2_000_000, 250, 12, processes=4)
            time.sleep(2)
            statuses, slowest_s = self.attack(announce_one_by_one, 3_000_000, 9, uid=STRANGER)[0]
            found = flood.results()
            self.watch.stop()
        refused, waiting = sum(pair[0] for pair in found), sum(pair[1] for pair in found)
        print(f"{refused} refused, {waiting} waited, the other user's slowest answer after {slowest_s:.1f} s", end=" ")
        self.assertEqual(statuses, {200})
        self.assertLess(slowest_s, ANSWER_MOST_S)
        self.assertGreater(refused, 0)


if __name__ == "__main__":
    hostile.main()
