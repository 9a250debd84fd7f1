#!/usr/bin/env python3
"""The time that a run lost, by cause: runs whose records have known times, so that every part is known exactly."""
import itertools
import json
import random
from decimal import Decimal

import harness
from found_fault import found_fault
from harness import ClusterTest

BEGAN = 1767225600  # seconds since 1970 at which the runs of these tests were announced
CAUSES = ["detect", "decide", "start", "load", "repeated", "checkpoint", "idle", "other"]


def at(seconds):
    """SQL of that many seconds after the announcement of the run."""
    return f"to_timestamp({BEGAN + seconds})"


class Story:
    """A run, as statements of the functions by which wlbd stores it. Times are seconds after its announcement."""

    jobs = itertools.count(1000)

    def __init__(self):
        self.job = next(self.jobs)
        self.run = f"(select id from runs where job_id = {self.job})"
        self.records = {}
        self.statements = [f"insert into runs (name, job_id, uid, user_name, submitted_at, created_at, confirmed) values "
                           f"('{self.job}', {self.job}, 0, 'root', {at(-30)}, {at(0)}, true)"]

    def add(self, *statements):
        self.statements += statements
        return self

    def attempt(self, number):
        return f"(select id from attempts where run_id = {self.run} and number = {number})"

    def ask(self, number, asked, nodes=4, held=4, spares=0, checkpoint=None):
        """The coordinator's answer to the request for an attempt, of two tasks a node."""
        decision = {"tasks_per_node": 2, "nodes": [f"n{i}" for i in range(nodes)],
                    "spares": [f"s{i}" for i in range(spares)],
                    "checkpoint": {"step": checkpoint, "path": "ck"} if checkpoint else None}
        uuid = f"00000000-0000-4000-8000-{self.job:08d}{number:04d}"
        self.records[number] = []
        return self.add(
            f"select wlb_attempt_start({self.run}, '{uuid}', '{json.dumps(decision)}', '{{}}', {held or 'null'})",
            f"update attempts set created_at = {at(asked)} where id = {self.attempt(number)}")

    def deliver(self, number, source="rank0"):
        """The records that were added to the attempt."""
        body = json.dumps({"first_seq": 1, "records": self.records[number]})
        return self.add(f"select wlb_deliver({self.attempt(number)}, '{source}', '{body}', '{{}}')")

    def tell(self, number, when, record, **data):
        self.records[number].append({"seq": len(self.records[number]) + 1, "time": BEGAN + when, "type": record,
                                     "data": data})
        return self

    def workers(self, number, when, ranks=8, resumed=0):
        return self.tell(number, when, "attempt", world_size=ranks, resumed_step=resumed,
                         rank_map=[{"rank": i, "node": f"n{i // 2}", "local_rank": i % 2} for i in range(ranks)])

    def step(self, number, when, step, seconds=1):
        return self.tell(number, when, "step", step=step, step_time_s=seconds, loss=2.0, tokens=10)

    def save(self, number, when, step, seconds, **stall):
        return self.tell(number, when, "checkpoint", step=step, path="ck", duration_s=seconds, **stall)

    def lose_node(self, number, alive, detected):
        return self.add(
            found_fault(self.attempt(number), "node_lost", "n3", step=6, detail="silent", proof={"alive_at": BEGAN + alive},
                        at=at(detected - 0.1)),
            f"select wlb_attempt_blame({self.attempt(number)}, 'node n3 is lost', {at(detected)})")

    def fail_step(self, number, detected):
        """A fault of which only the time is known when it was noticed."""
        return self.add(
            found_fault(self.attempt(number), "step_failed", detail="exit code 1", at=at(detected)),
            f"select wlb_attempt_end({self.attempt(number)}, 'failed', 1, 'exit code 1', {at(detected)})")

    def end(self, state, when):
        return self.add(f"select wlb_run_end({self.run}, '{state}', '', 'launcher')",
                        f"update runs set ended_at = {at(when)} where id = {self.run}")


def six_steps(story, number=1):
    """Asked for at 2; the Slurm step, then its workers; steps of a second; a checkpoint after the fourth."""
    story.tell(number, 4, "event", kind="step_started", detail="1.0").workers(number, 5)
    for step, when in enumerate((10, 11, 12, 13), 1):
        story.step(number, when, step)
    return story.save(number, 13.5, 4, 0.5).step(number, 14.5, 5).step(number, 15.75, 6).deliver(number)


class TimeLostTest(ClusterTest):
    nodes = 1
    database = "times"

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.make_database(cls.database)

    @classmethod
    def make_database(cls, name):
        cls.cluster.sql(f"create database {name}")
        cls.cluster.run("wlb", "db", "migrate", "--database", " ".join(
            [f"host={cls.cluster.env['PGHOST']}", f"user={cls.cluster.env['PGUSER']}", f"dbname={name}"]))

    @classmethod
    def psql(cls, *words):
        return cls.cluster.run("psql", "-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-d", cls.database, *words).stdout

    def sql(self, query):
        return [line.split("|") for line in self.psql("-c", query).splitlines()]

    def play(self, story):
        """Stores a run; returns its times: held, effective and those of all causes."""
        self.psql("-c", "; ".join(story.statements))
        return self.times(story)

    def times(self, story):
        rows = self.sql("select held_s, effective_s, lost_s, ettr, cause, seconds, share from run_ettr join run_time_lost "
                        f"using (run_id) where run_ettr.run = '{story.job}'")
        times = {row[4]: Decimal(row[5]) for row in rows}
        self.assertEqual(sorted(times), sorted(CAUSES))
        held, effective, lost, ettr = rows[0][:4]
        if effective:
            self.assertEqual(Decimal(held) - Decimal(effective), Decimal(lost))
            self.assertEqual(sum(times.values()), Decimal(lost))
            self.assertEqual(round(Decimal(effective) / Decimal(held), 6), Decimal(ettr))
        else:
            self.assertEqual([lost, ettr, sum(times.values())], ["", "", Decimal(held)])
        return {"held": Decimal(held), "effective": Decimal(effective) if effective else None} | times

    def check(self, times, **expected):
        """Causes that are not given are expected to have taken no time."""
        expected = dict.fromkeys(CAUSES, 0) | expected
        self.assertEqual({name: times[name] for name in expected},
                         {name: value if value is None else Decimal(str(value)) for name, value in expected.items()})


class Parts(TimeLostTest):
    def two_attempts(self, **second):
        """A node is lost in the seventh step; the second attempt repeats two steps and completes the run."""
        story = six_steps(Story().ask(1, 2, spares=1, held=5)).lose_node(1, alive=16, detected=18)
        story.ask(2, 18.7, nodes=3, checkpoint=4, **second).workers(2, 20, ranks=6, resumed=4)
        for step, when in enumerate((22.125, 23.125, 24.125, 25.125), 5):
            story.step(2, when, step)
        story.save(2, 25.5, 8, 0.375).deliver(2)
        return story.add(f"select wlb_attempt_end({story.attempt(2)}, 'complete', 0, '', {at(26)})").end("complete", 26.5)

    def test_every_cause(self):
        story = self.two_attempts(held=4)
        times = self.play(story)
        # 8 of 10 ranks work in the first attempt, whose first 4 steps count, and 6 of 8 in the second.
        self.check(times, held=26.5, effective=3.2 + 3, idle=0.8 + 1, detect=2, decide=0.7, start=3 + 1.3,
                   load=4 + 1.125, repeated=2 + 0.25, checkpoint=0.5 + 0.375, other=2 + 0.25 + 1)
        reply = json.loads(self.psql("-c", f"select wlb_time_lost_json({story.run})"), parse_float=Decimal, parse_int=Decimal)
        self.assertEqual([reply["held_s"], reply["effective_s"], reply["ettr"]],
                         [times["held"], times["effective"], round(times["effective"] / times["held"], 6)])
        self.assertEqual({entry["cause"]: entry["seconds"] for entry in reply["causes"]},
                         {cause: times[cause] for cause in CAUSES})
        self.assertEqual([entry["share"] for entry in reply["causes"]],
                         [round(times[cause] / times["held"], 6) for cause in CAUSES])

    def test_a_save_beside_steps(self):
        """Only the time in which no step runs is lost, and not that until the checkpoint is durable."""
        story = Story().ask(1, 2).workers(1, 5).step(1, 10, 1).step(1, 11.25, 2).save(1, 12, 1, 2, stall_s=0.25).step(1, 12.25, 3)
        story.deliver(1).add(f"select wlb_attempt_end({story.attempt(1)}, 'complete', 0, '', {at(12.5)})").end("complete", 12.5)
        self.check(self.play(story), held=12.5, effective=3, start=3, load=4, checkpoint=0.25, other=2.25)

    def test_nodes_that_were_left_out_are_not_known(self):
        """Of an attempt from before held_nodes; all that it was given works."""
        self.check(self.play(self.two_attempts(held=None)), held=26.5, effective=3.2 + 4, idle=0.8, detect=2, decide=0.7,
                   start=4.3, load=5.125, repeated=2.25, checkpoint=0.875, other=3.25)

    def test_a_verdict_says_when_the_hang_began(self):
        story = six_steps(Story().ask(1, 2))
        story.add("insert into verdicts (run_id, attempt_id, watcher, number, kind, state, ranks, rank_count, certainty, "
                  "evidence, action, began_at, found_at, confirmed_at) select run_id, id, 1, 1, 'hang', 'confirmed', '{3}', "
                  f"1, 1, 'it waits', 'evict', {at(16.25)}, {at(20)}, {at(26)} from attempts where id = {story.attempt(1)}",
                  found_fault(story.attempt(1), "hang", rank=3, step=7, detail="it waits", proof={"evicted": "rank 3 hangs"}, at=at(26)),
                  f"select wlb_attempt_blame({story.attempt(1)}, 'rank 3 hangs', {at(26)})").end("failed", 27)
        self.check(self.play(story), held=27, effective=4, start=3, load=4, checkpoint=0.5, other=2.25, repeated=2 + 0.5,
                   detect=9.75, decide=1)


    def test_an_attempt_that_never_reported(self):
        """It was decided to start from step 0, and ended before its workers did anything."""
        story = six_steps(Story().ask(1, 2)).fail_step(1, 17).ask(2, 18)
        story.add(f"select wlb_attempt_end({story.attempt(2)}, 'failed', 1, '', {at(19)})")
        story.ask(3, 20, checkpoint=4).workers(3, 21, resumed=4).step(3, 23, 5).deliver(3)
        story.add(f"select wlb_attempt_end({story.attempt(3)}, 'complete', 0, '', {at(23)})").end("complete", 23)
        times = self.play(story)
        self.assertEqual([times["effective"], times["repeated"]], [5, 2])

    def test_an_attempt_that_may_start_from_nothing(self):
        story = six_steps(Story().ask(1, 2)).fail_step(1, 17).ask(2, 18)
        self.assertEqual(self.play(story)["effective"], 0)


class Ends(TimeLostTest):
    def test_steps_after_the_last_save_are_lost(self):
        story = six_steps(Story().ask(1, 2)).fail_step(1, 17).end("failed", 18)
        self.check(self.play(story), held=18, effective=4, start=3, load=4, repeated=2, checkpoint=0.5, detect=1.25, decide=1,
                   other=2.25)

    def test_a_run_that_saved_nothing(self):
        story = Story().ask(1, 2).workers(1, 5).step(1, 7, 1).step(1, 8, 2).deliver(1).fail_step(1, 9).end("failed", 9)
        self.check(self.play(story), held=9, effective=0, start=3, load=1, repeated=2, detect=1, other=2)

    def test_a_run_that_was_cancelled(self):
        """No fault was noticed: the step under way is cut short."""
        story = six_steps(Story().ask(1, 2))
        story.add(f"select wlb_attempt_end({story.attempt(1)}, 'ended', 143, '', {at(16.25)})").end("cancelled", 16.5)
        self.check(self.play(story), held=16.5, effective=4, start=3, load=4, repeated=2 + 0.5, checkpoint=0.5, decide=0.25,
                   other=2.25)

    def test_a_run_under_way(self):
        """The steps count that were done since the last save. What comes after them is not lost yet."""
        times = self.play(six_steps(Story().ask(1, 2)))
        self.check(times, effective=6, start=3, load=4, checkpoint=0.5, other=times["held"] - Decimal("13.5"))
        self.assertGreater(times["held"], 1000)

    def test_a_run_that_loads(self):
        times = self.play(Story().ask(1, 2).workers(1, 5).deliver(1))
        self.check(times, effective=0, start=3, load=times["held"] - 5, other=2)

    def test_a_run_that_starts(self):
        times = self.play(Story().ask(1, 2))
        self.check(times, effective=None, start=times["held"] - 2, other=2)

    def test_an_attempt_that_ended_while_it_loaded(self):
        story = Story().ask(1, 2).workers(1, 5).deliver(1).fail_step(1, 7).end("failed", 9)
        self.check(self.play(story), held=9, effective=0, start=3, load=2, decide=2, other=2)

    def over(self, ended):
        """A complete run whose job has ended, as wlbd learns much later; the launcher has recorded the attempt's end."""
        story = six_steps(Story().ask(1, 2))
        return story.add(f"select wlb_attempt_end({story.attempt(1)}, 'complete', 0, '', {at(16)})",
                         f"select wlb_run_end({story.run}, 'complete', '', 'slurm', {ended})")

    COMPLETE = {"effective": 6, "start": 3, "load": 4, "checkpoint": 0.5}

    def test_a_job_whose_end_was_learnt_late(self):
        self.check(self.play(self.over(at(17))), held=17, other=3.5, **self.COMPLETE)

    def test_a_job_that_slurm_has_forgotten(self):
        """The attempt's end is the last that is known of it."""
        self.check(self.play(self.over("null")), held=16, other=2.5, **self.COMPLETE)

    def test_an_end_from_before_the_attempt(self):
        """Slurm's is that of the job before it was requeued."""
        story = six_steps(Story().ask(1, 2)).add("select 1")
        story.add(f"select wlb_run_end({story.run}, 'failed', 'x', 'slurm', {at(1)})")
        self.assertEqual(self.play(story)["held"], 2)

    def test_a_run_without_an_attempt(self):
        story = Story()
        story.add(f"select wlb_run_end({story.run}, 'failed', 'x', 'slurm', {at(9)})")
        self.check(self.play(story), held=9, effective=None, other=9)

    def test_a_command_that_records_no_steps(self):
        story = Story().ask(1, 2).tell(1, 4, "event", kind="step_started", detail="1.0").deliver(1, "run")
        story.add(f"select wlb_attempt_end({story.attempt(1)}, 'complete', 0, '', {at(30)})").end("complete", 31)
        self.check(self.play(story), held=31, effective=None, start=2, other=29)


class SaveInterval(TimeLostTest):
    """By the faults and node-hours of its owner's runs, and by its own stalls."""
    database = "intervals"
    owners = itertools.count(1000)

    def owned(self, owner, story):
        self.psql("-c", "; ".join(story.add(f"update runs set uid = {owner} where id = {story.run}").statements))
        return story

    def broken(self):
        return six_steps(Story().ask(1, 2)).fail_step(1, 17).end("failed", 18)

    def suggested(self, story):
        return json.loads(self.psql("-c", f"select wlb_save_interval_json({story.run})").strip() or "null")

    def test_five_faults_are_enough(self):
        owner = next(self.owners)
        stories = [self.owned(owner, self.broken()) for _ in range(4)]
        self.owned(next(self.owners), self.broken())
        self.owned(owner, Story().ask(1, 2).workers(1, 5).deliver(1).fail_step(1, 9).end("failed", 9))  # it made no step
        self.assertIsNone(self.suggested(stories[0]))
        self.owned(owner, self.broken())
        # A fault in 6.5 s of four nodes, and a stall of 0.5 s.
        found = self.suggested(stories[0])
        self.assertAlmostEqual(found.pop("interval_s"), 6.5 ** 0.5)
        self.assertAlmostEqual(found.pop("cost_s"), 6.5 ** 0.5)
        self.assertAlmostEqual(found.pop("cost_steps"), 6.5 ** 0.5)
        self.assertAlmostEqual(found.pop("node_hours"), 5 * 4 * 6.5 / 3600)
        self.assertAlmostEqual(found.pop("fault_s"), 6.5)
        self.assertEqual(found, {"interval_steps": 3, "now_s": None, "now_cost_s": None, "now_cost_steps": None, "stall_s": 0.5,
                                 "faults": 5, "nodes": 4})

    def test_what_saves_cost_now(self):
        """They are 4 s apart. A save is durable only after 3 s: none can begin sooner."""
        owner = next(self.owners)
        story = Story().ask(1, 2).workers(1, 5)
        for step in range(1, 13):
            story.step(1, 10 + step, step)
            if step % 4 == 0:
                story.tell(1, 10.25 + step, "checkpoint", step=step, path="ck", duration_s=3, stall_s=0.25)
        self.owned(owner, story.deliver(1).fail_step(1, 24).end("failed", 25))
        for _ in range(4):
            self.owned(owner, self.broken())
        found = self.suggested(story)
        fault_s = (12.75 + 4 * 6.5) / 5
        self.assertEqual([found[key] for key in ("interval_s", "interval_steps", "now_s", "stall_s")], [3, 3, 4, 0.25])
        self.assertAlmostEqual(found["fault_s"], fault_s)
        self.assertAlmostEqual(found["now_cost_s"], 0.25 * fault_s / 4 + 2)
        self.assertAlmostEqual(found["now_cost_steps"], 0.25 * fault_s / 4 + 2)

    def test_the_interval(self):
        """stall, durable and time between faults, in seconds."""
        for args, expected in (((2, 3, 100), 20), ((2, 30, 100), 30), ((80, 80, 100), 100), ((2, None, 100), 20)):
            numbers = ", ".join("null" if number is None else str(number) for number in args)
            self.assertEqual(float(self.sql(f"select wlb_save_interval({numbers})")[0][0]), expected, args)


class Waits(TimeLostTest):
    def requeued(self):
        """wlbd has had the job requeued after its launcher was lost."""
        story = six_steps(Story().ask(1, 2))
        story.add(found_fault(story.attempt(1), "launcher_lost", "n0", detail="killed", at=at(16)),
                  f"select wlb_attempt_blame({story.attempt(1)}, 'wlb run was killed', {at(20)})",
                  f"select wlb_run_requeue({story.run}, {story.attempt(1)}, 'wlb run was killed', 3, {at(20)})",
                  f"update queue_waits set began_at = {at(21)} where run_id = {story.run}")
        return story

    LOST = {"start": 3, "load": 4, "repeated": 2.25, "checkpoint": 0.5, "detect": 4, "other": 2.25}

    def test_a_job_that_waits(self):
        times = self.play(self.requeued())
        self.check(times, held=21, effective=4, decide=1, **self.LOST)

    def test_a_job_that_goes_on(self):
        story = self.requeued()
        story.add(f"update runs set restart_count = restart_count + 1 where id = {story.run}",
                  f"update queue_waits set ended_at = {at(121)} where run_id = {story.run} and ended_at is not null")
        story.ask(2, 125, checkpoint=4).workers(2, 126, resumed=4).step(2, 128, 5).deliver(2)
        story.add(f"select wlb_attempt_end({story.attempt(2)}, 'complete', 0, '', {at(128)})").end("complete", 128)
        times = self.play(story)
        self.check(times, held=28, effective=5, decide=5, **self.LOST | {"start": 4, "load": 5})

    def test_a_start_that_was_not_announced(self):
        """wlbd was away: the wait ends with the next attempt at the latest, and not in the one after it."""
        story = self.requeued().ask(2, 121, checkpoint=4).workers(2, 122, resumed=4).step(2, 124, 5).deliver(2)
        story.fail_step(2, 125).ask(3, 127, checkpoint=4).workers(3, 128, resumed=4).step(3, 130, 5).deliver(3)
        story.add(f"select wlb_attempt_end({story.attempt(3)}, 'complete', 0, '', {at(130)})").end("complete", 130)
        self.check(self.play(story), held=30, effective=5, decide=1 + 2,
                   **self.LOST | {"start": 5, "load": 6, "repeated": 3.25, "detect": 5})

    def test_a_job_that_slurm_queued_again(self):
        """It begins where the run had ended, and is over when the job announces itself with a greater count."""
        story = six_steps(Story().ask(1, 2)).fail_step(1, 17).end("failed", 18)
        story.add(f"update runs set restart_count = 1, ended_at = null, ended_by = null, state = 'restarting' "
                  f"where id = {story.run}")
        self.play(story)
        wait = self.sql("select extract(epoch from began_at), ended_at > now() - interval '1 min' from queue_waits "
                        f"where run_id = {story.run}")
        self.assertEqual([[float(wait[0][0]), wait[0][1]]], [[BEGAN + 18, "t"]])
        self.check(self.times(story) | {"held": 0, "decide": 0}, effective=4,
                   **self.LOST | {"repeated": 2, "detect": 1.25})

    def queued(self):
        """The attempt has saved and stopped, and `wlb run` has its job requeued; wlbd sees it in the queue."""
        story = six_steps(Story().ask(1, 2))
        return story.add(f"select wlb_attempt_end({story.attempt(1)}, 'ended', 85, '', {at(16)})",
                         f"update runs set state = 'restarting' where id = {story.run}",
                         *[f"select wlb_run_queued({story.run}, 1)"] * 2)

    STOPPED = {"effective": 4, "start": 3, "load": 4, "repeated": 2 + 0.25, "checkpoint": 0.5, "other": 2.25}

    def test_a_job_that_was_seen_queued(self):
        self.check(self.play(self.queued()), held=16, **self.STOPPED)

    def test_a_job_that_was_cancelled_in_the_queue(self):
        story = self.queued()
        story.add(f"select wlb_run_end({story.run}, 'cancelled', 'x', 'slurm', {at(1000)})")
        self.check(self.play(story), held=16, **self.STOPPED)

    def test_a_job_that_was_seen_queued_starts_again(self):
        story = self.queued()
        story.add(f"update runs set restart_count = 1 where id = {story.run}",
                  f"update queue_waits set ended_at = {at(121)} where run_id = {story.run} and ended_at is not null",
                  f"select wlb_run_queued({story.run}, 1)")
        story.ask(2, 125, checkpoint=4).workers(2, 126, resumed=4).step(2, 128, 5).deliver(2)
        story.add(f"select wlb_attempt_end({story.attempt(2)}, 'complete', 0, '', {at(128)})").end("complete", 128)
        self.check(self.play(story), held=16 + 7, effective=5, start=3 + 1, load=4 + 1, repeated=2.25, checkpoint=0.5,
                   decide=4, other=2.25)
        self.assertEqual(self.sql(f"select count(*) from queue_waits where run_id = {story.run}"), [["1"]])

    def test_a_job_whose_attempt_is_open_is_not_in_the_queue(self):
        story = six_steps(Story().ask(1, 2))
        story.add(f"select wlb_run_queued({story.run}, 1)")
        self.play(story)
        self.assertEqual(self.sql(f"select count(*) from queue_waits where run_id = {story.run}"), [["0"]])

    def test_a_job_that_started_again_while_the_coordinator_was_away(self):
        """The first record of the attempt tells the count of restarts, and the announcement that follows adds no wait."""
        story = six_steps(Story().ask(1, 2))
        uuid = f"00000000-0000-4000-8000-{story.job:08d}0002"
        story.add(f"select wlb_attempt_end({story.attempt(1)}, 'ended', 85, '', {at(16)})",
                  f"select wlb_attempt_ensure('{story.job}', '{uuid}', {story.job}, 0, 'root', 'c', 'j', {at(-30)}, 1, false)")
        story.records[2] = []
        story.workers(2, 126, resumed=4).step(2, 128, 5).deliver(2)
        story.add(f"update runs set restart_count = 1 where id = {story.run}",
                  f"select wlb_attempt_end({story.attempt(2)}, 'complete', 0, '', {at(128)})").end("complete", 128)
        self.check(self.play(story), held=16 + 2, effective=5, start=3, load=4 + 1, repeated=2.25, checkpoint=0.5, other=2.25)
        self.assertEqual(self.sql(f"select restart_count from runs where id = {story.run}"), [["1"]])
        self.assertEqual(self.sql(f"select count(*) from queue_waits where run_id = {story.run}"), [["1"]])

    def test_an_attempt_that_was_open_when_its_job_started_again(self):
        """wlbd was away in between: the attempt ends where it was last known."""
        story = six_steps(Story().ask(1, 2))
        uuid = f"00000000-0000-4000-8000-{story.job:08d}0002"
        story.add(f"select wlb_attempt_ensure('{story.job}', '{uuid}', {story.job}, 0, 'root', 'c', 'j', {at(-30)}, 1, false)")
        story.records[2] = []
        story.workers(2, 126, resumed=4).step(2, 128, 5).deliver(2)
        story.add(f"select wlb_attempt_end({story.attempt(2)}, 'complete', 0, '', {at(128)})").end("complete", 128)
        self.check(self.play(story), held=15.75 + 2, effective=5, start=3, load=4 + 1, repeated=2, checkpoint=0.5, other=2.25)

    def test_an_attempt_of_the_start_before(self):
        """It becomes known from its records while its job is in the queue: the run waits on."""
        story = six_steps(Story().ask(1, 2))
        uuid = f"00000000-0000-4000-8000-{story.job:08d}0002"
        story.add(f"select wlb_attempt_end({story.attempt(1)}, 'failed', 1, '', {at(16)})",
                  f"select wlb_attempt_ensure('{story.job}', '{uuid}', {story.job}, 0, 'root', 'c', 'j', {at(-30)}, 1, true)",
                  f"select wlb_attempt_requeued({story.attempt(2)}, 1, 'job was requeued', now())")
        self.play(story)
        self.assertEqual(self.sql("select r.restart_count, r.state, q.ended_at is null from runs r join queue_waits q "
                                  f"on q.run_id = r.id where r.id = {story.run}"), [["0", "restarting", "t"]])

    def test_a_requeue_that_was_seen_late(self):
        """The attempt ends when Slurm has queued the job, and not when wlbd sees it; a time before it is none."""
        for queued, expected in ((17, BEGAN + 17), (-30, None), (1e9, None)):
            story = six_steps(Story().ask(1, 2))
            story.add(f"select wlb_attempt_requeued({story.attempt(1)}, 1, 'job was requeued', {at(queued)})")
            self.play(story)
            times = self.sql("select extract(epoch from a.ended_at), extract(epoch from r.requeued_at), a.ended_at > now() - "
                             f"interval '1 min' and a.ended_at <= now() from attempts a join runs r on r.id = a.run_id "
                             f"where r.id = {story.run}")[0]
            if expected:
                self.assertEqual([float(time) for time in times[:2]], [expected] * 2)
            self.assertEqual(times[2], "f" if expected else "t")

    def test_a_requeue_that_was_decided_late(self):
        """The wait begins where the job ended, and not where wlbd learnt of it."""
        story = six_steps(Story().ask(1, 2)).fail_step(1, 17)
        story.add(f"select wlb_run_requeue({story.run}, {story.attempt(1)}, 'wlb run was killed', 3, {at(18)})")
        self.check(self.play(story), held=18, effective=4, decide=1, **self.LOST | {"repeated": 2, "detect": 1.25})

    def test_a_requeue_after_the_clock_was_set_back(self):
        """The stored time of the one before is an hour ahead of the clock: it was not done just now."""
        story = self.requeued()
        self.play(story)
        again = f"select wlb_run_requeue({story.run}, {story.attempt(1)}, 'wlb run was killed', 3, {at(22)})"
        self.assertEqual(self.sql(again), [["-1"]])
        self.psql("-c", f"update runs set requeued_at = now() + interval '1 hour' where id = {story.run}")
        self.assertEqual([self.sql(again), self.sql(again)], [[["2"]], [["-1"]]])
        self.assertEqual(self.sql(f"select detail from events where run_id = {story.run} and kind = 'job_requeued' order by id"),
                         [[f"wlb run was killed; job {story.job} is requeued, {time} of at most 3 times"] for time in (1, 2)])

    def test_a_job_that_worked_on_after_its_run(self):
        """The run is complete, and much later the node of the job's script is down: the time between is not the run's."""
        story = six_steps(Story().ask(1, 2))
        story.add(f"select wlb_attempt_end({story.attempt(1)}, 'complete', 0, '', {at(16)})").end("complete", 17)
        story.add(f"select wlb_run_job_without_script({story.run}, 0, 'job_requeued', 'n0 is down')")
        whole = {"held": 17, "effective": 6, "start": 3, "load": 4, "checkpoint": 0.5, "other": 3.5}
        self.check(self.play(story), **whole)
        self.psql("-c", f"update runs set restart_count = 1 where id = {story.run}")
        self.psql("-c", f"select wlb_run_end({story.run}, 'cancelled', 'x', 'slurm', now())")
        times = self.times(story)
        self.check(times, **whole | {"held": times["held"], "other": times["held"] - Decimal("13.5")})
        self.assertLess(times["held"], 60)

    def test_a_new_run_has_not_waited(self):
        story = Story()
        story.add(f"update runs set restart_count = 3 where id = {story.run}")
        self.play(story)
        self.assertEqual(self.sql(f"select count(*) from queue_waits where run_id = {story.run}"), [["0"]])

    def test_their_number_is_bounded(self):
        story = six_steps(Story().ask(1, 2)).fail_step(1, 17)
        story.add(f"do $$ begin for n in 1..1010 loop update runs set requeued_at = now() + n * interval '1 s' where id = "
                  f"{story.run}; update runs set restart_count = n where id = {story.run}; end loop; end $$")
        self.play(story)
        self.assertEqual(self.sql(f"select count(*) from queue_waits where run_id = {story.run}"), [["1000"]])


class Suspensions(TimeLostTest):
    def suspend(self, story, began, ended):
        return story.add(*[f"select wlb_run_suspended({story.run}, true, {at(began)})"] * 2,
                         *[f"select wlb_run_suspended({story.run}, false, {at(ended)})"] * 2 if ended else [])

    def test_a_step_goes_on_in_it(self):
        """The clock of a step's time runs on: the step of 101 s has worked for one."""
        story = Story().ask(1, 2).workers(1, 5).step(1, 10, 1).step(1, 111, 2, 101).step(1, 112, 3).save(1, 112.5, 3, 0.5)
        story.deliver(1).add(f"select wlb_attempt_end({story.attempt(1)}, 'complete', 0, '', {at(113)})").end("complete", 113)
        times = self.play(self.suspend(story, 10.25, 110.25))
        self.check(times, held=13, effective=3, start=3, load=4, checkpoint=0.5, other=2.5)

    def test_a_step_that_is_lost_goes_on_in_it(self):
        """The first suspension is in a step that counts, the second in one after the checkpoint."""
        story = Story().ask(1, 2).workers(1, 5).step(1, 110, 1, 101).step(1, 111, 2).save(1, 111.5, 2, 0.5)
        story.step(1, 212.5, 3, 101).step(1, 213.5, 4).deliver(1).fail_step(1, 214).end("failed", 214)
        self.suspend(self.suspend(story, 9.25, 109.25), 112, 212)
        self.check(self.play(story), held=14, effective=2, start=3, load=4, repeated=2, checkpoint=0.5, detect=0.5, other=2)

    def test_a_step_that_was_done_again_went_on_in_it(self):
        """Its row is no longer the one of the step."""
        story = Story().ask(1, 2).workers(1, 5).step(1, 10, 1).save(1, 10.5, 1, 0.5).step(1, 111.5, 2, 101).deliver(1)
        self.suspend(story, 11, 111).fail_step(1, 112)
        story.ask(2, 113, checkpoint=1).workers(2, 114, resumed=1).step(2, 116, 2).deliver(2)
        story.add(f"select wlb_attempt_end({story.attempt(2)}, 'complete', 0, '', {at(116)})").end("complete", 116)
        self.check(self.play(story), held=16, effective=2, start=4, load=5, repeated=1, checkpoint=0.5, detect=0.5, decide=1,
                   other=2)

    def test_a_save_goes_on_in_it(self):
        """In two of them; a second passes between it and the next step."""
        story = Story().ask(1, 2).workers(1, 5).step(1, 10, 1).save(1, 210.5, 1, 200.5).step(1, 212.5, 2).deliver(1)
        self.suspend(self.suspend(story, 10.125, 100.125), 100.25, 210.25)
        story.add(f"select wlb_attempt_end({story.attempt(1)}, 'complete', 0, '', {at(213)})").end("complete", 213)
        self.check(self.play(story), held=13, effective=2, start=3, load=4, checkpoint=0.5, other=3.5)

    def test_the_stall_of_a_save_goes_on_in_it(self):
        story = Story().ask(1, 2).workers(1, 5).step(1, 10, 1).step(1, 211.25, 2).save(1, 212, 1, 202, stall_s=200.25).deliver(1)
        self.suspend(story, 10.125, 210.125)
        story.add(f"select wlb_attempt_end({story.attempt(1)}, 'complete', 0, '', {at(212.5)})").end("complete", 212.5)
        self.check(self.play(story), held=12.5, effective=2, start=3, load=4, checkpoint=0.25, other=3.25)

    def test_one_between_attempts(self):
        story = six_steps(Story().ask(1, 2)).fail_step(1, 17)
        self.suspend(story, 20, 120)
        story.ask(2, 125, checkpoint=4).workers(2, 126, resumed=4).step(2, 128, 5).deliver(2)
        story.add(f"select wlb_attempt_end({story.attempt(2)}, 'complete', 0, '', {at(128)})").end("complete", 128)
        self.check(self.play(story), held=28, effective=5, decide=8, **Waits.LOST | {
            "start": 4, "load": 5, "repeated": 2, "detect": 1.25})

    def test_a_run_that_ended_in_it(self):
        story = self.suspend(six_steps(Story().ask(1, 2)), 15.75, None)
        story.add(f"select wlb_run_end({story.run}, 'cancelled', 'x', 'slurm', {at(1000)})")
        self.assertEqual(self.play(story)["held"], Decimal("15.75"))

    def test_one_of_which_no_end_was_seen(self):
        """wlbd was away when the job was resumed; the launcher reports the end before the job is asked about."""
        story = self.suspend(Story().ask(1, 2).workers(1, 5).step(1, 10, 1), 10.25, None)
        story.step(1, 111, 2, 101).step(1, 112, 3).deliver(1)
        story.add(f"select wlb_attempt_end({story.attempt(1)}, 'complete', 0, '', {at(113)})").end("complete", 113)
        self.check(self.play(story), held=113 - 100.75, effective=2.25, start=3, load=4, other=3)

    def test_a_step_that_was_just_being_recorded(self):
        """Slurm gives the time of the suspension in whole seconds, so that it may be before that of the step: it goes on."""
        story = self.suspend(Story().ask(1, 2).workers(1, 5).step(1, 10, 1).step(1, 10.45, 2, 0.4), 10.25, None)
        story.step(1, 111, 3, 100.5).deliver(1)
        story.add(f"select wlb_attempt_end({story.attempt(1)}, 'complete', 0, '', {at(113)})").end("complete", 113)
        self.play(story)
        self.assertEqual(self.sql("select extract(epoch from ended_at - began_at)::float8 from suspensions "
                                  f"where run_id = {story.run}"), [["100.75"]])

    def test_their_number_is_bounded(self):
        story = Story()
        story.add(f"select wlb_run_suspended({story.run}, true, {at(0)} + 2 * n * interval '1 s'), "
                  f"wlb_run_suspended({story.run}, false, {at(1)} + 2 * n * interval '1 s') from generate_series(1, 1010) as n")
        self.play(story)
        self.assertEqual(self.sql(f"select count(*) from suspensions where run_id = {story.run}"), [["1000"]])


class Bounds(TimeLostTest):
    TIMES = [*(at(n) for n in range(-100, 400, 25)), "'infinity'", "'-infinity'", "'294276-12-31'", "'4713-01-01 BC'", "null"]

    def when(self, is_null_possible=True):
        return random.choice(self.TIMES[:None if is_null_possible else -1])

    def random_run(self):
        """A run whose times follow no order."""
        story = Story()
        for number in range(1, random.randint(1, 5)):
            story.ask(number, random.randint(0, 300), held=random.choice([None, 1, 4, 9]),
                      checkpoint=random.choice([None, 3])).workers(number, random.randint(-50, 300))
            for step in range(1, random.randint(1, 9)):
                story.step(number, random.randint(0, 300), step, random.choice([None, 0, 0.001, 5, 1e7]))
            story.save(number, random.randint(0, 300), random.randint(1, 9), random.choice([None, 3, 1e7])).deliver(number)
            if random.random() < 0.7:
                random.choice((story.fail_step, lambda n, d, s=story: s.lose_node(n, random.randint(0, 300), d)))(
                    number, random.randint(0, 300))
            if random.random() < 0.5:
                story.add(f"update attempts set reported_at = {self.when()}, started_at = {self.when()}, ended_at = "
                          f"{self.when()}, created_at = {self.when(False)} where id = {story.attempt(number)}",
                          f"insert into queue_waits (run_id, began_at, ended_at) values ({story.run}, {self.when(False)}, "
                          f"{self.when()})")
        if random.random() < 0.3:
            story.add(f"insert into suspensions (run_id, began_at, ended_at) values ({story.run}, {self.when(False)}, {self.when()})")
        if random.random() < 0.7:
            story.end(random.choice(("complete", "failed")), random.randint(-10, 300))
        return story.add(f"update runs set created_at = {self.when(False)}, started_at = {self.when()}, submitted_at = "
                         f"{random.choice(['submitted_at', self.when()])} where id = {story.run}")

    def test_clocks_that_disagree(self):
        """Whatever is recorded, no part is negative and all parts make the time held."""
        random.seed(20)
        runs = [self.random_run() for _ in range(150)]
        for story in runs:
            self.psql("-c", "; ".join(story.statements))
        wrong = self.sql("select name, t from runs r cross join lateral wlb_run_time(r.id) as t cross join lateral "
                         "wlb_run_bounds(r.id) as b cross join lateral wlb_seconds_between(b.began, b.ended) as whole_s "
                         "where not coalesce(least(effective_s, detect_s, decide_s, start_s, load_s, repeated_s, checkpoint_s, "
                         "idle_s, other_s) >= 0 and held_s = effective_s + detect_s + decide_s + start_s + load_s + repeated_s + "
                         "checkpoint_s + idle_s + other_s and case when exists (select from queue_waits where run_id = r.id) "
                         "or exists (select from suspensions where run_id = r.id) then held_s <= whole_s else held_s = whole_s end, false)")
        self.assertEqual(wrong, [])
        self.assertGreater(int(self.sql("select count(*) from run_ettr where effective_s > 0")[0][0]), 20)

    def test_a_long_run_is_not_read(self):
        """300,000 steps in 100 attempts, each of which was suspended in one: only the first and the last of each attempt, those in
        suspensions, and those after the last save."""
        story = Story()
        self.psql("-c", "; ".join(story.statements + [f"""
            insert into attempts (run_id, number, uuid, state, created_at, started_at, ended_at, world_size, resumed_step,
                step_seconds)
            select {story.run}, n, gen_random_uuid(), 'failed', {at(0)} + n * interval '4000 s',
                {at(0)} + n * interval '4000 s' + interval '10 s', {at(0)} + n * interval '4000 s' + interval '3100 s', 8,
                n * 3000 - 3000, 3000 from generate_series(1, 100) n;
            insert into steps (run_id, step, attempt_id, step_time_s, recorded_at)
            select {story.run}, a.number * 3000 - 3000 + s, a.id, 1, a.created_at + interval '100 s' + s * interval '1 s'
            from attempts a, generate_series(1, 3000) s where a.run_id = {story.run};
            insert into checkpoints (run_id, attempt_id, step, path, duration_s, recorded_at)
            select {story.run}, {story.attempt(100)}, 299900, 'ck', 1, {at(404000)};
            insert into suspensions (run_id, began_at, ended_at)
            select {story.run}, {at(0)} + n * interval '4000 s' + interval '1000.25 s',
                {at(0)} + n * interval '4000 s' + interval '1000.75 s' from generate_series(1, 100) n;
            analyze"""]))
        story.statements = [*story.end("failed", 405000).statements[-2:]]
        times = self.play(story)
        self.assertEqual([times["effective"], times["repeated"]], [299900 - 100 * Decimal("0.5"), 100])
        read = int(self.sql(f"select (wlb_run_time({story.run})).held_s is null; "
                            "select seq_tup_read + idx_tup_fetch from pg_stat_xact_user_tables where relname = 'steps'")[-1][0])
        print(f"{read} rows of steps were read", end=" ")
        self.assertTrue(200 <= read < 2000, read)


if __name__ == "__main__":
    harness.main()
