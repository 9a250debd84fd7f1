#!/usr/bin/env python3
"""What records may hold, and that nothing stored can make a list or a story fail."""
import concurrent.futures
import itertools
import json
import random
import subprocess
import time
import uuid

import harness
from harness import clock_s, wait_for
from test_wlbd_api import NOBODY, ApiTest, event, step

EXTREMES = {
    "bigint": ["-9223372036854775808", "9223372036854775807", "0", "null"],
    "integer": ["-2147483648", "2147483647", "0", "null"],
    "numeric": ["'NaN'", "'Infinity'", "1e300", "-1e300", "null"],
    "double precision": ["'NaN'", "'Infinity'", "'-Infinity'", "1.7e308", "-1.7e308", "4.9e-324", "1e-300", "null"],
    "timestamp with time zone": ["'infinity'", "'-infinity'", "'294276-12-31'", "'4713-01-01 BC'", "now()", "null"],
    "jsonb": ["""'{"parameters": 1e300, "forward_s": "long"}'""", "'[[1e1000], 99999999999999999999]'", "'\"text\"'",
              "'null'", "null"],
}


class RecordsTest(ApiTest):
    def stored_run(self, steps=2):
        """A run with one attempt and some steps: its name and its key in the database."""
        run, attempt = self.new_run(), str(uuid.uuid4())
        status, reply = self.deliver(run, attempt, [step(n, n) for n in range(1, steps + 1)])
        self.assertEqual(status, 200, reply)
        return run, int(self.cluster.sql(f"select max(id) from runs where name = '{run}'")[0][0])

    def check_numbers(self, value):
        """Every number is one that an int64 or a double holds."""
        if isinstance(value, dict):
            value = list(value.values())
        if isinstance(value, list):
            for entry in value:
                self.check_numbers(entry)
        if isinstance(value, int):
            self.assertTrue(-2**63 <= value < 2**63, value)
        if isinstance(value, float):
            self.assertTrue(abs(value) < float("inf"), value)

    def check_reads(self, run):
        """All that can be read of the run, and the list of all runs."""
        for path in ("/v1/runs", f"/v1/runs/{run}", f"/v1/runs/{run}?steps=all", f"/v1/runs/{run}/steps",
                     f"/v1/runs/{run}/steps?every=7"):
            status, reply = self.api.call("GET", path)
            self.assertEqual(status, 200, f"{path}: {reply}")
            self.check_numbers(reply)
        for command in (["runs"], ["runs", "--json"], ["show", run], ["show", "--steps", run], ["show", "--json", run]):
            self.cluster.run("wlb", *command)
        for view, in self.cluster.sql("select table_name from information_schema.views where table_schema = 'wlb_code'"):
            self.cluster.sql(f"select * from {view}")
        self.cluster.sql("select wlb_part(parts, 'forward_s') from steps")
        self.cluster.sql("select wlb_runs_json(null, null, null, 100, null, null, null, null, key) from unnest(array["
                         "'started', 'ended', 'submitted', 'elapsed', 'loss', 'tokens', 'tokens_per_s', 'memory', '-mfu']) as key")


class StoredNumbers(RecordsTest):
    def columns(self, table):
        return self.cluster.sql("select column_name, data_type, is_nullable from information_schema.columns "
                                f"where table_schema = 'public' and table_name = '{table}' and is_identity = 'NO' "
                                "and is_generated = 'NEVER'")

    def add_extremes(self, table, **given):
        """Rows in which all columns but the given ones hold the extremes of their types. `given`: SQL of a value, or
        a list of such, one a row."""
        columns = [column for column in self.columns(table) if column[0] not in given and column[1] in EXTREMES]
        names = [name for name, _, _ in columns] + list(given)
        rows = []
        for turn in range(max(map(len, EXTREMES.values()))):
            row = []
            for _, kind, nullable in columns:
                value = EXTREMES[kind][turn % len(EXTREMES[kind])]
                row.append(EXTREMES[kind][0] if value == "null" and nullable == "NO" else value)
            row += [value[turn] if isinstance(value, list) else value for value in given.values()]
            rows.append(f"({', '.join(row)})")
        self.cluster.sql(f"insert into {table} ({', '.join(names)}) values {', '.join(rows)}")

    def test_extremes_of_every_column(self):
        run, pk = self.stored_run()
        attempt = self.cluster.sql(f"select id from attempts where run_id = {pk}")[0][0]
        keys = {"run_id": str(pk), "attempt_id": attempt}
        numbers = ["-9223372036854775808", "9223372036854775807", "0", "10", "11", "12", "13", "14"]
        self.add_extremes("steps", **keys, step=numbers)
        self.add_extremes("steps_superseded", **keys, step=numbers)
        self.add_extremes("checkpoints", **keys, path="'a'")
        self.add_extremes("evaluations", **keys, step=numbers)
        self.add_extremes("faults", **keys, kind="'hang'", is_loss="false", cause="false")
        self.add_extremes("events", **keys, kind="'note'", detail=[f"'{n}'" for n in range(8)])
        self.add_extremes("rank_map", attempt_id=attempt, rank=[str(n) for n in (0, 1, 2, -1, 2**31 - 1, 5, 6, 7)],
                          node="'n1'")
        self.add_extremes("attempts", run_id=str(pk), number=[str(n) for n in (2, 3, 4, 5, 6, 7, 8, 2**31 - 1)],
                          uuid="gen_random_uuid()", state="'lost'")
        names = [str(4000000000 + n) for n in range(8)]
        self.add_extremes("runs", name=[f"'{name}'" for name in names], job_id=names, uid="0", user_name="'root'",
                          state="'complete'")
        for name in (run, *names):
            self.check_reads(name)
        self.cluster.sql("update runs set state = 'failed' where state = 'starting'")

    def test_what_made_all_lists_fail(self):
        run, pk = self.stored_run()
        self.cluster.sql(f"update steps set tokens = 9e18, step_time_s = 1e-300 where run_id = {pk} and step = 1")
        self.check_reads(run)
        self.cluster.sql(f"update steps set tokens = 9e18, step_time_s = 1e308 where run_id = {pk}")
        self.check_reads(run)


class DeliveredNumbers(RecordsTest):
    STEP = {"tokens": 9 * 10**18, "documents": 10**13, "held_tokens": 10**13, "loss_tokens": -1,
            "global_batch_size": 0, "step_time_s": 2e7, "loss": -1e200,
            "grad_norm": -1.0, "lr": 1e200, "tokens_per_s": 1e16, "predicted_imbalance": 1e10, "imbalance": -1.0,
            "step": 10**13, "parts": {"forward_s": 1e300}}
    ATTEMPT = {"seq_length": 10**13, "global_batch_size": 10**13, "train_iters": 10**13, "resumed_step": 10**13,
               "model": {"parameters": 1e300}}
    CHECKPOINT = {"step": 10**13, "bytes": 2 * 10**18, "duration_s": 2e7}
    EVALUATION = {"step": 10**13, "loss": 1e200, "tokens": 9 * 10**18, "duration_s": 2e7}
    FAULT = {"step": 10**13, "evidence": {"seconds": [1e300]}}

    def test_bounds_of_every_number(self):
        run, attempt = self.new_run(), str(uuid.uuid4())
        cases = itertools.chain(
            (("step", {"step": 1}, item) for item in self.STEP.items()),
            (("attempt", {"world_size": 1, "rank_map": []}, item) for item in self.ATTEMPT.items()),
            (("checkpoint", {"step": 1, "path": "a"}, item) for item in self.CHECKPOINT.items()),
            (("evaluation", {"step": 1}, item) for item in self.EVALUATION.items()),
            (("fault", {"kind": "hang"}, item) for item in self.FAULT.items()))
        for kind, data, (name, value) in cases:
            record = {"seq": 1, "time": 1.0, "type": kind, "data": {**data, name: value}}
            status, reply = self.deliver(run, attempt, [record])
            self.assertEqual(status, 400, f"{kind}: {name} = {value}: {reply}")
            self.assertIn(f"'{next(iter(value)) if name == 'parts' else name}'", reply["error"])
        whole, part = step(1, 1), step(2, 2)
        part["data"] |= {"loss_tokens": 5, "global_batch_size": 3}
        self.assertEqual(self.deliver(run, attempt, [whole, part])[0], 200)
        rows = self.cluster.run("wlb", "steps", run, "--csv").stdout.splitlines()
        self.assertEqual([row.rsplit(",", 2)[1:] for row in rows[:3]], [["loss_tokens", "global_batch_size"], ["", ""], ["5", "3"]])
        # A later attempt does the step again.
        again = step(1, 2)
        again["data"] |= {"loss_tokens": 7}
        self.assertEqual(self.deliver(run, str(uuid.uuid4()), [again])[0], 200)
        columns = "loss_tokens, coalesce(s.global_batch_size, 0) from {} s join runs r on r.id = s.run_id where name = '%s' and step = 2" % run
        self.assertEqual([self.cluster.sql("select " + columns.format(table))[0] for table in ("steps", "steps_superseded")],
                         [["7", "0"], ["5", "3"]])

    def test_what_made_all_lists_fail(self):
        run, attempt = self.new_run(), str(uuid.uuid4())
        bad = step(1, 1)
        bad["data"] |= {"tokens": 9 * 10**18, "step_time_s": 1e-300}
        status, _ = self.deliver(run, attempt, [bad])
        self.check_reads(run)
        self.assertEqual(status, 400)

    def test_the_largest_that_are_taken(self):
        run, attempt = self.new_run(), str(uuid.uuid4())
        records = []
        for number in range(1, 1001):
            record = step(number, 10**12 - number)
            record["data"] |= {"tokens": 10**12, "step_time_s": 1e-300 if number % 2 else 1e7, "loss": 1e100,
                               "parts": {"forward_s": 1e7}}
            records.append(record)
        self.assertEqual(self.deliver(run, attempt, records), (200, {"acked_seq": 1000}))
        self.check_reads(run)
        self.assertEqual(json.loads(self.cluster.run("wlb", "show", "--json", run).stdout)["tokens"], 10**15)


class Totals(RecordsTest):
    SUMS = """
        select r.steps = s.steps and r.tokens = s.tokens and r.step_seconds = s.seconds
            and r.first_step is not distinct from s.first and r.last_step is not distinct from s.last
            and r.first_loss is not distinct from (select loss from steps where run_id = r.id order by step limit 1)
            and r.last_loss is not distinct from (select loss from steps where run_id = r.id order by step desc limit 1)
            and r.steps_repeated = (select count(*) from steps_superseded where run_id = r.id)
            and r.faults = (select count(*) from faults where run_id = r.id)
            and s.steps = (select sum(new_steps) from attempts where run_id = r.id)
            and not exists (select from attempts a where a.run_id = r.id and (
                a.step_seconds <> (select coalesce(sum(wlb_seconds(step_time_s)), 0) from steps where attempt_id = a.id)
                or a.repeated_seconds <> (select coalesce(sum(wlb_seconds(step_time_s)), 0)
                    from steps_superseded where attempt_id = a.id)))
        from runs r, lateral (
            select count(*) as steps, min(step) as first, max(step) as last, coalesce(sum(tokens), 0) as tokens,
                coalesce(sum(wlb_seconds(step_time_s)), 0) as seconds
            from steps where run_id = r.id) s
        where r.name = """

    def test_sums_of_random_histories(self):
        random.seed(8)
        for _ in range(4):
            run, attempts = self.new_run(), [str(uuid.uuid4()) for _ in range(3)]
            for attempt in attempts:  # the order of their numbers
                self.assertEqual(self.deliver(run, attempt, [event(1)])[0], 200)
            sent = {attempt: 1 for attempt in attempts}
            for _ in range(12):
                attempt, records = random.choice(attempts), []
                for _ in range(random.randint(1, 40)):
                    sent[attempt] += 1
                    record = step(sent[attempt], random.randint(1, 60), random.choice([None, random.random()]))
                    record["data"] |= {"tokens": random.choice([None, random.randint(0, 10**12)]),
                                       "step_time_s": random.choice([None, 0.1, 1e-300, 1e7, random.random()])}
                    if random.random() < 0.1:
                        record = {**record, "type": "fault", "data": {"kind": "hang", "detail": str(sent[attempt])}}
                    records.append(record)
                self.assertEqual(self.deliver(run, attempt, records)[0], 200)
                self.assertEqual(self.deliver(run, attempt, records)[0], 200)  # a reply that got lost
                self.assertEqual(self.cluster.sql(f"{self.SUMS} '{run}'"), [["t"]])

    def test_two_attempts_at_once(self):
        run, attempts = self.new_run(), [str(uuid.uuid4()) for _ in range(2)]

        def deliver(attempt):
            for first in range(1, 601, 100):
                status, reply = self.deliver(run, attempt, [step(n, n) for n in range(first, first + 100)])
                self.assertEqual(status, 200, reply)

        with concurrent.futures.ThreadPoolExecutor() as pool:
            list(pool.map(deliver, attempts))
        self.assertEqual(self.cluster.sql(f"{self.SUMS} '{run}'"), [["t"]])
        self.assertEqual(self.show(run)["steps_done"], 600)


class Bounds(RecordsTest):
    def fill(self, run, attempt, kind, count, data):
        """Delivers `count` records of `kind`; data(n) is that of the n-th. As a client does, again where the database took too long,
        since other programs may have its processors."""
        for first in range(1, count + 1, 500):
            records = [{"seq": n, "time": 1.0 + n, "type": kind, "data": data(n)}
                       for n in range(first, min(first + 500, count + 1))]
            for _ in range(3):
                status, reply = self.deliver(run, attempt, records)
                if status != 503:
                    break
            self.assertEqual(status, 200, reply)

    def test_events(self):
        """Also that as many do not slow down what is stored: a batch stays below the statement's limit."""
        run = self.new_run()
        self.fill(run, str(uuid.uuid4()), "event", 12500, lambda n: {"kind": "note", "detail": f"number {n}"})
        story = self.show(run)
        self.assertEqual((len(story["events"]), story["left_out"]["events"], story["dropped"]["events"]),
                         (1000, 9000, 2500))
        self.assertEqual(story["events"][-1]["detail"], "number 12500")
        self.assertIn("2500 of its oldest events", self.cluster.run("wlb", "show", run).stdout)
        self.assertEqual(self.api.call("GET", "/v1/runs")[0], 200)

    def test_faults_and_evidence(self):
        run = self.new_run()
        self.fill(run, str(uuid.uuid4()), "fault", 1200,
                  lambda n: {"kind": "hang", "detail": str(n), "evidence": {"text": "x" * 10000}})
        story = self.show(run)
        self.assertEqual((len(story["faults"]), story["left_out"]["faults"]), (1000, 200))
        kept = self.cluster.sql("select count(evidence), sum(octet_length(evidence::text)) from faults "
                                f"where run_id = {story['id']}")[0]
        self.assertEqual(int(kept[0]) + story["dropped"]["evidence"], 1200)
        self.assertTrue(3 * 2**20 < int(kept[1]) <= 4 * 2**20, kept)

    def test_a_client_does_not_judge_its_faults(self):
        run = self.new_run()
        judged = {"strength": 6, "sentence": "mine", "killed_at": 0, "lost_from": 0}
        faults = [{"kind": "hang", "detail": "it waits"}, {"kind": "rank_lost", "rank": 3, "proof": {"exit_code": 7}},
                  {"kind": "node_lost"}]
        status, reply = self.deliver(run, str(uuid.uuid4()), [
            {"seq": seq, "time": 1790000000, "type": "fault", "data": fault | judged, "judged": judged} | judged
            for seq, fault in enumerate(faults, 1)])
        self.assertEqual(status, 200, reply)
        stored = self.cluster.sql("select sentence, strength, follow, killed_at, lost_from from faults f join runs r on r.id = f.run_id "
                                  f"where r.name = '{run}' order by f.id")
        self.assertEqual(stored, [["hang: it waits", "1", "", "", ""], ["rank 3 is lost", "1", "", "", ""],
                                  ["a node is lost", "3", "", "", "-infinity"]])

    def test_reasons(self):
        """A reason of 4,096 characters for each of which a client would have wlbd put 4,096 others."""
        run, attempt, fault = (
            "with run as (insert into runs (name, job_id, uid, user_name, state, reason, ended_at) values "
            "('{0}', {0}, 65534, 'nobody', 'failed', repeat('a', 4096), {1}) returning id), ",
            "attempt as (insert into attempts (run_id, number, uuid, state, told, reason) "
            "select id, 1, gen_random_uuid(), 'failed', 'a', {2} from run returning id, run_id) ",
            "insert into faults (run_id, attempt_id, kind, detail, sentence, strength, detected_at) "
            "select run_id, id, 'hang', repeat('b', 4096), 'hang: ' || repeat('b', 4090), 1, now() from attempt")
        whole = run + attempt + fault
        self.cluster.sql(whole.format(5100001, "null", "left('hang: ' || repeat('b', 4096), 4096)"))
        self.cluster.sql("select wlb_run_end(id, 'failed', repeat('a', 4096), 'launcher') from runs where name = '5100001'")
        self.cluster.sql(whole.format(5100002, "now()", "'a'"))
        self.cluster.sql("select wlb_attempt_settle(a.id) from attempts a join runs r on r.id = a.run_id where r.name = '5100002'")
        for name in ("5100001", "5100002"):
            story = self.show(name)
            self.assertEqual(story["reason"], "hang: " + "b" * 4090)
            self.assertEqual(story["attempts"][0]["reason"], story["reason"])
        self.assertEqual(self.cluster.sql("select wlb_reason_with('attempt 1: a; a', 'a;', 'hang; a;')"), [["attempt 1: hang; a; a"]])

    def test_names_of_nodes(self):
        """Names of 255 characters: a reply is bounded in bytes, and the newest come first."""
        runs = []
        for number in range(5):
            run, pk = self.stored_run(1)
            self.cluster.sql("update attempts set nodes = array(select rpad(n || '-', 255, 'x') from generate_series(1, 20000) n) "
                             f"where run_id = {pk}; insert into attempts (run_id, number, uuid, nodes) select run_id, n, "
                             f"gen_random_uuid(), nodes from attempts, generate_series(2, {5 if number == 0 else 1}) n "
                             f"where run_id = {pk}")
            runs.insert(0, run)
        named = lambda entries: [(len(entry["nodes"]), entry["node_count"]) for entry in entries]
        left = [(20000, 20000)] * 3 + [(0, 20000)] * 2
        self.assertEqual(named(self.show(runs[-1])["attempts"][::-1]), left)
        listed = self.api.call("GET", "/v1/runs?limit=5")[1]
        self.assertEqual([entry["run_id"] for entry in listed["runs"]], runs)
        self.assertEqual((named(listed["runs"]), listed["left_out"]), (left, 0))

    def test_long_list(self):
        """10,000 runs with reasons of 4,096 characters."""
        run, _ = self.stored_run(1)
        self.cluster.sql("insert into runs (name, job_id, uid, user_name, reason, ended_at, state) select n, n, 1, 'long', "
                         "repeat('r', 4096), now(), 'failed' from generate_series(5000001, 5010000) n")
        self.addCleanup(self.cluster.sql, "delete from runs where user_name = 'long'")
        status, reply = self.api.call("GET", "/v1/runs?user=long&limit=10000", timeout_s=60)
        self.assertEqual((status, len(reply["runs"]) + reply["left_out"]), (200, 10000))
        self.assertEqual(reply["runs"][0]["run_id"], "5010000")
        self.assertLess(len(json.dumps(reply["runs"])), 26 << 20)
        self.assertEqual(len(self.api.call("GET", "/v1/runs?limit=100")[1]["runs"]), 100)

    def test_checkpoints(self):
        run = self.new_run()
        self.fill(run, str(uuid.uuid4()), "checkpoint", 10500, lambda n: {"step": n, "path": f"/c/{n}"})
        story = self.show(run)
        self.assertEqual((len(story["checkpoints"]), story["left_out"]["checkpoints"], story["dropped"]["checkpoints"]),
                         (1000, 9000, 500))
        self.assertEqual(story["checkpoints"][-1]["step"], 10500)

    def test_evaluations(self):
        """What a later attempt says of a step replaces what was said."""
        run = self.new_run()
        self.fill(run, str(uuid.uuid4()), "evaluation", 1200,
                  lambda n: {"step": 10 * n, "loss": 2.5 if n > 1 else None, "tokens": 4096, "duration_s": 1.5})
        self.fill(run, str(uuid.uuid4()), "evaluation", 1, lambda n: {"step": 12000, "loss": 2.25, "tokens": 4097, "duration_s": 0.5})
        story = self.show(run)
        self.assertEqual((len(story["evaluations"]), story["left_out"]["evaluations"]), (1000, 200))
        newest = {"step": 12000, "loss": 2.25, "tokens": 4097, "duration_s": 0.5, "attempt": 2}
        self.assertEqual({name: story["evaluations"][-1][name] for name in newest}, newest)
        self.assertEqual(self.cluster.sql(f"select count(*) from run_evaluations where run = '{run}' and loss is null"), [["1"]])
        self.assertRegex(self.cluster.run("wlb", "show", run).stdout, r"(?s)\nEvaluations \(the last 5 of 1200\)\n.* 2 +12000 +2\.250000 +4097 +0\.50 s\n")

    def test_verdicts(self):
        run, pk = self.stored_run(1)
        self.cluster.sql(f"""
            insert into verdicts (run_id, attempt_id, watcher, number, kind, state, ranks, rank_count, nodes, cost_percent,
                certainty, evidence, action, began_at, found_at)
            select {pk}, id, 1, n, 'hang', 'over', '{{5}}', 1, '{{n1}}', 100, 1, '', 'report', now(), now()
            from attempts, generate_series(1, 230) n where run_id = {pk}""")
        story = self.show(run)
        self.assertEqual((len(story["verdicts"]), story["left_out"]["verdicts"]), (200, 30))
        self.assertIn("  210 more: wlb faults", self.cluster.run("wlb", "show", run).stdout)

    def test_policy(self):
        """Options that wlbd does not know would be added up over the announcements of a run."""
        run = self.new_run()
        many = {f"option{n}": "x" * 1000 for n in range(100)}
        announcement = {"run_id": run, "job_id": int(run), "policy": {"spares": 1, **many}}
        self.assertEqual(self.api.call("POST", "/v1/runs", announcement)[0], 200)
        self.assertEqual(self.show(run)["policy"], {"layout": "auto", "min_nodes": 1, "spares": 1})

    def test_ranks(self):
        run, attempt = self.new_run(), str(uuid.uuid4())

        def tell(seq, world, ranks):
            data = {"world_size": world,
                    "rank_map": [{"rank": rank, "node": "n1", "local_rank": 0} for rank in ranks]}
            return self.deliver(run, attempt, [{"seq": seq, "time": 1.0, "type": "attempt", "data": data}])

        self.assertEqual(tell(1, 2, [0, 1, 1])[0], 400)
        self.assertEqual(tell(1, 2, [0, 2])[0], 400)
        self.assertEqual(tell(1, 2, [0, 0])[0], 400)
        self.assertEqual(tell(1, 8, range(8))[0], 200)
        self.assertEqual(tell(2, 2, range(2))[0], 200)
        self.assertEqual(len(self.show(run)["rank_map"]), 2)


class LongRuns(RecordsTest):
    def long_run(self, steps, every=1):
        run, pk = self.stored_run(1)
        self.cluster.sql("insert into steps (run_id, step, attempt_id, loss, tokens, step_time_s, recorded_at) select "
                         f"run_id, n, attempt_id, 2, 10, 0.5, now() from steps, generate_series({every + 1}, {steps}, "
                         f"{every}) n where run_id = {pk}")
        return run

    def test_pages(self):
        run = self.long_run(25000)
        seen, start = [], 0
        while start is not None:
            status, reply = self.api.call("GET", f"/v1/runs/{run}/steps?from={start}&limit=100000")
            self.assertEqual(status, 200, reply)
            self.assertLessEqual(len(reply["steps"]), 10000)
            seen += [entry["step"] for entry in reply["steps"]]
            start = reply["next"]
        self.assertEqual(seen, list(range(1, 25001)))
        self.assertEqual(len(self.api.call("GET", f"/v1/runs/{run}/steps")[1]["steps"]), 1000)
        newest = self.show(run)["steps"]
        self.assertEqual([newest[0]["step"], len(newest)], [15001, 10000])

    def test_pages_of_long_steps(self):
        """A page is bounded in bytes, too: a step may have 3 KB of parts."""
        run, pk = self.stored_run(1)
        self.cluster.sql("insert into steps (run_id, step, attempt_id, recorded_at, parts) select run_id, n, attempt_id, now(), "
                         "(select jsonb_object_agg(rpad('part' || p, 64, '_'), 0.123456789) from generate_series(1, 32) p) "
                         f"from steps, generate_series(2, 10000) n where run_id = {pk} and step = 1")
        seen, start, pages = [], 0, 0
        while start is not None:
            path = f"/v1/runs/{run}/steps?from={start}&limit=10000"
            status, text = self.api.send("GET", path, credential=self.api.credential("GET", path, b""))
            self.assertEqual(status, 200, text[:200])
            self.assertLess(len(text), (8 << 20) + 65536)
            reply = json.loads(text)
            seen += [entry["step"] for entry in reply["steps"]]
            start, pages = reply["next"], pages + 1
        self.assertEqual((seen, pages > 2), (list(range(1, 10001)), True))
        newest = [entry["step"] for entry in self.show(run)["steps"]]
        self.assertEqual(newest, list(range(10001 - len(newest), 10001)))
        self.assertTrue(1000 < len(newest) < 5000, len(newest))

    def test_sample(self):
        run = self.long_run(30000, every=3)
        for points in (1, 2, 7, 400, 2000):
            steps = self.api.call("GET", f"/v1/runs/{run}/steps?points={points}")[1]["steps"]
            numbers = [entry["step"] for entry in steps]
            self.assertEqual(numbers, sorted(set(numbers)))
            self.assertTrue(points >= len(numbers) > points * 0.9, (points, len(numbers)))
            if points > 1:
                self.assertEqual([numbers[0], numbers[-1] > 29980], [1, True])
        self.assertEqual(self.api.call("GET", f"/v1/runs/{run}/steps?points=2001")[0], 400)
        empty = self.new_run()
        self.assertEqual(self.api.call("GET", f"/v1/runs/{empty}/steps?points=9"), (200, {"steps": [], "next": None}))

    def test_show_of_300000_steps(self):
        run = self.long_run(300000)
        text = self.cluster.run("bash", "-c", f"ulimit -v 400000; exec wlb show --json {run}").stdout
        self.assertEqual([entry["step"] for entry in json.loads(text)["steps"]], list(range(1, 300001)))
        self.assertIn("Loss", self.cluster.run("wlb", "show", run).stdout)


class Lanes(RecordsTest):
    """One user's slow statements delay nobody else."""

    def hold(self, sql, for_s=60):
        """Another session holds what the statement locks until the test ends or that time is over."""
        name = f"hold-{uuid.uuid4()}"  # the server goes on sleeping for one whose psql was killed
        session = subprocess.Popen(["psql", "-X", "-q", "-c", f"begin; {sql}; select pg_sleep({for_s}); commit"],
                                   env={**self.cluster.env, "PGAPPNAME": name}, stdout=subprocess.DEVNULL)
        self.addCleanup(session.wait)
        self.addCleanup(self.cluster.sql, f"select pg_terminate_backend(pid) from pg_stat_activity where application_name = '{name}'")
        wait_for("the lock", lambda: self.cluster.sql(
            f"select pid from pg_stat_activity where application_name = '{name}' and wait_event = 'PgSleep'"), 5)

    def test_slow_deliveries(self):
        run, pk = self.stored_run()
        other = self.new_run()
        losses = self.losses()
        self.hold(f"select from runs where id = {pk} for update")
        with concurrent.futures.ThreadPoolExecutor() as pool:
            slow = [pool.submit(self.deliver, run, str(uuid.uuid4()), [step(1, 1)]) for _ in range(3)]
            slow += [pool.submit(self.api.call, "POST", f"/v1/runs/{run}/end", {"state": "failed"})]
            for _ in range(5):
                self.assertEqual(self.deliver(other, str(uuid.uuid4()), [step(1, 1)])[0], 200)
                self.assertEqual(self.api.call("GET", f"/v1/runs/{run}")[0], 200)
            for request in slow:
                status, reply = request.result()
                self.assertEqual(status, 503, reply)
                self.assertIn("try again", reply["error"])
        self.assertEqual(self.losses(), losses, "connections were dropped")

    def test_a_delivery_that_takes_too_long(self):
        run, attempt = self.new_run(), str(uuid.uuid4())
        other, second = self.new_run(), str(uuid.uuid4())
        losses = self.losses()
        self.cluster.sql("create function slow() returns trigger language plpgsql as "
                         "$$ begin perform pg_sleep(30); return new; end $$; create trigger slow before insert on events "
                         "for each row when (new.kind = 'slow') execute function slow()")
        self.addCleanup(self.cluster.sql, "drop function if exists slow cascade")
        with concurrent.futures.ThreadPoolExecutor() as pool:
            slow = pool.submit(self.deliver, run, attempt, [event(1, "slow")])
            self.assertEqual(self.deliver(other, second, [event(1)])[0], 200)
            status, reply = slow.result()
            self.assertEqual(status, 503, reply)
        self.assertEqual(self.losses(), losses, "connections were dropped")
        self.cluster.sql("drop function slow cascade")
        self.assertEqual(self.deliver(run, attempt, [event(1, "slow")])[0], 200)

    def test_changes_of_a_locked_run(self):
        """Settings and ends that wait for their run keep no other run's requests waiting."""
        run, pk = self.stored_run()
        other = self.new_run()
        self.hold(f"select from runs where id = {pk} for no key update")
        with concurrent.futures.ThreadPoolExecutor(40) as pool:
            slow = [pool.submit(self.api.call, "POST", f"/v1/runs/{run}/{path}", body, 0, 60) for path, body in
                    [("settings", {"on_fault": "hang=report"})] * 25 + [("end", {"state": "failed"})] * 5]
            time.sleep(1)
            for _ in range(3):
                attempt = str(uuid.uuid4())
                self.assertEqual(self.deliver(other, attempt, [step(1, 1)])[0], 200)
                self.assertEqual(self.api.call("POST", "/v1/runs", {"job_id": int(other)}, NOBODY)[0], 403)
            for request in slow:
                status, reply = request.result()
                self.assertEqual((status, "try again" in reply["error"]), (503, True), reply)

    def test_attempts_of_a_locked_run(self):
        """New attempts that wait for their run keep no other run's waiting."""
        self.running = True
        run, pk = self.stored_run()
        self.running = False
        other = self.new_run()
        self.hold(f"select from runs where id = {pk} for update")

        def first_sign(name):
            return f"/v1/runs/{name}/report", {"attempt_id": str(uuid.uuid4()), "source": "run", "node": "n1",
                                               "step_id": f"{name}.0"}

        def next_attempt():
            return f"/v1/runs/{run}/attempts", {"attempt_id": str(uuid.uuid4()), "job_id": int(run), "nodes": ["n1", "n2"],
                                                "tasks_per_node": 1, "policy": {"layout": "auto"}, "previous": None}

        with concurrent.futures.ThreadPoolExecutor(40) as pool:
            slow = [pool.submit(self.api.call, "POST", *request, 0, 60)
                    for _ in range(8) for request in (first_sign(run), next_attempt())]
            time.sleep(1)
            began = clock_s()
            status, reply = self.api.call("POST", *first_sign(other))
            self.assertEqual((status, clock_s() - began < 4), (200, True), reply)
            for request in slow:
                status, reply = request.result()
                self.assertEqual((status, "try again" in reply["error"]), (503, True), reply)

    def test_slow_questions_of_one_user(self):
        """His reports of attempts that are looked for take a turn each; another user's are served meanwhile."""
        runs = {uid: str(9000 + uid) for uid in (NOBODY, NOBODY - 1)}
        self.cluster.sql("alter function wlb_attempt_find(uuid) rename to wlb_attempt_found")
        self.cluster.sql("create function wlb_attempt_find(p_uuid uuid) returns json language plpgsql as "
                         "$$ begin if p_uuid::text like 'aaaaaaaa%' then perform pg_sleep(0.4); end if; "
                         "return wlb_attempt_found(p_uuid); end $$")

        def undo():
            self.cluster.sql("drop function wlb_attempt_find")
            self.cluster.sql("alter function wlb_attempt_found(uuid) rename to wlb_attempt_find")

        self.addCleanup(undo)

        def report(uid, attempt):
            body = {"attempt_id": attempt, "source": "node", "node": "n1", "rank": 0}
            return self.api.call("POST", f"/v1/runs/{runs[uid]}/report", body, uid, 60)[0]

        with concurrent.futures.ThreadPoolExecutor(40) as pool:
            slow = [pool.submit(report, NOBODY, "aaaaaaaa" + str(uuid.uuid4())[8:]) for _ in range(30)]
            time.sleep(1)
            began = clock_s()
            self.assertEqual(report(NOBODY - 1, str(uuid.uuid4())), 200)
            self.assertLess(clock_s() - began, 3)
            self.assertLessEqual({request.result() for request in slow}, {200, 503})

    def test_a_run_has_so_many_attempts(self):
        run, pk = self.stored_run()
        self.cluster.sql(f"insert into attempts (run_id, number, uuid) values ({pk}, 9999, gen_random_uuid())")
        self.assertEqual(self.deliver(run, str(uuid.uuid4()), [event(1)])[0], 200)
        status, reply = self.deliver(run, str(uuid.uuid4()), [event(1)])
        self.assertEqual(status, 409, reply)
        self.assertIn(f"run {run}: has 10000 attempts, and can have 10000; begin another run", reply["error"])

    def test_attempts_that_begin_together(self):
        """Their statements come over several connections: the second waits for the first."""
        _, pk = self.stored_run()
        create = f"select wlb_attempt_create({pk}, gen_random_uuid())"
        self.hold(create, for_s=2)
        self.cluster.sql(create)
        numbers = self.cluster.sql(f"select number from attempts where run_id = {pk} order by id")
        self.assertEqual(numbers, [["1"], ["2"], ["3"]])

    def test_data_that_the_database_refuses(self):
        """What the checks of the body missed is the client's mistake: it does not send such records again and again."""
        run = self.new_run()
        self.cluster.sql("create function refuse() returns trigger language plpgsql as "
                         "$$ begin raise exception using errcode = new.kind; end $$; create trigger refuse before insert on "
                         "events for each row when (new.kind ~ '^[0-9]{5}$') execute function refuse()")
        self.addCleanup(self.cluster.sql, "drop function if exists refuse cascade")
        for state, status in (("21000", 400), ("22003", 400), ("23514", 400), ("42703", 500)):
            self.assertEqual(self.deliver(run, str(uuid.uuid4()), [event(1, state)])[0], status, state)

    def losses(self):
        return metric(self.api, "wlbd_database_losses_total")

    def test_a_statement_that_fails_is_set_aside(self):
        """A finding about one run that cannot be stored delays no other's."""
        run, attempt = self.new_run(), str(uuid.uuid4())
        other, second = self.new_run(), str(uuid.uuid4())
        for name, of in ((run, attempt), (other, second)):
            self.assertEqual(self.deliver(name, of, [event(1)])[0], 200)
        before = metric(self.api, "wlbd_statements_set_aside_total")
        self.hold(f"select from attempts where uuid = '{attempt}' for update")
        for name, of in ((run, attempt), (other, second)):
            status, reply = self.api.call("POST", f"/v1/runs/{name}/report", {
                "attempt_id": of, "source": "run", "node": "n1", "step_id": f"{name}.0"})
            self.assertEqual(status, 200, reply)
        step_of = f"select slurm_step from attempts where uuid = '{second}'"
        wait_for("the other run's", lambda: self.cluster.sql(step_of) == [[f"{other}.0"]], 3)
        wait_for("the alarm", lambda: metric(self.api, "wlbd_statements_set_aside_total") == before + 1, 10)
        self.assertEqual(self.api.send("GET", "/healthz")[0], 200)

    def test_cheap_read_behind_lists(self):
        self.new_run()
        self.cluster.sql("alter function wlb_runs_json rename to wlb_runs_json_fast")
        self.cluster.sql("create function wlb_runs_json(bigint, text, text, bigint, timestamptz, text, text, text, text, text, text) returns json "
                         "language sql as $$ select wlb_runs_json_fast($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11) from pg_sleep(4) $$")
        self.addCleanup(self.cluster.sql, "drop function wlb_runs_json; "
                                          "alter function wlb_runs_json_fast rename to wlb_runs_json")
        run = self.new_run()
        with concurrent.futures.ThreadPoolExecutor() as pool:
            lists = [pool.submit(self.api.call, "GET", "/v1/runs", None, NOBODY) for _ in range(6)]
            time.sleep(0.5)
            began = clock_s()
            self.assertEqual(self.api.call("GET", f"/v1/runs/{run}")[0], 200)
            self.assertLess(clock_s() - began, 3)
            self.assertEqual({request.result()[0] for request in lists}, {200})


def metric(api, name):
    for line in api.send("GET", "/metrics")[1].splitlines():
        if line.startswith(f"{name} "):
            return int(float(line.split()[1]))
    raise AssertionError(f"/metrics has no {name}")


if __name__ == "__main__":
    harness.main()
