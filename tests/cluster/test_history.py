#!/usr/bin/env python3
"""What the database tells wlbd of a run's earlier attempts when it decides about the next one."""
import concurrent.futures
import itertools
import json

import harness
from found_fault import found_fault
from harness import ClusterTest, wait_for


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


if __name__ == "__main__":
    harness.main()
