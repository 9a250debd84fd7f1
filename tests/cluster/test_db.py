#!/usr/bin/env python3
"""wlb db: what cannot be applied changes nothing, and the message says what to do; functions and views are made anew."""
import itertools
import json
import pathlib
import re
import shutil
import subprocess
import tempfile
import threading
import time

import harness
import test_wlbd_api
from harness import ClusterTest, main

SQL = harness.ROOT / "sql"


class Schema(ClusterTest):
    nodes = 1

    def setUp(self):
        """Each test has a database of its own, without a schema."""
        self.name = f"db_{self._testMethodName}"[:60]
        self.cluster.sql(f"create database {self.name}")
        self.addCleanup(self.cluster.sql, f"drop database {self.name} with (force)")
        self.newest = max(int(path.stem) for path in SQL.glob("tables/*.sql"))

    def database(self, **changed):
        words = {"host": self.cluster.env["PGHOST"], "user": self.cluster.env["PGUSER"], "dbname": self.name} | changed
        return " ".join(f"{key}={value}" for key, value in words.items())

    def db(self, verb, folder=None, **changed):
        """(exit code, standard output, message) of `wlb db VERB`."""
        result = self.cluster.run("wlb", "db", verb, "--database", self.database(**changed), check=False,
                                  env={"WLB_MIGRATIONS": str(folder)} if folder else None)
        self.assertLessEqual(result.stderr.count("\n"), 1, result.stderr)
        return result.returncode, result.stdout, result.stderr

    def sql(self, query):
        return self.cluster.run("psql", "-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-d", self.name, "-c",
                                query).stdout.split()

    def versions(self):
        return [int(word) for word in self.sql("select version from schema_version order by 1")]

    def folder(self, **appended):
        """A copy of the folder of the schema, with text at the end of a file: functions_time="..." of functions/time.sql."""
        folder = pathlib.Path(tempfile.mkdtemp(dir=self.cluster.work)) / "sql"
        shutil.copytree(SQL, folder)
        self.addCleanup(shutil.rmtree, folder.parent)
        for name, text in appended.items():
            with open(folder / f"{name.replace('_', '/')}.sql", "a", encoding="utf-8") as file:
                file.write(text)
        return folder

    def dump(self):
        text = self.cluster.run("pg_dump", "-d", self.name).stdout
        return [line for line in text.splitlines() if not re.match(r"\\(un)?restrict ", line)]

    def refused(self, verb, *words, folder=None, **changed):
        code, _, message = self.db(verb, folder, **changed)
        self.assertEqual(code, 1, message)
        for word in words:
            self.assertIn(word, message)

    def test_status_before_and_after(self):
        self.refused("status", "has schema 0", f"needs {self.newest}", "wlb db migrate")
        self.assertEqual(self.db("migrate")[0], 0)
        code, text, _ = self.db("status")
        self.assertEqual((code, text), (0, f"the database has schema {self.newest}, this version needs {self.newest}\n"))
        self.assertEqual(self.db("migrate")[1], f"schema {self.newest} is up to date\n")

    def test_a_connection_string_that_does_not_parse(self):
        for verb in ("status", "migrate"):
            code, _, message = self.db(verb, password="two SECRET")
            self.assertEqual(code, 2, message)
            self.assertIn("--database: ", message)
            self.assertNotIn("SECRET", message)

    def test_a_password_in_the_command_line(self):
        self.db("migrate")
        code, text, warning = self.db("status", password="SECRET")
        self.assertEqual(code, 0, warning)
        self.assertIn("every user of this host can read a password of a command line", warning)
        self.assertNotIn("SECRET", text + warning)

    def test_a_newer_schema_is_left_alone(self):
        self.db("migrate")
        self.sql("insert into schema_version (version, file) values (9999, 'later.sql')")
        for verb in ("status", "migrate"):
            self.refused(verb, "has schema 9999, newer than", "upgrade WLB")
        self.assertEqual(self.versions(), [*range(1, self.newest + 1), 9999])

    def test_a_file_that_fails_changes_nothing(self):
        """Neither in a database without a schema, nor, of functions and views, in one that has it."""
        folder = self.folder(tables_0001="create table half (x integer); select 1 / 0;")
        self.refused("migrate", "tables/0001.sql", "division by zero", folder=folder)
        self.assertEqual(self.sql("select nspname from pg_namespace where nspname = 'wlb_code' union "
                                  "select relname from pg_class where relname in ('half', 'runs', 'schema_version')"), [])
        self.assertEqual(self.db("migrate")[0], 0)
        before = self.dump()
        self.refused("migrate", "functions and views", "no_such_column",
                     folder=self.folder(views_time="create view broken as select no_such_column from runs;"))
        body = "create function wlb_broken() returns bigint language sql as 'select no_such_column from runs';"
        self.refused("migrate", "finish_code.sql", "no_such_column", folder=self.folder(functions_time=body))
        self.assertEqual(self.dump(), before)
        self.assertEqual(self.versions(), [*range(1, self.newest + 1)])

    def test_a_migration_that_takes_its_own_row(self):
        text = f"insert into schema_version (version, file) values ({self.newest}, 'x');"
        self.refused("migrate", f"tables/{self.newest:04d}.sql", "duplicate key",
                     folder=self.folder(**{f"tables_{self.newest:04d}": text}))
        self.refused("status", "has schema 0")

    def test_a_folder_that_is_not_this_versions(self):
        self.refused("migrate", "/nowhere", "set WLB_MIGRATIONS", folder="/nowhere")
        folder = self.folder()
        (folder / "tables/0001.sql").unlink()
        self.refused("migrate", "tables/0001.sql", "No such file", folder=folder)
        shutil.rmtree(folder / "views")
        self.refused("migrate", str(folder), "no functions/*.sql or views/*.sql", folder=folder)
        self.refused("status", "has schema 0")

    def test_a_database_made_before_the_first_release(self):
        self.sql("create table schema_version (version integer primary key, file text not null, "
                 "applied_at timestamptz not null default now()); "
                 "insert into schema_version (version, file) values (1, '0001_tables.sql'), (58, '0058_reasons.sql'); "
                 "create table runs (id bigint primary key); insert into runs values (7)")
        before = self.dump()
        for verb in ("status", "migrate"):
            self.refused(verb, "made before version 0.2.0", "pg_dump", "left as it is")
        self.assertEqual(self.dump(), before)
        self.assertEqual(self.sql("show search_path"), ['"$user",', "public"])

    def test_functions_and_views_are_made_anew(self):
        """Those of another version are dropped; this one's status asks for its own."""
        self.db("migrate")
        other = self.folder(
            functions_time="create function wlb_other(p_one wlb_run_seconds) returns text language sql as $$ select 'x' $$;",
            views_time="create view run_other as select wlb_other(wlb_run_time(id)) from runs;")
        applied = (0, f"schema {self.newest} is applied\n", "")
        self.assertEqual(self.db("migrate", other), applied)
        self.assertEqual(self.sql("select count(*) from run_other"), ["0"])
        self.refused("status", "functions and views", "not those of this version", "wlb db migrate")
        self.assertEqual(self.db("migrate"), applied)
        self.assertEqual(self.sql("select to_regclass('run_other'), to_regproc('wlb_other')"), ["|"])
        self.assertEqual(self.db("migrate")[1], f"schema {self.newest} is up to date\n")

    def test_what_else_depends_on_a_view_is_named(self):
        self.db("migrate")
        self.sql("create view mine as select run from run_summary; create view of_mine as select * from mine; "
                 "create function my_rate(wlb_run_seconds) returns numeric language sql as 'select ($1).held_s'")
        before = self.dump()
        other = self.folder(functions_time="-- another version")
        self.refused("migrate", "nothing was changed", "view mine depends on view run_summary", "view of_mine depends on view mine",
                     "make it again", folder=other)
        self.assertEqual(self.dump(), before)
        self.sql("drop view of_mine, mine")
        self.refused("migrate", "function my_rate(wlb_run_seconds) depends on type wlb_run_seconds", folder=other)
        self.sql("drop function my_rate")
        self.assertEqual(self.db("migrate", other)[0], 0)

    def test_grants_stay(self):
        self.db("migrate")
        self.sql("create role reader")
        self.addCleanup(self.cluster.sql, "drop role reader")
        self.addCleanup(self.sql, "drop owned by reader")
        self.sql("grant select on run_summary to reader with grant option; grant select (run) on run_steps to reader; "
                 "revoke execute on function wlb_real from public; grant execute on function wlb_real to reader; "
                 "alter default privileges in schema wlb_code grant select on tables to reader")
        granted = ("select relacl from pg_class where relname = 'run_summary' union all "
                   "select proacl from pg_proc where proname in ('wlb_real', 'wlb_rate') union all "
                   "select attacl from pg_attribute where attrelid = 'run_steps'::regclass and attname in ('run', 'step')")
        before = self.sql(granted)
        self.assertEqual(len([acl for acl in before if "reader" in acl]), 3, before)
        self.assertEqual(self.db("migrate", self.folder(views_time="create view run_other as select 1 as one;"))[0], 0)
        self.assertEqual(self.sql("set role reader; select one from run_other"), ["1"])
        self.assertEqual(self.db("migrate")[0], 0)
        self.assertEqual(self.sql(granted), before)
        self.assertEqual(self.sql("set role reader; select count(run) from run_steps; select wlb_real(1)"), ["0", "1"])

    def test_another_session_uses_a_view(self):
        """The wait has a bound, and changes nothing."""
        self.db("migrate")
        other = self.folder(functions_time="-- another version")
        reader = self.begin("psql", "-X", "-q", "-d", self.name)
        reader.stdin.write("begin; select count(*) from run_summary;\n")
        reader.stdin.flush()
        used = "select count(*) from pg_locks where relation = 'run_summary'::regclass and granted"
        harness.wait_for("the lock", lambda: self.sql(used) == ["1"], 10)
        before, began = self.dump(), time.monotonic()
        self.refused("migrate", "another session has used a table or a view for 10 s", "again", folder=other)
        self.assertLess(time.monotonic() - began, 20)
        self.assertEqual(self.dump(), before)
        reader.communicate(timeout=10)
        self.assertEqual(self.db("migrate", other)[0], 0)

    def test_a_deadlock_with_another_session(self):
        """PostgreSQL ends the transaction of the migration, which is tried again."""
        self.db("migrate")
        self.sql(f"alter database {self.name} set deadlock_timeout = '3s'")
        views = self.sql("select relname from pg_class where relnamespace = 'wlb_code'::regnamespace and relkind = 'v'")
        reader = self.begin("psql", "-X", "-q", "-d", self.name)
        reader.stdin.write(f"set deadlock_timeout = '1min'; begin; select count(*) from {views[-1]};\n")
        reader.stdin.flush()
        locks = f"select count(*) from pg_locks where relation = '{views[-1]}'::regclass and "
        harness.wait_for("the lock", lambda: self.sql(locks + "granted") == ["1"], 10)
        migration = self.begin("env", f"WLB_MIGRATIONS={self.folder(functions_time='-- another version')}",
                               harness.BUILD / "bin/wlb", "db", "migrate", "--database", self.database())
        harness.wait_for("the migration", lambda: self.sql("select count(*) from pg_locks where not granted") == ["1"], 10)
        text, _ = reader.communicate(f"select count(*) from {views[0]}; commit;\n", timeout=20)
        self.assertNotIn("ERROR", text)
        text, _ = migration.communicate(timeout=20)
        self.assertEqual(migration.returncode, 0, text)
        self.assertEqual(self.sql("select deadlocks from pg_stat_database where datname = current_database()"), ["1"])

    def test_names_are_found_without_their_schema(self):
        """Beside an administrator's setting, and again in a database that was restored, which has lost its settings."""
        self.sql(f"alter database {self.name} set search_path = \"$user\", public, pg_temp")
        self.db("migrate")
        self.assertEqual(self.sql("show search_path"), ['"$user",', "public,", "pg_temp,", "wlb_code"])
        self.sql(f"alter database {self.name} reset search_path")
        self.assertEqual(self.db("migrate")[1], f"schema {self.newest} is up to date\n")
        self.assertEqual(self.sql("show search_path"), ['"$user",', "public,", "wlb_code"])
        self.assertEqual(self.sql("select count(*) from run_summary"), ["0"])

    def test_kinds_of_faults_are_those_of_the_programs(self):
        self.db("migrate")
        source = (harness.ROOT / "common/fault_kinds.c").read_text(encoding="utf-8")
        kinds = re.findall(r'^\t\[WLB_FAULT_\w+\] = \{\.name = "(\w+)"(, \.is_loss = true)?', source, re.MULTILINE)
        header = (harness.ROOT / "common/fault_kinds.h").read_text(encoding="utf-8")
        self.assertEqual(len(kinds), len(re.findall(r"^\tWLB_FAULT_\w+,", header, re.MULTILINE)) - 1)  # the last counts them
        self.assertEqual(sorted(self.sql("select name || ':' || is_loss from fault_kinds")),
                         sorted(f"{name}:{'true' if is_loss else 'false'}" for name, is_loss in kinds))

    def test_generated_pages_are_current(self):
        def check():
            done = self.cluster.run(harness.ROOT / "scripts/schema", "--check", check=False, env={"PGDATABASE": self.name})
            self.assertEqual(done.stdout, "")
            return done.returncode, done.stderr

        self.db("migrate")
        self.assertEqual(check(), (0, ""))
        self.sql("comment on column run_ettr.ettr is null; alter table runs add column uncommented integer")
        self.assertEqual(check(), (1, "run_ettr.ettr has no comment\nruns.uncommented has no comment\n"))
        self.sql("comment on column run_ettr.ettr is 'another'; comment on column runs.uncommented is 'x'")
        code, text = check()
        self.assertEqual(code, 1)
        for line in ("+    uncommented integer", "+| `uncommented` | integer | x |", "+| `ettr` | numeric | another |"):
            self.assertIn(line, text)

    def begin(self, *command):
        """A process of the cluster, which ends with the test; returns its Popen."""
        process = subprocess.Popen(command, env=self.cluster.env, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                   stderr=subprocess.STDOUT, text=True)
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        return process

    def test_names_of_views_and_their_columns_stay(self):
        """What people and dashboards select stays: a later version may add columns and views, which tests/fixtures/views.txt has then."""
        self.db("migrate")
        found = self.sql("select c.relname || '.' || a.attname from pg_class c join pg_attribute a on a.attrelid = c.oid "
                         "where c.relnamespace = 'wlb_code'::regnamespace and relkind = 'v' order by 1")
        known = (harness.ROOT / "tests/fixtures/views.txt").read_text(encoding="utf-8").split()
        self.assertEqual([name for name in known if name not in found], [], "these columns were there")
        self.assertEqual([name for name in found if name not in known], [], "add them to tests/fixtures/views.txt")

    def reader(self, name, *words):
        """As `wlb db reader NAME`, (exit code, standard output, message)."""
        done = self.cluster.run("wlb", "db", "reader", name, *words, "--database", self.database(), check=False)
        return done.returncode, done.stdout, done.stderr

    def role(self, name, attributes=""):
        """A role of this test; attributes: null where the command is to make it."""
        if attributes is not None:
            self.cluster.sql(f"create role {name} {attributes}")
        self.addCleanup(self.cluster.sql, f"drop role if exists {name}")
        self.addCleanup(self.sql, f"drop owned by {name}")

    def as_reader(self, *queries):
        """(exit code, standard output, message) of statements in a session of the reader."""
        done = self.cluster.run("psql", "-X", "-q", "-A", "-t", "-U", "reads", "-v", "ON_ERROR_STOP=1", "-d", self.name,
                                *(word for query in queries for word in ("-c", query)), check=False)
        return done.returncode, done.stdout, done.stderr

    def test_a_reader_reads_the_views_and_nothing_else(self):
        self.db("migrate")
        self.fill_run("now() - interval '40 days'", steps=4)
        self.role("reads", attributes=None)
        for _ in range(2):
            code, text, message = self.reader("reads")
            self.assertEqual((code, message), (0, ""))
            self.assertIn(f"dbname={self.name} user=reads", text)
            self.assertIn(f" set one as {self.sql('select current_user')[0]}: psql -d {self.name} ", text)
        for view in self.sql("select relname from pg_class where relnamespace = 'wlb_code'::regnamespace and relkind = 'v'"):
            self.assertEqual(self.as_reader(f"select * from {view}")[::2], (0, ""), view)
        self.assertEqual(self.as_reader("select held_s, effective_s from run_times_all")[1], "1000.000000000|4.000000000\n")
        for table in self.sql("select relname from pg_class where relnamespace = 'public'::regnamespace and relkind = 'r'"):
            self.assertIn("permission denied for table", self.as_reader(f"select * from {table}")[2], table)
        for statement in ("select wlb_deliver(1, 'run', '{}', '{}')", "select wlb_prune_runs(now())", "update run_events set kind = 'x'",
                          "create table mine (x integer)", "select wlb_reader_make('another')"):
            self.assertEqual(self.as_reader("set default_transaction_read_only = off", statement)[0], 1, statement)
        self.assertIn("read-only transaction", self.as_reader("create temp table mine (x integer)")[2])
        self.assertEqual(self.sql("select proname from pg_proc where pronamespace = 'wlb_code'::regnamespace and prosecdef order by 1"),
                         ["wlb_run_time", "wlb_sampled_steps"])
        self.role("stranger")
        for function in ("wlb_sampled_steps(1, 9)", "wlb_run_time(1)"):
            done = self.cluster.run("psql", "-X", "-d", self.name, "-c", "set session authorization stranger", "-c", f"select {function}",
                                    check=False)
            self.assertIn("stranger may not read the views", done.stderr)
        self.assertEqual(self.db("migrate", self.folder(views_time="create view run_other as select 1 as one;"))[0], 0)
        self.assertEqual(self.as_reader("select one from run_other")[1], "1\n")

    def test_a_table_of_the_readers_own_does_not_stand_for_one_of_ours(self):
        """What reads tables for a view finds none in the schema of temporary tables, whose views would be run with the owner's rights."""
        self.db("migrate")
        self.fill_run("null", steps=4)
        self.role("reads", attributes=None)
        self.reader("reads")
        code, text, message = self.as_reader(
            "set default_transaction_read_only = off", "create temp view steps as select * from run_steps where false; "
            "create temp view attempts as select 1 / 0 as id", "select count(*) from run_curves; select is_recorded from run_times_all")
        self.assertEqual((code, text, message), (0, "4\nt\n", ""))

    def test_a_role_that_can_do_more_is_no_reader(self):
        self.db("migrate")
        self.role("reads_all", "login in role pg_read_all_data")
        self.role("makes_roles", "createrole")
        for name, words in {"wlb": "which owns the tables", "makes_roles": "may make roles", "pg_x": "is reserved",
                            "reads_all": "role reads_all can use table"}.items():
            code, text, message = self.reader(name)
            self.assertEqual((code, text), (1, ""), name)
            self.assertIn(words, message)
        self.assertEqual(self.sql("select rolconnlimit from pg_roles where rolname = 'reads_all'"), ["-1"])
        for words, rule in ((["a", "b"], "reader takes one name"), (["a", "--older-than", "30"], "for it alone")):
            code, _, message = self.reader(*words)
            self.assertEqual(code, 2)
            self.assertIn(rule, message)

    def fill_run(self, ended, steps, name="12", attempts=1):
        """A run of 1,000 s, which began that long before its end or before now; each attempt does as many of its steps as the others, and
        five that the next does again. Returns its id."""
        return int(self.sql(f"""
            with r as (insert into runs (name, job_id, uid, user_name, state, created_at, started_at, ended_at, steps, last_step)
                select '{name}', 12, 0, 'root', 'running', began, began, {ended}, {steps}, {steps}
                from (select coalesce({ended}, now()) - interval '1000 s' as began) as x returning *),
            a as (insert into attempts (run_id, number, uuid, state, world_size, created_at, started_at, ended_at, step_seconds)
                select id, number, gen_random_uuid(), 'complete', 2, created_at + later, created_at + later, ended_at, {steps} / {attempts}
                from r, generate_series(1, {attempts}) as number, lateral (
                    select interval '100 s' * (number - 1) as later) as x returning *),
            s as (insert into steps (run_id, step, attempt_id, loss, tokens, step_time_s, parts, loss_tokens, recorded_at)
                select run_id, begins + step, id, 2 + (begins + step) % 2, 100, 1, '{{"forward_s": 1}}',
                    case when step % 2 = 0 then 40 end, started_at + interval '1 s' * step
                from a, lateral (select (number - 1) * {steps} / {attempts} as begins, number * {steps} / {attempts} as ends) as x,
                    generate_series(1, ends - begins) as step),
            again as (insert into steps_superseded (run_id, step, attempt_id, step_time_s, recorded_at)
                select run_id, number * {steps} / {attempts} + k, id, 1, started_at
                from a, generate_series(1, 5) as k where number < {attempts}),
            places as (insert into rank_map (attempt_id, rank, node, local_rank)
                select id, rank, 'n1', rank from a, generate_series(0, 1) as rank),
            samples as (insert into rank_samples (attempt_id, sampled_at, late_s, work) select id, started_at, '{{0, 0.5}}', '{{1, 2}}' from a)
            select id from r""")[0])

    def prune(self, *words):
        """The rows of what `wlb db prune` prints, by their names."""
        done = self.cluster.run("wlb", "db", "prune", *words, "--database", self.database())
        return dict(line.rsplit(": ", 1) for line in done.stdout.splitlines())

    def test_what_is_old_is_removed(self):
        """Of a run that is over its details, of an older one all; of one that goes on nothing. Sums, edges of attempts, time stay."""
        self.db("migrate")
        self.fill_run("now() - interval '400 days'", steps=30000, name="old")
        middle = self.fill_run("now() - interval '40 days'", steps=50001, name="middle", attempts=3)
        going = self.fill_run("null", steps=100, name="going")
        kept = ("select sum(span_steps), sum(tokens * span_steps), sum(step_time_s * span_steps), min(step), max(step) from steps "
                f"where run_id = {middle}; select attempt, first_step, last_step from run_attempts where run_id = {middle}; "
                f"select * from run_times_all where run_id = {middle}; select count(*) from steps where run_id = {going}")
        before = self.sql(kept)
        words = ("--older-than", "365", "--detail-older-than", "30")
        self.assertEqual(self.prune(*words, "--dry-run"), {"would be runs removed": "1", "would be runs whose details are removed": "1"})
        self.assertEqual(self.sql(kept), before)
        removed = self.prune(*words)
        rows = int(self.sql(f"select count(*) from steps where run_id = {middle}")[0])
        self.assertLessEqual(rows, 2000 + 9)
        self.assertEqual(removed, {"runs removed": "1", "runs whose details are removed": "1", "places of ranks": "8",
                                   "samples of ranks": "4", "steps that were done again": "6", "steps, rolled up or of runs removed": str(30000 + 50001 - rows)})
        self.assertEqual(self.sql(kept), before)
        self.assertEqual(self.sql("select name from runs order by id"), ["middle", "going"])
        self.assertEqual(self.sql("select round(avg(loss)::numeric, 1), count(parts) from steps "
                                  f"where run_id = {middle} and span_steps > 1"), ["2.5|0"])
        self.assertEqual(self.sql("select count(*) > 1000, bool_and(loss_tokens between 55 and 85) from steps "
                                  f"where run_id = {middle} and span_steps > 2"), ["t|t"])
        self.assertEqual(self.prune(*words), {"runs removed": "0", "runs whose details are removed": "0"})

    def test_a_prune_that_is_killed_goes_on_later(self):
        """Each transaction leaves sums that are right."""
        self.db("migrate")
        run = self.fill_run("now() - interval '40 days'", steps=60000)
        total = f"select sum(span_steps), sum(tokens * span_steps) from steps where run_id = {run}"
        before = self.sql(total)
        holder = self.begin("psql", "-X", "-q", "-d", self.name)
        holder.stdin.write(f"begin; select from steps where run_id = {run} and step = 50000 for update;\n")
        holder.stdin.flush()
        prune = self.begin(harness.BUILD / "bin/wlb", "db", "prune", "--detail-older-than", "30", "--database", self.database())
        rolled = "select rolled_to from prunings"
        harness.wait_for("the first batches", lambda: int((self.sql(rolled) or ["0"])[0]) >= 39000, 20)
        prune.kill()
        prune.communicate()
        self.assertEqual(self.sql(total), before)
        self.assertEqual(self.sql("select done_at from prunings"), [])
        holder.communicate("commit;\n", timeout=10)
        ours = "select pid from pg_stat_activity where application_name = 'wlb'"
        harness.wait_for("the end of its session", lambda: self.sql(ours) == [], 10)
        self.assertEqual(self.prune("--detail-older-than", "30")["runs whose details are removed"], "1")
        self.assertEqual(self.sql(total), before)
        self.assertLessEqual(int(self.sql(f"select count(*) from steps where run_id = {run}")[0]), 2003)

    def test_days_that_are_too_few(self):
        self.db("migrate")
        for words, rule in ((["--older-than", "29"], "30"), ([], "prune needs --older-than"), (["--dry-run"], "prune needs --older-than")):
            done = self.cluster.run("wlb", "db", "prune", *words, "--database", self.database(), check=False)
            self.assertEqual(done.returncode, 2, words)
            self.assertIn(rule, done.stderr)

    def test_the_time_of_a_run_that_is_over_is_kept(self):
        """It is that which is computed, whatever changes it after the run's end."""
        self.db("migrate")
        run = self.fill_run("null", steps=10, attempts=2)
        kept = f"select held_s from run_times where run_id = {run}"
        self.assertEqual(self.sql(kept), [])
        attempt = f"(select min(id) from attempts where run_id = {run})"
        step = {"first_seq": 1, "records": [{"seq": 1, "time": time.time() - 10, "type": "step", "data": {"step": 11, "step_time_s": 3}}]}
        alive = "jsonb_build_object('alive_at', extract(epoch from started_at) + 20)"
        judged = json.dumps({"strength": 3, "sentence": "node n1 is lost"})
        before = []
        for change in ("update runs set ended_at = now() - interval '1 s'",
                       f"update attempts set resumed_step = 3 where run_id = {run} and number = 2",
                       f"select wlb_deliver(max(id), '0', '{json.dumps(step)}', '{{}}') from attempts",
                       "insert into suspensions (run_id, began_at, ended_at) select id, started_at, started_at + interval '2 s' from runs",
                       f"update attempts set state = 'failed', ended_at = started_at + interval '30 s' where id = {attempt}",
                       f"select wlb_fault_found(id, 'node_lost', null, 'n1', null, '', {alive}, now(), '{judged}') "
                       f"from attempts where id = {attempt}",
                       "update runs set ended_at = ended_at - interval '5 s'"):
            self.sql(change)
            after = self.sql("select * from run_times")
            self.assertEqual(after, self.sql("select id, (wlb_run_time(id)).* from runs"), change)
            self.assertNotEqual(after, before, change)
            before = after
        self.sql("update runs set ended_at = null")
        self.assertEqual(self.sql(kept), [])

    def test_a_second_migration_waits_for_the_first(self):
        """Whatever the timeouts of the connection string are."""
        first = self.begin("psql", "-X", "-q", "-d", self.name)
        first.stdin.write("select pg_advisory_lock(x'574c42'::int);\n")
        first.stdin.flush()
        held = "select count(*) from pg_locks where locktype = 'advisory' and objid = x'574c42'::int::oid and granted"
        harness.wait_for("the lock", lambda: self.sql(held) == ["1"], 10)
        second = self.begin(harness.BUILD / "bin/wlb", "db", "migrate", "--database",
                            self.database(options="'-cstatement_timeout=300 -clock_timeout=300'"))
        with self.assertRaises(subprocess.TimeoutExpired):
            second.wait(timeout=2)
        first.communicate(timeout=10)
        text, _ = second.communicate(timeout=60)
        self.assertEqual(second.returncode, 0, text)
        self.assertEqual(self.db("status")[0], 0)

    def test_a_database_of_another_encoding(self):
        self.cluster.sql("create database of_ascii encoding 'SQL_ASCII' template template0 locale 'C'")
        self.addCleanup(self.cluster.sql, "drop database of_ascii with (force)")
        for verb in ("migrate", "status"):
            code, _, warning = self.db(verb, dbname="of_ascii")
            self.assertEqual(code, 0, warning)
            for words in ("warning: ", "encoding SQL_ASCII", "should have UTF8", "createdb -E UTF8"):
                self.assertIn(words, warning)
        self.assertNotIn("warning", self.db("status")[2])
        conf = self.cluster.work / "of_ascii.conf"
        text = re.sub("^listen = .*", "listen = 127.0.0.1:0", (self.cluster.dir / "etc/wlbd.conf").read_text(encoding="utf-8"),
                      flags=re.MULTILINE)
        conf.write_text(text.replace("dbname=wlb", "dbname=of_ascii"), encoding="utf-8")
        wlbd = subprocess.Popen([harness.BUILD / "bin/wlbd", "--config", conf], env=self.cluster.env, text=True,
                                stderr=subprocess.PIPE)
        self.addCleanup(wlbd.wait, 20)
        self.addCleanup(wlbd.terminate)
        for line in wlbd.stderr:
            if "encoding" in line:
                break
        self.assertIn("database: the database has the encoding SQL_ASCII", line)

    def test_a_database_that_does_not_let_us_in(self):
        self.refused("status", "database: ", "/nowhere", host="/nowhere")
        self.refused("migrate", "database: ", "does not exist", dbname="no_such_database")
        self.sql("create role stranger login")
        self.addCleanup(self.cluster.sql, "drop role stranger")
        self.refused("migrate", "permission denied", f"alter database {self.name} set search_path",
                     "create schema wlb_code authorization stranger", user="stranger")
        self.db("migrate")
        self.refused("status", "schema_version: ", "permission denied", user="stranger")


class Serving(test_wlbd_api.ApiTest):
    """A wlbd that serves while functions and views are made anew."""

    def backends(self):
        return self.cluster.sql("select pid from pg_stat_activity where application_name = 'wlbd' order by backend_start")

    def ask(self, ended, problems):
        """What is read and written uses functions and views that the connections have planned before."""
        for number in itertools.count():
            if ended.is_set():
                return
            check = {"node": "n1", "healthy": number % 2 == 0, "reason": "disk: bad" if number % 2 else "", "checks": []}
            for method, path, body in (("GET", "/v1/runs", None), ("GET", "/v1/nodes", None), ("POST", "/v1/node_checks", check)):
                status, reply = self.api.call(method, path, body)
                if status not in (200, 503):
                    problems.append((method, path, status, reply))

    def test_it_goes_on(self):
        folder = pathlib.Path(tempfile.mkdtemp(dir=self.cluster.work)) / "sql"
        shutil.copytree(SQL, folder)
        with open(folder / "functions/values.sql", "a", encoding="utf-8") as file:
            file.write("-- another version")
        ended, problems, before = threading.Event(), [], self.backends()
        asking = [threading.Thread(target=self.ask, args=(ended, problems)) for _ in range(2)]
        for thread in asking:
            thread.start()
        try:
            for other in (folder, SQL) * 3:
                done = self.cluster.run("wlb", "db", "migrate", env={"WLB_MIGRATIONS": str(other)})
                self.assertIn("is applied", done.stdout)
        finally:
            ended.set()
            for thread in asking:
                thread.join()
        self.assertEqual(problems, [])
        for path in ("/v1/runs", "/v1/nodes"):
            status, reply = self.api.call("GET", path)
            self.assertEqual(status, 200, reply)
        self.assertEqual(self.backends(), before)


if __name__ == "__main__":
    main()
