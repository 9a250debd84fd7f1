#!/usr/bin/env python3
"""What records may hold, and that nothing stored can make a list or a story fail."""
import itertools
import json
import uuid

import harness
from test_wlbd_api import ApiTest, step

EXTREMES = {
    "bigint": ["-9223372036854775808", "9223372036854775807", "0", "null"],
    "integer": ["-2147483648", "2147483647", "0", "null"],
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
        for path in ("/v1/runs", f"/v1/runs/{run}", f"/v1/runs/{run}?steps=all", f"/v1/runs/{run}/steps"):
            status, reply = self.api.call("GET", path)
            self.assertEqual(status, 200, f"{path}: {reply}")
            self.check_numbers(reply)
        for command in (["runs"], ["runs", "--json"], ["show", run], ["show", "--steps", run], ["show", "--json", run]):
            self.cluster.run("wlb", *command)
        for view, in self.cluster.sql("select table_name from information_schema.views where table_schema = 'public'"):
            self.cluster.sql(f"select * from {view}")
        self.cluster.sql("select wlb_part(parts, 'forward_s') from steps")


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
        self.add_extremes("faults", **keys, kind="'hang'", cause="false")
        self.add_extremes("events", **keys, kind="'note'")
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
    STEP = {"tokens": 9 * 10**18, "documents": 10**13, "held_tokens": 10**13, "step_time_s": 2e7, "loss": -1e200,
            "grad_norm": -1.0, "lr": 1e200, "tokens_per_s": 1e16, "predicted_imbalance": 1e10, "imbalance": -1.0,
            "step": 10**13, "parts": {"forward_s": 1e300}}
    ATTEMPT = {"seq_length": 10**13, "global_batch_size": 10**13, "train_iters": 10**13, "resumed_step": 10**13,
               "model": {"parameters": 1e300}}
    CHECKPOINT = {"step": 10**13, "bytes": 2 * 10**18, "duration_s": 2e7}
    FAULT = {"step": 10**13, "evidence": {"seconds": [1e300]}}

    def test_bounds_of_every_number(self):
        run, attempt = self.new_run(), str(uuid.uuid4())
        cases = itertools.chain(
            (("step", {"step": 1}, item) for item in self.STEP.items()),
            (("attempt", {"world_size": 1, "rank_map": []}, item) for item in self.ATTEMPT.items()),
            (("checkpoint", {"step": 1, "path": "a"}, item) for item in self.CHECKPOINT.items()),
            (("fault", {"kind": "hang"}, item) for item in self.FAULT.items()))
        for kind, data, (name, value) in cases:
            record = {"seq": 1, "time": 1.0, "type": kind, "data": {**data, name: value}}
            status, reply = self.deliver(run, attempt, [record])
            self.assertEqual(status, 400, f"{kind}: {name} = {value}: {reply}")
            self.assertIn(f"'{next(iter(value)) if name == 'parts' else name}'", reply["error"])
        self.assertEqual(self.deliver(run, attempt, [step(1, 1)])[0], 200)

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


if __name__ == "__main__":
    harness.main()
