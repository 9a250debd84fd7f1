#!/usr/bin/env python3
"""wlb tag, wlb note, wlb compare and wlb query, beside a live wlbd: runs are rows, which no job stands behind."""
import contextlib
import csv
import fcntl
import io
import itertools
import json
import os
import pathlib
import pty
import re
import signal
import struct
import subprocess
import termios
import threading

import harness
import test_wlbd_api
from test_wlbd_api import NOBODY


class RunsTest(test_wlbd_api.ApiTest):
    nodes = 1
    jobs = itertools.count(7000)

    def ended_run(self, uid=0, **columns):
        """The name of a run that has ended; a value is SQL."""
        job = next(self.jobs)
        columns = {"name": f"'{job}'", "job_id": job, "job_name": "'train'", "uid": uid, "user_name": f"'u{uid}'",
                   "state": "'complete'", "confirmed": "true", "ended_at": "now()", "started_at": "now() - interval '1 h'"} | columns
        self.cluster.sql(f"insert into runs ({', '.join(columns)}) values ({', '.join(map(str, columns.values()))})")
        return str(job)

    def wlb(self, *words, code=0, **options):
        """Standard output of a command; its message where it is to fail."""
        result = self.cluster.run("wlb", *words, check=False, **options)
        self.assertEqual(result.returncode, code, result.stdout + result.stderr)
        return result.stderr if code else result.stdout


class Tags:
    def tag(self, run, uid=0, **body):
        return self.api.call("POST", f"/v1/runs/{run}/tags", body, uid)

    def note(self, run, uid=0, **body):
        return self.api.call("POST", f"/v1/runs/{run}/notes", body, uid)

    def test_tags(self):
        run, other = self.ended_run(), self.ended_run()
        self.assertEqual(self.wlb("tag", run, "lr/2e-4", "baseline", "baseline"), f"run {run} has the tags\n  baseline\n  lr/2e-4\n")
        self.wlb("tag", other, "lr/2e-4")
        listed = self.api.call("GET", "/v1/runs?tag=baseline")[1]["runs"]
        self.assertEqual([(entry["run_id"], entry["tags"]) for entry in listed], [(run, ["baseline", "lr/2e-4"])])
        self.assertIn(run, self.wlb("runs", "--tag", "baseline"))
        self.assertNotIn(other, self.wlb("runs", "--tag", "baseline"))
        self.assertIn("\n  tags: baseline lr/2e-4\n", self.wlb("show", run))
        self.assertEqual(self.wlb("tag", run, "baseline", "absent", "--remove"), f"run {run} has the tag\n  lr/2e-4\n")
        self.assertEqual(self.cluster.sql(f"select tag, set_by from run_tags where run = '{run}'"), [["lr/2e-4", "u0"]])

    def test_tags_have_bounds(self):
        run = self.ended_run()
        for tag in ("", "-x", "a b", "x" * 65, "\u202ex", "a;b", "\x1b[2J", "ä", "a\n"):
            status, reply = self.tag(run, add=["good", tag])
            self.assertEqual(status, 400, reply)
        self.assertEqual(self.tag(run, add="x")[0], 400)
        self.assertEqual(self.tag("999999", add=["x"])[0], 404)
        names = [f"t{number:02}" for number in range(32)]
        self.assertEqual(self.tag(run, add=names), (200, {"run_id": run, "tags": names}))
        status, reply = self.tag(run, add=["one-more"])
        self.assertEqual((status, "--remove TAG" in reply["error"]), (409, True), reply)
        self.assertEqual(self.tag(run, add=["one-more"], remove=["t31"])[1]["tags"], ["one-more", *names[:31]])
        self.assertIn("no tag is given", self.wlb("tag", run, code=2))

    def test_another_users_run_is_not_described(self):
        run, own = self.ended_run(), self.ended_run(NOBODY)
        for asked in (self.tag(run, NOBODY, add=["x"]), self.note(run, NOBODY, add="x")):
            self.assertEqual((asked[0], "belongs to another user" in asked[1]["error"]), (403, True), asked)
        self.assertEqual(self.tag(own, NOBODY, add=["x"])[0], 200)
        self.assertEqual(self.note(own, NOBODY, add="mine")[0], 200)
        self.assertEqual(self.note(own, 0, add="not mine")[1]["notes"][1]["by"], "root")

    def test_notes(self):
        run = self.ended_run()
        self.wlb("note", run, "half the learning rate: \x1b[2J\u202e of 7000")
        self.assertEqual(self.wlb("note", run, "second"), f"run {run}: note 2 is written\n")
        shown = self.wlb("show", run)
        self.assertRegex(shown, r"\n  note 1 of u0, \S+ \S+:\n    half the learning rate:  \[2J  of 7000\n  note 2 of u0")
        self.assertNotIn("\u202e", shown + self.wlb("show", run, "--json"))
        self.wlb("note", run, "--remove", "1")
        self.assertEqual([note["note"] for note in self.cluster.show(run)["notes"]], ["second"])
        self.assertIn("has no note 7", self.wlb("note", run, "--remove", "7", code=1))
        self.assertIn("either a text or --remove", self.wlb("note", run, code=2))
        self.assertIn("put quotes around it", self.wlb("note", run, "two", "words", code=2))

    def test_notes_have_bounds(self):
        run = self.ended_run()
        for body in ({"add": "x" * 4097}, {"add": ""}, {}, {"remove": 0}, {"remove": "1"}, {"add": 1}):
            self.assertEqual(self.note(run, **body)[0], 400, body)
        self.assertEqual(self.note(run, add="ä" * 2048)[0], 200)
        self.cluster.sql(f"insert into notes select id, n, 'x', 'root' from runs, generate_series(2, 100) as n where name = '{run}'")
        status, reply = self.note(run, add="one more")
        self.assertEqual((status, "--remove N" in reply["error"]), (409, True), reply)


class Compare:
    def trained_run(self, steps, tokens="1000", loss="10 - so_far / 1e6", **columns):
        """A run of one attempt. `tokens` of a step s, and its `loss` by the tokens so far, are SQL."""
        run = self.ended_run(**columns)
        self.cluster.sql(f"""
            insert into attempts (run_id, number, uuid, state, nodes, tp, cp, pp, dp, world_size, dtype, device)
                select id, 1, gen_random_uuid(), 'complete', '{{n1}}', 1, 1, 1, 2, 2, 'float32', 'cpu' from runs where name = '{run}';
            insert into steps (run_id, step, attempt_id, loss, tokens, step_time_s, tokens_per_s, recorded_at)
                select r.id, s, a.id, {loss}, own, 0.5, own / 0.5, now()
                from (select s, own, sum(own) over (order by s) as so_far
                    from (select s, {tokens} as own from generate_series(1, {steps}) as s) x) y,
                    runs r join attempts a on a.run_id = r.id where r.name = '{run}';
            update runs set (steps, first_step, last_step, tokens, step_seconds, last_loss) = (select count(*), min(step), max(step),
                coalesce(sum(s.tokens), 0), sum(s.step_time_s), min(loss) from steps s where run_id = runs.id) where name = '{run}'""")
        return run

    def compare(self, *words):
        return json.loads(self.wlb("compare", *words, "--json"))

    def losses(self, report):
        return [[round(loss["loss"], 6) for loss in run["losses"]] for run in report["runs"]]

    def test_losses_at_equal_tokens(self):
        """Runs whose loss is a function of tokens, with batches of other sizes: equal at equal tokens, and not at equal steps."""
        small, large, between = self.trained_run(400), self.trained_run(150, "4000"), self.trained_run(150, "3000")
        report = self.compare(small, large, between)  # the last has no step at any of these numbers of tokens
        self.assertEqual((report["by"], report["common"]), ("tokens", 400000))
        self.assertEqual(self.losses(report), [[9.9, 9.8, 9.7, 9.6]] * 3)
        self.assertAlmostEqual(report["runs"][0]["losses"][3]["mean"], 9.6195, 6)  # of steps 361 to 400
        report = self.compare(small, large, "--by", "steps")
        self.assertEqual((report["by"], report["common"]), ("steps", 150))
        self.assertEqual(self.losses(report), [[9.963, 9.925, 9.888, 9.85], [9.852, 9.7, 9.552, 9.4]])

    def test_more_steps_than_are_sampled(self):
        """The tokens up to each of 9,000 steps, constant or rising ever faster, are a sum over all of them to a tenth of a step's."""
        for tokens, own in (("1000", lambda step: 1000), ("s * s / 10", lambda step: step * step // 10)):
            status, reply = self.api.call("GET", f"/v1/runs/{self.trained_run(9000, tokens)}/steps?points=2000")
            sums = list(itertools.accumulate(own(step) for step in range(1, 9001)))
            self.assertEqual((status, len(reply["steps"])), (200, 2000))
            for step in reply["steps"]:
                self.assertLess(abs(step["tokens_so_far"] - sums[step["step"] - 1]), 0.1 * own(9000))
            self.assertEqual(reply["steps"][-1]["tokens_so_far"], sums[-1])

    def test_steps_that_are_logged_now_and_then(self):
        """A row stands for the steps before it, too."""
        run = self.trained_run(6000)
        self.cluster.sql(f"""
            delete from steps where run_id = (select id from runs where name = '{run}') and step % 2 = 1;
            update steps set span_steps = 2 where run_id = (select id from runs where name = '{run}');
            update runs set steps = 3000, first_step = 2 where name = '{run}'""")
        for step in self.api.call("GET", f"/v1/runs/{run}/steps?points=2000")[1]["steps"]:
            self.assertEqual(step["tokens_so_far"], 1000 * step["step"])

    def test_a_run_without_tokens(self):
        """Another trainer may say none: then steps are compared."""
        told, untold = self.trained_run(40), self.trained_run(30, "null::bigint", "10 - s / 100.0")
        report = self.compare(told, untold)
        self.assertEqual((report["by"], report["common"], report["runs"][1]["tokens"]), ("steps", 30, None))
        self.assertEqual(self.losses(report)[1], [9.93, 9.85, 9.78, 9.7])

    def test_what_differs(self):
        one = self.trained_run(4, policy="""'{"layout":"auto","spares":1}'""", model="""'{"layers":2,"hidden":64}'""",
                               seq_length_tokens=256)
        other = self.trained_run(4, policy="""'{"layout":"auto"}'""", model="""'{"layers":2,"hidden":128}'""", seq_length_tokens=256)
        self.cluster.sql(f"update attempts set dp = 4, memory_bytes = 128400000 where run_id = (select id from runs where name = '{other}')")
        self.assertEqual(self.compare(one, other)["differences"], [
            {"name": "policy.spares", "values": [1, None]}, {"name": "model.hidden", "values": [64, 128]},
            {"name": "layout.dp", "values": [2, 4]}])
        text = self.wlb("compare", one, other)
        self.assertRegex(text, r"\n  model\.hidden +64 +128\n")
        self.assertRegex(text, r"\n  memory +- +128\.4 MB\n")
        self.assertNotIn("layers", text)
        self.assertEqual(self.compare(one, one)["differences"], [])

    def test_csv(self):
        one, other = self.trained_run(4, policy="""'{"spares":1}'"""), self.trained_run(4)
        lines = list(csv.DictReader(io.StringIO(self.wlb("compare", one, other, "--csv"))))
        found = {(line["run"], line["name"], line["at"]): line["value"] for line in lines}
        self.assertEqual([found[one, name, at] for name, at in (("policy.spares", ""), ("tokens", ""), ("loss", "4000"))],
                         ["1", "4000", "9.996"])
        self.assertEqual(found[other, "policy.spares", ""], "")

    def test_names_that_are_no_text(self):
        evil = "E'\\x1b[2J\\u202e=cmd'"
        one = self.trained_run(4, job_name=evil, policy="""'{"a\\u001b\\u202e":"\\u009b1m","b":[{"\\u202e":1}]}'""")
        other = self.trained_run(4)
        for words in ((), ("--json",), ("--csv",)):
            text = self.wlb("compare", one, other, *words)
            self.assertNotRegex(text.replace("\r\n", "\n"), "[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e]")

    def test_what_cannot_be_compared(self):
        run = self.trained_run(4)
        self.assertIn("1 run is given: compare needs 2 to 8", self.wlb("compare", run, code=2))
        self.assertIn("9 runs are given", self.wlb("compare", *[run] * 9, code=2))
        self.assertIn("no run 999999", self.wlb("compare", run, "999999", code=1))
        self.assertIn("'x y'", self.wlb("compare", run, "x y", code=2))
        empty = self.ended_run()
        self.assertRegex(self.wlb("compare", empty, run), r"\n  last step +- +4\n")
        self.assertEqual([self.compare(empty, run)[name] for name in ("by", "common")], ["tokens", None])

    def test_lines_fit_the_terminal(self):
        runs = [self.trained_run(4, policy=f"""'{{"layout":"tp={n},{"x" * 90}"}}'""") for n in range(8)]
        text = self.wlb("compare", *runs)
        self.assertLessEqual(max(map(len, text.splitlines())), 72)
        for mark, run in zip("ABCDEFGH", runs):
            self.assertIn(f"{mark} {run}", text)

    def on_terminal(self, columns, *words, **env):
        """What `wlb` writes to a terminal of so many columns."""
        reader, terminal = pty.openpty()
        fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        with subprocess.Popen(["wlb", *words], stdout=terminal, env=self.cluster.env | {"TERM": "xterm"} | env) as process:
            os.close(terminal)
            text = b""
            with contextlib.suppress(OSError):  # EIO: wlb has closed it
                while data := os.read(reader, 65536):
                    text += data
            os.close(reader)
            self.assertEqual(process.wait(60), 0)
        return text.decode().replace("\r", "")

    def test_on_terminals(self):
        runs = [self.trained_run(40, loss=f"{n} + 1000.0 / so_far") for n in range(3)]
        for columns in (40, 80):
            plain = self.on_terminal(columns, "compare", *runs, NO_COLOR="1")
            self.assertNotIn("\x1b", plain)
            self.assertLessEqual(max(map(len, plain.splitlines())), columns)
            coloured = self.on_terminal(columns, "compare", *runs)
            self.assertIn("\x1b[34mA\x1b[0m", coloured)
            self.assertEqual(re.sub("\x1b\\[[0-9]+m", "", coloured), plain)


class Query:
    endless = "select count(*) from generate_series(1, 100000) a, generate_series(1, 100000) b"

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.cluster.sql("create role reader login; grant usage on schema wlb_code to reader; "
                        "grant select on all tables in schema wlb_code to reader")
        cls.settings = (cls.cluster.dir / "etc/wlbd.conf").read_text(encoding="utf-8")
        cls.restart_with("reader")

    @classmethod
    def restart_with(cls, role, more=""):
        env = cls.cluster.env
        database = f"query_database = host={env['PGHOST']} dbname={env['PGDATABASE']} user={role}\n" if role else ""
        (cls.cluster.dir / "etc/wlbd.conf").write_text(cls.settings, encoding="utf-8")
        cls.restart_wlbd(database + more)

    def query(self, sql, uid=NOBODY):
        return self.api.call("POST", "/v1/query", {"sql": sql}, uid)

    def rows(self, sql):
        status, reply = self.query(sql)
        self.assertEqual(status, 200, reply)
        return reply["rows"]

    def refused(self, sql, word, statuses=(400,)):
        status, reply = self.query(sql)
        self.assertIn(status, statuses, f"{sql}: {reply}")
        self.assertIn(word, reply["error"], sql)

    def test_rows_of_views(self):
        one, other = self.ended_run(last_loss="2.5"), self.ended_run(job_name="E'\\u202e\\x1bx'")
        where = f"from run_summary where run in ('{one}', '{other}') order by run"
        status, reply = self.query(f"select run, state, last_loss, nodes {where} -- by run\n;")
        self.assertEqual((status, reply), (200, {"columns": ["run", "state", "last_loss", "nodes"], "is_cut": False,
                                                 "rows": [[one, "complete", 2.5, None], [other, "complete", None, None]]}))
        self.assertEqual(self.wlb("query", f"select run, last_loss as loss {where}"), f"run   loss\n{one}   2.5\n{other}      \n")
        self.assertEqual(self.wlb("query", f"select run, run as \"a.b\", last_loss {where}", "--csv"),
                         f"run,a.b,last_loss\n{one},{one},2.5\n{other},{other},\n")
        self.assertIn(f"run: {one}\nstate: complete\nrepeat:\n  xxx", self.wlb("query", f"select run, state, repeat('x', 90) {where}"))
        self.assertEqual(self.wlb("query", f"select repeat('x', 9000) {where} limit 1").count("x"), 9000)
        for words in ((), ("--json",), ("--csv",)):
            text = self.wlb("query", f"select job_name, job_name as \"\u202e\" {where}", *words)
            self.assertNotRegex(text, "[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e]")
        self.assertEqual(self.wlb("query", "select run from run_summary where false"), "no rows\n")

    def test_values_of_all_types(self):
        """What a reader of JSON refuses comes as text, or as null."""
        self.assertEqual(self.rows("select 1, 1.5, true, null, '1e400'::json, 10::numeric ^ 30, 'NaN'::float8, array[1, 2], "
                                   "9007199254740993, 1e308::float8, '[\"\\u0000\"]'::json, avg(x), interval '90 s', "
                                   "'{\"a\":1}'::jsonb from (values (1), (2)) as v (x)"),
                         [[1, 1.5, True, None, "1e400", "1" + "0" * 30 + ".0000000000000000", "NaN", [1, 2], 9007199254740993, "1e+308",
                           '["\\u0000"]', 1.5, "00:01:30", {"a": 1}]])

    def test_a_query_is_one_select(self):
        run = self.ended_run()
        for sql in ("delete from runs", "select 1; delete from runs", "set role postgres", "reset role", "begin", "commit",
                    "set statement_timeout = 0", "set session authorization default", "do $$ begin end $$", "listen x", "notify x",
                    "copy run_summary to stdout", "copy (select 1) to program 'touch /tmp/x'", "lock runs", "explain analyze select 1",
                    "create temp table t (x int)", "create table t as select 1", "select 1 into t", "vacuum", "checkpoint", "", ";", "-- x",
                    "with x as (delete from runs returning id) select * from x", "select * from run_summary for update",
                    "select 1) as q(c0)) as r union all (select 'x' from (select (select 1", "select 1 /*", "select $1",
                    "prepare p as select 1", "declare c cursor for select 1", "select from run_summary", "table runs", "select * from runs",
                    "select * from attempts",
                    f"select {', '.join(['1'] * 101)}", "select 1/0", "show all", "call x()", "discard all", "deallocate all"):
            status, reply = self.query(sql)
            self.assertIn(status, (400, 503) if sql in ("", ";", "-- x") else (400,), f"{sql}: {reply}")
        self.assertEqual(self.rows(f"select count(*) from run_summary where run = '{run}'"), [[1]])

    def test_functions_with_side_effects(self):
        """A login may call them: in a select they would take the lock of wlbd, wait, write to disk, end other sessions, change settings."""
        for call in ("pg_sleep(1)", "PG_SLEEP(1)", "\"pg_sleep\"(1)", "pg_catalog.pg_sleep(1)", "pg_advisory_lock(x'574c43'::bigint)",
                     "pg_try_advisory_lock(1)", "pg_notify('x', 'y')", "set_config('statement_timeout', '0', false)", "lo_creat(-1)",
                     "lo_from_bytea(0, 'x')", "pg_terminate_backend(1)", "pg_read_file('/etc/passwd')", "pg_ls_dir('/')",
                     "query_to_xml('select pg_sleep(1)', true, true, '')", "nextval('x')", "wlb_run_tag('1', null, 0, '[]', '[]')",
                     "wlb_code.wlb_run_tag('1', null, 0, '[]', '[]')", "pg_backend_pid()", "ts_stat('select 1')"):
            self.refused(f"select {call}", "cannot be in a query")
        for sql in ("select query from pg_stat_activity", "select * from pg_locks", "select U&\"pg\\005fsleep\"(1)",
                    "select 1 where 'pg_sleep' = 'x'"):
            self.refused(sql, "cannot be in a query")
        self.assertLess(self.rows("select random()")[0][0], 1)

    def test_a_view_that_writes(self):
        """An administrator's view may call any function, of which no word is in the query: its transaction only reads."""
        self.cluster.sql("""
            create table written (x integer);
            create function writes() returns integer language sql security definer as 'insert into public.written values (1) returning x';
            create view wlb_code.of_an_administrator as select writes() as x;
            grant select on wlb_code.of_an_administrator to reader""")
        self.addCleanup(self.cluster.sql, "drop view wlb_code.of_an_administrator; drop function writes; drop table written")
        self.refused("select x from of_an_administrator", "cannot execute INSERT in a read-only transaction")
        self.assertEqual(self.cluster.sql("select count(*) from written"), [["0"]])

    def test_bounds(self):
        status, reply = self.query("select n from generate_series(1, 1000000) as n")
        self.assertEqual((status, len(reply["rows"]), reply["rows"][-1], reply["is_cut"]), (200, 10000, [10000], True))
        status, reply = self.query("select repeat('x', 100000) from generate_series(1, 1000)")
        self.assertEqual((status, len(reply["rows"]), reply["is_cut"]), (200, 83, True))
        status, reply = self.query("select n, repeat('x', n * 1000000) from generate_series(1, 3) as n")
        self.assertEqual((status, len(reply["rows"]), reply["is_cut"]), (200, 1, True))
        self.assertIn("only the first 10000 rows are here", self.cluster.run("wlb", "query", "select generate_series(1, 10001)").stderr)
        self.refused("x" * 16385, "16384 bytes")

    def wait_for_query(self):
        harness.wait_for("the query", lambda: self.cluster.sql(
            "select 1 from pg_stat_activity where usename = 'reader' and state = 'active'"), 5)

    def test_time_is_bounded(self):
        """wlbd cancels it, and nothing of it goes on; meanwhile the user asks nothing else, and others do."""
        self.restart_with("reader", "database_timeout_ms = 400\n")
        self.addCleanup(self.restart_with, "reader")
        replies = []
        asking = threading.Thread(target=lambda: replies.append(self.query(self.endless)))
        asking.start()
        self.wait_for_query()
        status, reply = self.query("select 1")
        self.assertEqual((status, "under way" in reply["error"]), (503, True), reply)
        self.assertEqual(self.query("select 1", NOBODY - 1)[0], 200)
        asking.join()
        self.assertEqual((replies[0][0], "longer than 2 s" in replies[0][1]["error"]), (503, True), replies)
        self.assertEqual(self.cluster.sql("select count(*) from pg_stat_activity where usename = 'reader'"), [["0"]])
        self.assertEqual(self.rows("select 1"), [[1]])

    def test_where_it_is_refused(self):
        self.addCleanup(self.restart_with, "reader")
        for role, more, word in ((None, "", "query_database in wlbd.conf"), ("reader", "private_data = yes\n", "private_data")):
            self.restart_with(role, more)
            for uid in (0, NOBODY):
                status, reply = self.query("select 1", uid)
                self.assertEqual((status, word in reply["error"]), (403, True), reply)

    def test_a_login_that_can_do_more(self):
        for more, less, word in (("grant insert on runs to reader", "revoke insert on runs from reader", "can use public.runs"),
                                 ("grant select (id) on runs to reader", "revoke select (id) on runs from reader", "can use public.runs"),
                                 ("grant update on run_summary to public", "revoke update on run_summary from public",
                                  "can use wlb_code.run_summary"),
                                 ("alter role reader superuser", "alter role reader nosuperuser", "is a superuser"),
                                 ("grant pg_read_all_data to reader", "revoke pg_read_all_data from reader", "is a member of another role"),
                                 ("alter role reader nologin", "alter role reader login", "cannot connect as query_database")):
            self.cluster.sql(more)
            try:
                self.refused("select 1", word, (503,))
            finally:
                self.cluster.sql(less)
        self.assertEqual(self.rows("select 1"), [[1]])
        self.assertIn("query_database: ", (self.cluster.dir / "log/wlbd.out").read_text(encoding="utf-8"))

    def test_wlbd_ends_while_a_query_runs(self):
        """It does not wait for the 20 s that the query may take."""
        self.restart_with("reader", "database_timeout_ms = 4000\n")
        self.addCleanup(self.restart_with, "reader")
        asking = threading.Thread(target=self.cluster.run, args=("wlb", "query", self.endless), kwargs={"check": False})
        asking.start()
        self.wait_for_query()
        pid, = (pid for pid in self.cluster.processes("wlbd") if pathlib.Path(f"/proc/{pid}/comm").read_text(encoding="utf-8") == "wlbd\n")
        os.kill(pid, signal.SIGTERM)
        harness.wait_for("the end of wlbd", lambda: not pathlib.Path(f"/proc/{pid}").exists(), 10)
        asking.join()
        self.assertEqual(self.cluster.sql("select count(*) from pg_stat_activity where usename = 'reader'"), [["0"]])


class Runs(Tags, Compare, Query, RunsTest):
    """All of them beside one cluster."""


if __name__ == "__main__":
    harness.main()
