#!/usr/bin/env python3
"""What the database tells wlbd of a run's earlier attempts when it decides about the next one; the lists of runs and steps."""
import concurrent.futures
import csv
import io
import itertools
import json
import os
import re

import harness
from found_fault import found_fault
from harness import ClusterTest, wait_for
from terminal import CODES, Terminal


class Run:
    """A run as statements of the functions by which wlbd stores it."""

    jobs = itertools.count(7000)

    def __init__(self, sql):
        self.sql = sql
        self.job = next(self.jobs)
        self.id = f"(select id from runs where job_id = {self.job} order by id limit 1)"
        self.announce(1, 0)

    def announcement(self, launch, restarts, launcher=None, start=None):
        """The call by which the job's launcher, which began in a start of the job, gets its run. Slurm submits a job anew that it
        requeues. A launcher of an earlier version does not say which one it is."""
        launcher = f"'{launcher}'" if launcher else "null"
        return (f"wlb_run_announce({self.job}, {launch}, {launcher}, {restarts if start is None else start}, 0, 'root', 'c', 'job', "
                f"to_timestamp({self.job + restarts}), {restarts}, '{{}}')")

    def announce(self, *launcher):
        """Returns the name of its run."""
        return self.sql(f"select name from {self.announcement(*launcher)}")[0][0]

    def uuid(self, number):
        return f"00000000-0000-4000-8000-{self.job:08d}{number:04d}"

    def attempt(self, number):
        return f"(select id from attempts where uuid = '{self.uuid(number)}')"

    def decide(self, number):
        decision = json.dumps({"tasks_per_node": 2, "nodes": ["n1", "n2"], "spares": [], "checkpoint": None})
        self.sql(f"select wlb_attempt_start({self.id}, '{self.uuid(number)}', '{decision}', '{{}}', 2)")

    def start_alone(self, number):
        """`wlb run` has started it while wlbd was away: its first record announces it."""
        self.sql(f"select wlb_attempt_ensure('{self.job}', '{self.uuid(number)}', {self.job}, 0, 'root', 'c', 'job', "
                 f"to_timestamp({self.job}), 0, false)")

    def end(self, number, exit_code, state="failed"):
        self.sql(f"select wlb_attempt_end({self.attempt(number)}, '{state}', {exit_code}, 'it ended', now())")

    def fault(self, number, kind, node, proof=None, rank=None, when="now()"):
        self.sql(found_fault(self.attempt(number), kind, node, rank, detail="why", proof=proof, at=when))

    def requeue(self, number, when="now()"):
        self.sql(f"select wlb_attempt_requeued({self.attempt(number)}, 1, 'job was requeued', {when})")

    def history(self, previous=None):
        previous = f"'{self.uuid(previous)}'" if previous else "null"
        return json.loads(self.sql(f"select wlb_run_past('{self.job}', '{self.uuid(99)}', {previous}, 0, true)")[0][0])

    def in_row(self):
        return self.history()["attempts_without_progress"]


class History(ClusterTest):
    nodes = 1

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.cluster.verb("kill-wlbd")  # it would end these runs, whose jobs Slurm does not know

    def run_of(self, *exit_codes):
        """A run with an attempt of each exit code."""
        run = Run(self.cluster.sql)
        for number, code in enumerate(exit_codes, 1):
            run.decide(number)
            run.end(number, code)
        return run

    def test_failures_in_a_row(self):
        self.assertEqual(self.run_of(1, 1, 1).in_row(), 3)

    def work(self, run, minutes):
        self.cluster.sql(f"update attempts set created_at = ended_at - interval '{minutes} min' where run_id = {run.id}")

    def test_a_trainer_that_records_nothing_has_worked(self):
        """Its attempts that lasted long are no failures in a row, and its input was accepted."""
        run = self.run_of(1, 1, 1)
        self.work(run, 44)
        self.assertEqual([run.in_row(), run.history()["has_lasted"]], [3, False])
        self.work(run, 46)
        self.assertEqual([run.in_row(), run.history()["has_lasted"]], [0, True])

    def test_a_trainer_that_records_its_steps_has_not(self):
        run = self.run_of(1, 1, 1)
        self.work(run, 60)
        self.cluster.sql(f"update attempts set world_size = 4 where run_id = {run.id}")
        self.assertEqual([run.in_row(), run.history()["has_lasted"]], [3, False])

    def test_attempts_that_slurm_queued_again(self):
        run = self.run_of()
        for number in (1, 2, 3):
            run.decide(number)
            run.requeue(number)
        self.assertEqual(run.in_row(), 0)

    def test_an_attempt_that_failed_before_its_job_was_queued_again(self):
        """As by a script that has its own job requeued after each failure."""
        run = self.run_of()
        for number in (1, 2):
            run.decide(number)
            run.fault(number, "rank_lost", "n1", rank=1)
            run.end(number, 1, "lost")
            run.requeue(number)
        self.assertEqual(run.in_row(), 2)

    def test_ranks_that_die_after_the_training(self):
        """Rank 0 has recorded that the training is complete, and srun ends with an error each time."""
        run = self.run_of()
        for number in (1, 2, 3):
            run.decide(number)
            run.end(number, 0, "complete")
            run.end(number, 139)
        self.assertEqual(run.in_row(), 3)

    def test_the_launcher_of_an_attempt_that_was_started_alone(self):
        """No attempt that wlbd decided is newer than its own, so no other launcher continues the run."""
        run = self.run_of(1)
        run.requeue(1)
        run.start_alone(2)
        self.assertEqual([run.history(2)[name] for name in ("newer", "requeued")], [None, False])
        self.assertEqual([run.history(1)[name] for name in ("newer", "requeued")], [None, True])
        run.decide(3)
        self.assertEqual([run.history(n)["newer"] for n in (1, 2, 3, None)], [run.uuid(3), run.uuid(3), None, None])

    def test_a_requeue_is_not_in_the_future(self):
        """The clock of the launcher's host is ahead: the next attempt begins after the requeue all the same."""
        run = self.run_of()
        run.decide(1)
        self.cluster.sql(f"select wlb_attempt_end({run.attempt(1)}, 'ended', null, '', now() + interval '5 min')")
        run.requeue(1, "now() + interval '5 min'")
        run.decide(2)
        self.assertFalse(run.history(2)["requeued"])

    def test_a_script_that_begins_again_in_its_second_run(self):
        """Its first command is its first run, whose later one is open still."""
        run = self.run_of(0)
        self.cluster.sql(f"select wlb_run_end({run.id}, 'complete', '', 'launcher')")
        self.assertEqual(run.announce(2, 0), f"{run.job}.2")
        self.assertEqual(run.announce(1, 1), f"{run.job}")
        self.assertEqual(run.announce(2, 1), f"{run.job}.2")

    def open_run(self, name):
        """What wlbd reads of an open run for judging its job."""
        runs = json.loads(self.cluster.sql("select wlb_runs_open()")[0][0])
        return next(open_run for open_run in runs if open_run["run"] == name)

    def test_a_script_that_begins_again_in_its_first_run(self):
        """It was requeued in both of its runs; the second has the job's first time of submission, as the first has."""
        run = self.run_of(75)
        self.assertEqual(run.announce(1, 1), f"{run.job}")
        self.cluster.sql(f"select wlb_run_end({run.id}, 'complete', '', 'launcher')")
        self.assertEqual(run.announce(2, 1), f"{run.job}.2")
        self.assertEqual(run.announce(1, 2), f"{run.job}")
        self.cluster.sql(f"select wlb_run_end({run.id}, 'complete', '', 'launcher')")
        self.assertEqual(run.announce(2, 2), f"{run.job}.2")

    def test_a_second_run_of_another_time_of_submission(self):
        """As earlier versions stored it: the first does not go on with it."""
        run = self.run_of(0)
        self.cluster.sql(f"select wlb_run_end({run.id}, 'complete', '', 'launcher')")
        run.announce(2, 0)
        self.cluster.sql(f"update runs set submitted_at = now() where name = '{run.job}.2'")
        self.assertEqual(run.announce(1, 1), f"{run.job}")

    def test_a_launcher_with_a_wrong_count(self):
        """It says that it is the first, whose run is over; the job has not started again. Another one has the second."""
        run = self.run_of(0)
        self.cluster.sql(f"select wlb_run_end({run.id}, 'complete', '', 'launcher')")
        run.announce(2, 0)
        self.assertEqual(run.announce(1, 0), f"{run.job}.3")

    def test_a_run_that_its_script_has_not_reached(self):
        """The launcher of the start before has not been killed in this one, in which the script may end without this run."""
        run = self.run_of(0)
        self.cluster.sql(f"select wlb_run_end({run.id}, 'complete', '', 'launcher')")
        second = f"{run.job}.2"
        run.announce(2, 0)
        self.cluster.sql(f"select wlb_attempt_start((select id from runs where name = '{second}'), '{run.uuid(9)}', "
                         "'{\"tasks_per_node\": 1, \"nodes\": [\"n1\"], \"spares\": []}', '{}', 1)")
        self.cluster.sql(f"select wlb_attempt_exited({run.attempt(9)}, 75, null, now())")

        def known():
            return [self.open_run(second)[name] for name in ("launched", "end_reported", "not_reached")]

        self.assertEqual(known(), [True, True, False])
        run.announce(1, 1)
        self.assertEqual(known(), [False, False, True])
        run.announce(2, 1)
        self.assertEqual(known(), [True, True, False])

    def test_two_launchers_of_one_job(self):
        """Each has the run of its number, whether the others work or not, and in whatever order they come."""
        run = self.run_of()
        self.assertEqual(run.announce(2, 0), f"{run.job}.2")
        self.assertEqual(run.announce(4, 0), f"{run.job}.4")
        self.assertEqual(run.announce(3, 0), f"{run.job}.3")
        self.assertEqual(run.announce(1, 0), f"{run.job}")  # its own first reply was lost
        self.assertEqual(run.announce(1, 1), f"{run.job}")

    def test_launchers_that_count_the_same_number(self):
        """They count in folders of their own, or cannot."""
        run = self.run_of()
        first, second, third, other = (run.uuid(number) for number in range(1, 5))
        self.assertEqual(run.announce(1, 0, first), f"{run.job}")
        self.assertEqual(run.announce(1, 0, second), f"{run.job}.2")
        for _ in range(2):  # the reply is lost
            self.assertEqual(run.announce(1, 0, first), f"{run.job}")
            self.assertEqual(run.announce(1, 0, second), f"{run.job}.2")
        self.assertEqual(run.announce(2, 0, third), f"{run.job}.3")
        self.cluster.sql(f"select wlb_run_end({run.id}, 'complete', '', 'launcher')")
        self.assertEqual(run.announce(1, 0, other), f"{run.job}.4")

    def test_launchers_of_the_next_start(self):
        """Of one number, the first that comes continues its run; a launcher of the start before, which was not killed, takes it from none."""
        run = self.run_of()
        before, first, second = (run.uuid(number) for number in range(1, 4))
        run.announce(1, 0, before)
        self.cluster.sql(f"select wlb_run_end({run.id}, 'failed', '', 'coordinator')")
        self.assertEqual(run.announce(1, 1, first), f"{run.job}")
        self.assertEqual(self.cluster.sql(f"select state from runs where id = {run.id}"), [["restarting"]])
        self.assertEqual(run.announce(1, 1, before, 0), f"{run.job}")
        self.assertEqual(run.announce(1, 1, second), f"{run.job}.2")
        self.assertEqual(run.announce(1, 1, first), f"{run.job}")

    def record(self, run, number, restarts):
        """The launcher's record of an attempt that it began while wlbd was away."""
        data = json.dumps({"layout": {"tp": 1, "cp": 1, "pp": 1, "dp": 1}, "world_size": 1, "restart_count": restarts,
                           "rank_map": [{"rank": 0, "node": "n1", "local_rank": 0}]})
        self.cluster.sql(f"select wlb_record_attempt(a, 'run', '{data}', now()) from attempts a where uuid = '{run.uuid(number)}'")

    def test_a_launcher_that_began_while_wlbd_was_away(self):
        """Its first attempt tells it from others, whatever comes first: its announcement, its report, its record, or another's."""
        run = self.run_of()
        run.start_alone(1)
        self.assertEqual(run.announce(1, 0, run.uuid(9)), f"{run.job}.2")
        self.assertEqual(run.announce(1, 0, run.uuid(1)), f"{run.job}")
        run = self.run_of()
        run.start_alone(1)
        self.record(run, 1, 0)
        self.assertEqual(run.announce(1, 0, run.uuid(9)), f"{run.job}.2")
        self.assertEqual(run.announce(1, 1, run.uuid(8)), f"{run.job}")
        run = self.run_of()
        self.assertEqual(run.announce(1, 0, run.uuid(9)), f"{run.job}")
        run.start_alone(1)
        self.record(run, 1, 0)
        self.assertEqual(run.announce(1, 0, run.uuid(9)), f"{run.job}")
        self.assertEqual(run.announce(1, 0, run.uuid(1)), f"{run.job}.2")

    def test_a_late_record_of_the_start_before(self):
        run = self.run_of()
        run.start_alone(1)
        self.assertEqual(run.announce(1, 1, run.uuid(9)), f"{run.job}")
        self.record(run, 1, 0)
        self.assertEqual(run.announce(1, 1, run.uuid(9)), f"{run.job}")
        self.assertEqual(run.announce(1, 1, run.uuid(8)), f"{run.job}.2")

    def test_a_job_whose_id_was_used_before(self):
        """The numbers of the earlier job's runs are free."""
        run = self.run_of()
        run.announce(2, 0, run.uuid(1))
        self.cluster.sql(f"update runs set submitted_at = to_timestamp(1) where job_id = {run.job}")
        for launch in (2, 1):
            name = f"{run.job}.2" if launch == 2 else f"{run.job}"
            self.assertEqual(run.announce(launch, 0, run.uuid(launch + 1)), name)
        self.assertEqual(self.cluster.sql(f"select count(*) from runs where job_id = {run.job}"), [["4"]])
        self.assertEqual(run.announce(2, 1, run.uuid(9)), f"{run.job}.2")

    def test_runs_of_a_job_that_slurm_confirms_one_by_one(self):
        run = self.run_of()
        run.announce(2, 0, run.uuid(2))
        self.cluster.sql(f"update runs set submitted_at = null where name = '{run.job}.2'")
        self.assertEqual(run.announce(1, 1, run.uuid(1)), f"{run.job}")
        self.assertEqual(run.announce(2, 1, run.uuid(3)), f"{run.job}.2")
        self.assertEqual(self.cluster.sql(f"select count(*) from runs where job_id = {run.job}"), [["2"]])

    def test_the_greatest_number(self):
        run = self.run_of()
        self.assertEqual(run.announce(999999, 0, run.uuid(1)), f"{run.job}.999999")
        self.assertRaisesRegex(harness.Failed, "has a run of number 999999", run.announce, 999999, 0, run.uuid(2))
        self.assertEqual(run.announce(2, 0, run.uuid(3)), f"{run.job}.2")

    def test_statements_of_one_job_at_the_same_time(self):
        """As over two connections: the second waits for the first."""
        job = next(Run.jobs)
        run = Run.__new__(Run)
        run.job = job
        ensure = (f"wlb_attempt_ensure('{job}', '{run.uuid(3)}', {job}, 0, 'root', 'c', 'job', to_timestamp({job}), 0, false)")
        with concurrent.futures.ThreadPoolExecutor(3) as pool:
            first = pool.submit(self.cluster.sql, f"select name from {run.announcement(1, 0, run.uuid(1))}; select pg_sleep(2)")
            wait_for("the first", lambda: self.cluster.sql("select pid from pg_stat_activity where query like '%pg_sleep(2)' and "
                                                           "pid <> pg_backend_pid()") != [], 10, 0.05)
            second = pool.submit(self.cluster.sql, f"select name from {run.announcement(1, 0, run.uuid(2))}")
            third = pool.submit(self.cluster.sql, f"select {ensure}")
            names = [future.result()[0][0] for future in (first, second)]
            third.result()
        self.assertEqual(names, [f"{job}", f"{job}.2"])
        self.assertEqual(self.cluster.sql(f"select name from runs where job_id = {job} order by id"), [[f"{job}"], [f"{job}.2"]])

    def start(self, name, uuid):
        self.cluster.sql(f"select wlb_attempt_start((select id from runs where name = '{name}'), '{uuid}', "
                         "'{\"tasks_per_node\": 1, \"nodes\": [\"n1\"], \"spares\": []}', '{}', 1)")

    def test_two_runs_that_begin_again_in_another_order(self):
        """The second has begun, is about to begin, or is over when the first begins again."""
        run = self.run_of(75)
        second = f"{run.job}.2"
        first_id, second_id = (itertools.count(100 * number) for number in (1, 2))

        def announce(launch, restarts):
            return run.announce(launch, restarts, run.uuid(next((first_id, second_id)[launch - 1])))

        self.assertEqual(announce(2, 0), second)
        self.assertEqual(announce(2, 1), second)
        self.start(second, run.uuid(8))
        self.assertEqual(announce(1, 1), f"{run.job}")
        self.assertFalse(self.open_run(second)["not_reached"])
        self.assertEqual(announce(2, 2), second)
        self.assertEqual(announce(1, 2), f"{run.job}")
        self.assertFalse(self.open_run(second)["not_reached"])
        self.start(second, run.uuid(9))
        self.assertEqual(announce(1, 3), f"{run.job}")
        self.assertTrue(self.open_run(second)["not_reached"])
        self.assertEqual(announce(2, 3), second)
        self.assertFalse(self.open_run(second)["not_reached"])
        self.cluster.sql(f"select wlb_run_end((select id from runs where name = '{second}'), 'complete', '', 'launcher')")
        self.assertEqual(announce(1, 4), f"{run.job}")

    def test_a_second_run_that_began_while_wlbd_was_away(self):
        """Its first record says when the job was submitted, by then a second time; it is the same job's all the same."""
        run = self.run_of(0)
        self.cluster.sql(f"select wlb_run_end({run.id}, 'complete', '', 'launcher')")
        self.assertEqual(run.announce(1, 1), f"{run.job}")
        self.cluster.sql(f"select wlb_run_end({run.id}, 'complete', '', 'launcher')")
        self.cluster.sql(f"select wlb_attempt_ensure('{run.job}.2', '{run.uuid(9)}', {run.job}, 0, 'root', 'c', 'job', "
                         f"to_timestamp({run.job + 1}), 1, false)")
        self.assertEqual(run.announce(1, 2), f"{run.job}")
        self.assertEqual(run.announce(2, 2), f"{run.job}.2")

    def test_a_node_that_is_lost_again_and_again(self):
        """Its third loss is no excuse, and the attempts after it count."""
        run = self.run_of()
        for number in range(1, 6):
            run.decide(number)
            run.fault(number, "node_lost", "n1", when=f"now() + {number} * interval '1 s'")
            run.end(number, 1, "lost")
            self.assertEqual(run.in_row(), max(number - 2, 0))

    def test_a_node_that_never_launches_its_tasks(self):
        """It is as one on which ranks die, which says nothing of the program's step."""
        run = self.run_of()
        for number in (1, 2):
            run.decide(number)
            run.fault(number, "step_failed", "n1", {"step_broken": True})
            run.end(number, 1)
        self.assertEqual([(crash["node"], crash["step"]) for crash in run.history()["crashes"]], [("n1", -1)] * 2)

    def test_a_node_that_was_lost_and_has_passed_a_check(self):
        run = self.run_of()
        run.decide(1)
        run.fault(1, "node_lost", "n2")
        self.assertEqual(run.history()["node_losses"], {"n2": 1})
        self.cluster.sql("insert into run_node_checks (run_id, attempt_id, node, healthy, reason, checks, checked_at) "
                         f"values ({run.id}, {run.attempt(1)}, 'n2', true, '', '[]', now() + interval '1 s')")
        self.assertEqual(run.history()["node_losses"], {})

    def test_an_eviction_by_a_clock_that_is_ahead(self):
        """wlbd's clock is ahead of the database's: a check that the node passes after it ends the eviction all the same."""
        run = self.run_of()
        run.decide(1)
        run.fault(1, "hang", "n1", {"evicted": "it hangs"}, 3, "now() + interval '5 min'")
        self.assertEqual([eviction["node"] for eviction in run.history()["evictions"]], ["n1"])
        self.cluster.sql("insert into run_node_checks (run_id, attempt_id, node, healthy, reason, checks) "
                         f"values ({run.id}, {run.attempt(1)}, 'n1', true, '', '[]')")
        self.assertEqual(run.history()["evictions"], [])

    def test_an_eviction_whose_reply_was_lost(self):
        """Its statement is sent again, and stored once."""
        run = self.run_of()
        run.decide(1)
        for rank in (3, 3, 4):
            run.fault(1, "hang", "n1", {"evicted": "it hangs"}, rank, "to_timestamp(1767225600)")
        self.assertEqual(self.cluster.sql(f"select rank from faults where run_id = {run.id} order by rank"), [["3"], ["4"]])


HOSTILE = "=1+1,\"\x1b[31m\u009b2J\u202e\n'; drop table runs; --"  # a job's name, of which a user may choose every byte
COUNT = 15000  # steps of the long run: two pages, and more than a pipe holds


class Lists(ClusterTest):
    """`wlb runs`, `wlb show` and `wlb steps` of runs that are written into the database, and have ended."""

    nodes = 1

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        run = ("insert into runs (name, job_id, alias, uid, user_name, state, job_name, started_at, ended_at, tokens, step_seconds, "
               "last_step, train_iters, last_loss, model, policy, confirmed, account, gpu_count) values ")
        rows = ["('9', 9, '8_1', 1, 'ann', 'complete', 'pretrain-large', now() - interval '9 d', now() - interval '8 d', 5000, 10, 90, "
                "100, 1.5, '{\"model_type\": \"llama\", \"parameters\": 8030000000}', '{}', true, 'physics', 16)",
                "('10', 10, null, 2, 'bob', 'failed', 'Finetune', now() - interval '2 d', now() - interval '36 h', 900, 90, 30, 40, 2.5, "
                "null, '{\"model\": \"/models/Qwen3-8B/config.json\"}', true, null, null)",
                f"('11', 11, null, 1, 'ann', 'cancelled', E{cls.quoted(HOSTILE)}, now() - interval '1 h', now(), 0, 0, null, null, "
                f"null, null, '{{}}', true, E{cls.quoted(HOSTILE)}, null)"]
        cls.cluster.sql(run + ", ".join(rows))
        cls.cluster.sql("""
            insert into attempts (run_id, number, uuid, state, nodes, tp, cp, pp, dp, world_size, memory_bytes, plan, exit_code, ended_at)
            select r.id, n, gen_random_uuid(), 'failed', case when r.name = '10' then '{n3}' else array['n' || n, 'n2'] end, 1, 1, 1, 8, 8,
                case when r.name = '9' then 3221225472 end,
                case when r.name = '9' then '{"utilization": 0.5, "step_s": 0.2}'::jsonb end, 1, now()
            from runs r, generate_series(1, 2) n where r.name in ('9', '10')""")
        cls.cluster.sql(f"""
            insert into steps (run_id, step, attempt_id, loss, step_time_s, tokens, recorded_at)
            select a.run_id, k, a.id, 1.0 / k, 0.25, 10, now() from attempts a join runs r on r.id = a.run_id,
                generate_series(1, {COUNT + 50}) k where a.number = 2 and r.name = '9' and (k <= 40 or k > 90)""")

    @staticmethod
    def quoted(text):
        return "'" + text.replace("\\", "\\\\").replace("'", "''") + "'"

    def wlb(self, *words, **more):
        return self.cluster.run("wlb", *words, **more)

    def rows(self, *words):
        return list(csv.DictReader(io.StringIO(self.wlb(*words, "--csv").stdout, newline="")))

    def listed(self, *words):
        return [row["run_id"] for row in self.rows("runs", *words)]

    def test_filters(self):
        self.assertEqual(self.listed(), ["11", "10", "9"])
        for words, runs in ((["--user", "ann"], ["11", "9"]), (["--state", "failed"], ["10"]), (["--since", "3d"], ["11", "10"]),
                            (["--account", "physics"], ["9"]), (["--account", "phys"], []), (["--since", "1d"], ["11"]),
                            (["--text", "TUNE"], ["10"]), (["--text", "%"], []), (["--model", "LLama"], ["9"]),
                            (["--model", "qwen3"], ["10"]), (["--node", "n2"], ["9"]), (["--node", "n3"], ["10"]), (["--node", "n"], []),
                            (["--user", "ann", "--node", "n1"], ["9"]), (["--limit", "1"], ["11"])):
            with self.subTest(words):
                self.assertEqual(self.listed(*words), runs)

    def test_orders(self):
        """A run that has no value is the last in both directions."""
        for order, runs in (("loss", ["9", "10", "11"]), ("-loss", ["10", "9", "11"]), ("name", ["11", "10", "9"]),
                            ("-started", ["11", "10", "9"]), ("started", ["9", "10", "11"]), ("tokens_per_s", ["10", "9", "11"]),
                            ("-user", ["10", "11", "9"]), ("account", ["11", "9", "10"]), ("-account", ["9", "11", "10"]),
                            ("-memory", ["9", "11", "10"]), ("mfu", ["9", "11", "10"]), ("nodes", ["10", "9", "11"]), ("-elapsed", ["9", "10", "11"]),
                            ("run", ["9", "10", "11"])):
            with self.subTest(order):
                self.assertEqual(self.listed("--sort", order), runs)
        self.assertEqual(self.listed("--sort", "-loss", "--limit", "1"), ["10"])
        orders = re.search(r"without\s+a\s+value\s+last: by (.*?)\n  --columns", self.wlb("runs", "--help").stdout, re.DOTALL)[1]
        for order in re.findall(r"[a-z_]+", orders.replace(" or", "")):
            self.assertEqual(sorted(self.listed("--sort", order)), ["10", "11", "9"])
        refused = self.cluster.sql("select wlb_runs_json(null, null, null, 5, null, null, null, null, '-loss')")
        self.assertEqual([run["run_id"] for run in json.loads(refused[0][0])["runs"]], ["10", "9", "11"])
        self.assertRaisesRegex(harness.Failed, "parameter 'sort': 'reason' must be one of run, name", self.cluster.sql,
                               "select wlb_runs_json(null, null, null, 5, null, null, null, null, 'reason')")

    def test_runs_of_others_pass_no_filter(self):
        """Where private_data is set, wlbd gives the asker's uid first."""
        for more in ("", ", '2000-01-01'", ", null, 'llama'", ", null, null, 'n2'", ", null, null, null, 'e'", ", null, null, null, null, 'loss'",
                     ", null, null, null, null, null, null, 'physics'"):
            rows = self.cluster.sql(f"select wlb_runs_json(2, null, null, 9{more})")
            self.assertLessEqual({run["run_id"] for run in json.loads(rows[0][0])["runs"]}, {"10"}, more)

    def test_hostile_names(self):
        rows, shown = self.rows("runs", "--columns", "run,name,account"), "'" + re.sub("[\x1b\x9b\u202e\n]", " ", HOSTILE)
        self.assertEqual(rows[0], {"run_id": "11", "alias": "", "job_name": shown, "account": shown})
        commands = (["runs", "--columns", "name,account"], ["runs", "--json"], ["show", "11"], ["show", "11", "--json"])
        texts = [self.wlb(*words).stdout for words in commands]
        for text in texts:
            self.assertNotRegex(text, "[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]")
        self.assertEqual(json.loads(texts[1])["runs"][0]["job_name"], HOSTILE)
        self.assertIn(r"\u009B2J\u202E", texts[1])

    def on_terminal(self, columns, *words, **env):
        """What the command prints on a terminal, and its lines without colours."""
        terminal = Terminal(self.cluster, *words[1:], command=words[0], columns=columns, **({"NO_COLOR": ""} | env))
        self.addCleanup(os.close, terminal.fd)
        self.assertEqual(terminal.end(), 0)
        return terminal.text, CODES.sub("", terminal.text.replace("\r", "")).splitlines()

    def test_terminal(self):
        for columns in (80, 40):
            for words in (["runs"], ["steps", "9", "--to", "3"]):
                text, lines = self.on_terminal(columns, *words)
                self.assertLessEqual(max(map(len, lines)), columns)
                self.assertEqual("\x1b[31mfailed\x1b[0m" in text, words == ["runs"])
                self.assertIn("STEP", lines[0])
            plain, _ = self.on_terminal(columns, "runs", NO_COLOR="1")
            self.assertNotIn("\x1b", plain)
        self.assertNotIn("\x1b", self.on_terminal(80, "runs", TERM="dumb")[0])
        _, lines = self.on_terminal(40, "runs")
        self.assertEqual(lines[0].split(), ["RUN", "STATE", "STEP", "LOSS"])
        self.assertEqual(" ".join(lines[4:]), "no room for NAME, USER, NODES, LAYOUT, ATTEMPTS, STARTED, ELAPSED: --columns chooses")
        tables = "\n".join(self.on_terminal(40, "show", "9")[1]).split("\n\n")[1]
        self.assertLessEqual(max(map(len, tables.splitlines())), 40)
        piped = self.wlb("runs").stdout.splitlines()
        self.assertEqual(piped[0].split(), ["RUN", "NAME", "USER", "STATE", "NODES", "LAYOUT", "STEP", "LOSS", "ATTEMPTS", "STARTED",
                                            "ELAPSED"])
        self.assertEqual(len(piped), 4)

    def test_columns(self):
        text = self.wlb("runs", "--columns", "run,model,memory,mfu", "--user", "ann").stdout
        self.assertEqual([line.split() for line in text.splitlines()],
                         [["RUN", "MODEL", "MEMORY", "MFU"], ["11", "-", "-", "-"],
                          ["9", "(8_1)", "llama", "8.03", "G", "3.22", "GB", "40.0", "%"]])
        for words, message in ((["--columns", "run,bogus"], "--columns: 'bogus' must be one of"),
                               (["--sort", "layout"], "--sort: 'layout' must be"), (["--since", "soon"], "--since: 'soon': must be"),
                               (["--json", "--csv"], "choose one of them")):
            done = self.wlb("runs", *words, check=False)
            self.assertEqual((done.returncode, done.stdout), (2, ""))
            self.assertIn(message, done.stderr)

    def test_show(self):
        for name in ("9", "8_1"):
            text = self.wlb("show", name).stdout
            self.assertIn("\n  500 tokens/s\n  newest attempt: MFU 40.0 %, at most 3.22 GB allocated by a rank\n", text)
        attempts = list(csv.DictReader(io.StringIO(self.wlb("show", "8_1", "--csv", "attempts").stdout)))
        self.assertEqual([(row["attempt"], row["nodes"], row["memory_bytes"], row["mfu"]) for row in attempts],
                         [("1", "n1 n2", "3221225472", ""), ("2", "n2 n2", "3221225472", "0.4")])

    def test_a_task_of_an_array(self):
        """Every command that takes RUN knows it by the name that Slurm shows. Nothing of it can be changed, since it has ended."""
        for words, told in ((["faults", "8_1"], "no faults"), (["logs", "8_1"], "run 9: the coordinator does not tell where"),
                            (["top", "--once", "8_1"], "Run 9 (8_1): complete"), (["stacks", "--last", "8_1"], "no stacks of it are kept"),
                            (["set", "8_1", "on-fault=slow=evict"], "has ended (complete)"), (["save", "8_1"], "has ended (complete)")):
            with self.subTest(words):
                done = self.wlb(*words, check=False)
                self.assertIn(told, done.stdout + done.stderr)
        for name in ("8_2", "8"):
            self.assertIn(f"no run {name}", self.wlb("steps", name, check=False).stderr)

    def steps(self, *words):
        return [int(row["step"]) for row in self.rows("steps", "8_1", *words)]

    def test_steps(self):
        every = [k for k in range(1, COUNT + 51) if k <= 40 or k > 90]
        self.assertEqual(self.steps(), every)
        self.assertEqual(self.steps("--from", "38", "--to", "92"), [38, 39, 40, 91, 92])
        self.assertEqual(self.steps("--from", "50", "--to", "60"), [])
        self.assertEqual(self.steps("--every", "30", "--to", "150"), [1, 30, 91, 120, 150])
        self.assertEqual(self.steps("--every", "2", "--from", "35", "--to", "95"), [35, 36, 38, 40, 91, 92, 94])
        of_all = self.steps("--every", "1000000000")
        self.assertEqual(of_all, [1])
        self.assertEqual(self.steps("--points", "3"), [1, (COUNT + 50) // 2, COUNT + 50])
        told = json.loads(self.wlb("steps", "9", "--json", "--to", "2").stdout)
        self.assertEqual((told["run_id"], [(step["step"], step["loss"]) for step in told["steps"]]), ("9", [(1, 1), (2, 0.5)]))
        self.assertEqual(self.wlb("steps", "11").stdout, "no steps\n")
        for words, code, message in ((["9", "--from", "5", "--to", "4"], 2, "--to 4: must not be before --from 5"),
                                     (["9", "--points", "2001"], 2, "--points"), (["9", "--points", "5", "--to", "4"], 2, "--points 5"),
                                     (["999"], 1, "no run 999"), (["../9"], 2, "must be a run's name")):
            done = self.wlb("steps", *words, "--json", check=False)
            self.assertEqual((done.returncode, done.stdout), (code, ""))
            self.assertIn(message, done.stderr)

    def test_a_reader_that_has_enough(self):
        done = self.cluster.run("bash", "-c", "wlb steps 9 --csv | head -1; echo ${PIPESTATUS[0]}")
        self.assertEqual(done.stdout.splitlines()[1:], ["141"])
        self.assertEqual(done.stderr, "")

    def test_the_database_is_away(self):
        self.cluster.verb("stop-db")
        self.addCleanup(self.cluster.verb, "start-db")
        for words in (["runs"], ["runs", "--csv"], ["show", "9", "--json"], ["steps", "9", "--json"]):
            done = self.wlb(*words, check=False)
            self.assertEqual((done.returncode, done.stdout), (1, ""))
            self.assertIn("the database is unavailable", done.stderr)


if __name__ == "__main__":
    harness.main()
