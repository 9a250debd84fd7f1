#!/usr/bin/env python3
"""Puts millions of steps of 2,000 runs into a private cluster's database, and times what commands and dashboards read of it, the views, and
what stores records. Prints docs/results/database.md. Usage: bench_database.py BUILD_DIR [--before BUILD_DIR] [--steps N]"""
import argparse
import datetime
import json
import os
import pathlib
import re
import signal
import statistics
import subprocess
import sys
import textwrap

import bench_database_fill
from bench_coordinator import Cluster, say
from bench_database_fill import FIRST_JOB, LONG_RUN, LONG_STEPS, RUNS
from bench_host import commit_of, machine, verdict

ROOT = pathlib.Path(__file__).resolve().parents[2]
STEPS, GOAL_MS, TIMES, POINTS, DELIVERIES = 30000000, 100, 7, 2000, 300
LONG, READER = str(FIRST_JOB + LONG_RUN), "bench_reader"


class Sessions:
    """Sessions of psql in one of the cluster's databases."""

    def __init__(self, cluster, database="wlb"):
        self.cluster, self.database = cluster, database

    def script(self, text):
        done = subprocess.run(["psql", "-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-d", self.database], env=self.cluster.env,
                              text=True, input=text + ";\n", capture_output=True, check=False)
        if done.returncode != 0:
            raise Refused(done.stderr.strip())
        return done.stdout

    def value(self, query):
        return self.script(query).strip()

    def times_ms(self, query, role):
        """Of the same statement in a new session, with its rows: the first time, and the later ones."""
        text = f"set role {role};\n\\timing on\n\\o /dev/null\n" + ";\n".join([query.rstrip("; ")] * TIMES)
        return [float(ms) for ms in re.findall(r"^Time: ([0-9.]+) ms", self.script(text), re.MULTILINE)]


class Refused(Exception):
    """What PostgreSQL says of a statement."""


# ---- what is read ----------------------------------------------------------------------------------------------------

def commands():
    """(command, statement of wlbd)"""
    runs = "select wlb_runs_json({}, {}, {}, {})"
    yield "wlb runs", runs.format("null", "null", "null", 20)
    yield "wlb runs --user user3 --state failed", runs.format("null", "'user3'", "'failed'", 20)
    yield "wlb runs --state running", runs.format("null", "null", "'running'", 20)
    yield "wlb runs of a user, with private_data", runs.format("1003", "null", "null", 20)
    yield "wlb runs --limit 500", runs.format("null", "null", "null", 500)
    show = "select wlb_run_shown('{}', null, false, null, '', true)"
    yield "wlb show RUN, the long one", show.format(LONG)
    yield "wlb show RUN, a usual one", show.format(FIRST_JOB + 1)
    yield f"GET /v1/runs/RUN/steps?points={POINTS}", f"select wlb_run_steps_json('{LONG}', null, 1, 10000, {POINTS})"
    yield "wlb faults", "select wlb_faults_list(null, null, null, null, null, 100, true)"
    yield "wlb faults --run RUN", f"select wlb_faults_list('{LONG}', null, null, null, null, 100, true)"
    yield "wlb nodes", "select wlb_nodes_list(null, null, 1000, true)"


def expand(query, chosen, begin, end):
    """A query with what Grafana replaces before it sends it. chosen: the values of variables; '' of all others."""
    macros = {"__timeFilter": lambda column: f"{column} between '{begin}' and '{end}'", "__timeFrom": lambda _: f"'{begin}'",
              "__timeTo": lambda _: f"'{end}'"}
    query = re.sub(r"\$(__\w+)\(([^)]*)\)", lambda found: macros[found[1]](found[2].split(",")[0].strip()), query)
    return re.sub(r"\$\{(\w+):sqlstring\}", lambda found: ",".join(f"'{value}'" for value in chosen.get(found[1], [""])), query)


def queries(part, title=""):
    """(title, SQL) of each query in a dashboard or a group of alert rules, wherever it is."""
    if isinstance(part, list):
        for entry in part:
            yield from queries(entry, title)
    elif isinstance(part, dict):
        title = part.get("title") or part.get("name") or title
        sql = part.get("rawSql") or (part.get("type") == "query" and part.get("query"))
        if isinstance(sql, str) and "select" in sql.lower():
            yield title, sql
        for entry in part.values():
            yield from queries(entry, title)


def panels(chosen, begin, end):
    """(dashboard: panel, statement) of every query in dashboards/."""
    for path in sorted((ROOT / "dashboards").rglob("*.json")):
        for title, sql in queries(json.loads(path.read_text(encoding="utf-8"))):
            yield f"{path.stem}: {title}", expand(sql, chosen, begin, end)


def views(sessions, run_id):
    """(what is read, statement) of every view, of the long run by its name and by its id: all rows, but 2,000 of its steps."""
    found = json.loads(sessions.value("""select json_object_agg(relname, (select json_agg(attname) from pg_attribute a where a.attrelid = c.oid))
        from pg_class c where relnamespace = 'wlb_code'::regnamespace and relkind = 'v'"""))
    for name, columns in sorted(found.items()):
        steps = f" and step > {LONG_STEPS - POINTS}" if name == "run_steps" else ""
        if "run" in columns:
            yield f"{name}, by name{steps}", f"select * from {name} where run = '{LONG}'{steps}"
            yield f"{name}, by id{steps}", f"select * from {name} where run_id = {run_id}{steps}"
        else:
            yield name, f"select * from {name}"
    yield f"run_steps, by id, the newest {POINTS:,}", f"select * from run_steps where run_id = {run_id} order by step desc limit {POINTS}"


# ---- what is stored --------------------------------------------------------------------------------------------------

RECORD = {"loss": 2.5, "grad_norm": 0.8, "lr": 0.001, "tokens": 4194304, "documents": 900, "step_time_s": 0.98, "tokens_per_s": 4279902.1,
          "held_tokens": 210, "predicted_imbalance": 1.01, "imbalance": 1.03, "parts": {f"{name}_s": 0.123456789 for name in (
              "forward", "backward", "tp", "cp", "pp", "bubble", "dp", "optimizer", "loader", "world")}}
NEW_RUN = """
    with r as (
        insert into runs (name, job_id, uid, user_name, state) values ('bench', 1, 0, 'root', 'running') returning id
    ) insert into attempts (run_id, number, uuid, state) select id, 1, gen_random_uuid(), 'running' from r returning id"""


def deliveries(attempt, first, steps):
    """Statements, each of which stores so many steps, one delivery after the other."""
    for at in range(0, DELIVERIES * steps, steps):
        records = [{"seq": at + i, "time": 1790000000 + at + i, "type": "step", "data": {"step": first + at + i - 1, **RECORD}}
                   for i in range(1, steps + 1)]
        yield f"select wlb_deliver({attempt}, 'bench', '{json.dumps({'first_seq': at + 1, 'records': records})}', '{{}}')"


def store(sessions, steps, run=None):
    """Milliseconds of a delivery of so many steps, each a transaction: into a new run, or into the newest attempt of a run that goes on. What
    was stored is removed again."""
    attempt = sessions.value(f"select id from attempts where run_id = {run} order by number desc limit 1" if run else NEW_RUN)
    first = int(sessions.value(f"select coalesce(max(step), 0) + 1 from steps where attempt_id = {attempt}"))
    text = sessions.script("\\timing on\n\\o /dev/null\n" + ";\n".join(deliveries(attempt, first, steps)))
    took = [float(ms) for ms in re.findall(r"^Time: ([0-9.]+) ms", text, re.MULTILINE)]
    sessions.script("delete from runs where name = 'bench'" if not run else
                    f"delete from steps where attempt_id = {attempt} and step >= {first}; delete from sources where source = 'bench'")
    return statistics.median(took[DELIVERIES // 10:])


def empty_database(cluster, build, name):
    cluster.sql(f"create database {name}")
    conninfo = f"host={cluster.env['PGHOST']} user={cluster.env['PGUSER']} dbname={name}"
    subprocess.run([build / "bin/wlb", "db", "migrate", "--database", conninfo], env=cluster.env, check=True, stdout=subprocess.DEVNULL)
    return Sessions(cluster, name)


def written(cluster, full, builds):
    """Rows of the table: (database, milliseconds of a delivery of 1 step, and of 60), the least of three turns."""
    bases = {f"empty, schema of {commit_of(build)}{', before' * (build != builds[-1])}": (empty_database(cluster, build, f"empty_{number}"), None)
             for number, build in enumerate(builds)}
    bases["with all runs, a new run"] = (full, None)
    bases["with all runs, one that goes on"] = (full, full.value("select max(id) from runs"))
    took = {name: {1: [], 60: []} for name in bases}
    for _ in range(3):
        for name, (sessions, run) in bases.items():
            for steps in (1, 60):
                took[name][steps].append(store(sessions, steps, run))
    return [(name, min(of[1]), min(of[60])) for name, of in took.items()]


# ---- the page --------------------------------------------------------------------------------------------------------

def table(sessions, title, asked, role):
    """Prints a section; returns the names of what took longer than the goal."""
    print(f"\n## {title}\n\n| | median | highest | first of a session | |\n|---|---|---|---|---|")
    slow = []
    for name, query in asked:
        try:
            first, *later = sessions.times_ms(query, role)
            median = statistics.median(later)
            is_met, text = median < GOAL_MS, f"{median:.1f} ms | {max(later):.1f} ms | {first:.1f} ms"
        except Refused as why:
            is_met, text = False, f"{str(why).splitlines()[0]} | | "
        slow += [name] * (not is_met)
        print(f"| {name} | {text} | {verdict(is_met)} |", flush=True)
    return slow


def head(sessions, args, size):
    steps, attempts = (int(sessions.value(f"select count(*) from {name}")) for name in ("steps", "attempts"))
    command = "scripts/bench database" + (" --before DIR" if args.before else "") + (f" --steps {args.steps}" if args.steps != STEPS else "")
    server, buffers = (sessions.value(f"show {name}").split()[0] for name in ("server_version", "shared_buffers"))
    print("# A database of many runs\n")
    print(textwrap.fill(f"`{command}` on {datetime.date.today()}, commit {commit_of(args.build)}: {machine()}; PostgreSQL {server} with "
                        f"shared_buffers = {buffers}. The load average of the machine was {os.getloadavg()[0]:.0f} before, and all of this "
                        f"ran at nice {os.nice(0)}.", 140) + "\n")
    print(textwrap.fill(f"The database has {steps:,} steps of {RUNS:,} runs, one of {LONG_STEPS:,} steps and 61 attempts on 512 ranks, {attempts:,} "
                        "attempts with the places of their ranks, checkpoints, evaluations, events, faults, verdicts and checks of nodes "
                        f"({size}). A statement is sent {TIMES} times in a session of psql, with its rows; the goal is that the median "
                        f"after the first time is below {GOAL_MS} ms. The rows of a run lie one after the other.", 140))


def read(sessions, reader):
    """Prints the sections of what is read; returns the names of what took longer than the goal."""
    run_id, other, begin, end = (sessions.value(f"select {column} from runs where name = '{LONG}'")
                                 for column in ("id", "id + 1", "now() - interval '30 days'", "now()"))
    chosen = {"run": [run_id], "runs": [run_id, other], "by": ["step"], "x": ["step"]}
    slow = table(sessions, "Commands, by the statement that wlbd sends", commands(), sessions.cluster.env["PGUSER"])
    slow += table(sessions, "Dashboards and alert rules over 30 days, as the read-only role", panels(chosen, begin, end), reader)
    return slow + table(sessions, "Views of one run, and those of nodes, as the read-only role", views(sessions, run_id), reader)


def main():
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    parser = argparse.ArgumentParser()
    parser.add_argument("build", type=lambda path: pathlib.Path(path).resolve())
    parser.add_argument("--before", type=lambda path: pathlib.Path(path).resolve())
    parser.add_argument("--steps", type=int, default=STEPS)
    args = parser.parse_args()
    with Cluster(args.build) as cluster:
        cluster.verb("kill-wlbd")
        sessions = Sessions(cluster)
        say(f"{args.steps:,} steps go into the database")
        bench_database_fill.fill(sessions.script, args.steps)
        head(sessions, args, sessions.value("select pg_size_pretty(pg_database_size(current_database()))"))
        subprocess.run([args.build / "bin/wlb", "db", "reader", READER], env=cluster.env, check=True, stdout=subprocess.DEVNULL)
        say("commands, panels and views are read")
        slow = read(sessions, READER)
        say("records are stored")
        print(f"\n## Records that are stored\n\nMedians of {DELIVERIES} deliveries of one source, the least of three turns.\n\n"
              "| database | 1 step | 60 steps |\n|---|---|---|")
        for name, one, sixty in written(cluster, sessions, [build for build in (args.before, args.build) if build]):
            print(f"| {name} | {one:.2f} ms | {sixty:.1f} ms |")
        print(f"\nAll below {GOAL_MS} ms: {verdict(not slow)}." + (f" Not: {'; '.join(slow)}." if slow else ""))


if __name__ == "__main__":
    main()
