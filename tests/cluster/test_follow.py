#!/usr/bin/env python3
"""What trainers that record nothing themselves say of their steps is in the record of their run: each step once."""
import json
import os
import signal
import struct
import sys
import textwrap

from harness import ROOT, ClusterTest, main, wait_for

sys.path.insert(0, str(ROOT / "tests" / "unit" / "python"))
from test_hook import TORCH

SAMPLES = ROOT / "tests" / "unit" / "follow" / "samples"

# Trains 30 steps with the package wlb, saves each tenth, and goes on behind the newest save. In the first attempt it stops at step 25.
LOGGED = """
    import os, sys, time
    sys.path.insert(0, sys.argv[1])
    import wlb
    rank, attempt = int(os.environ["RANK"]), os.environ["WLB_ATTEMPT"]
    try:
        first = int(open("saved").read())
    except OSError:
        first = 0
    for step in range(first + 1, 31):
        if attempt == "1" and step == 26:
            open("at_26", "w").close()
            time.sleep(600)
        time.sleep(0.02)
        wlb.log(step=step, loss=10.0 / step + rank, tokens=1000, lr=0.5)
        if step % 10 == 0:
            wlb.log(step=step, **{"eval/loss": 1.0 / step + rank})
            if rank == 0:
                open("saved", "w").write(str(step))
                wlb.checkpoint("saved", step=step, took_s=3, stall_s=0.0078125)
    """

# Says what hurts whoever believes it. It is read meanwhile.
HOSTILE = """
    import os, time
    with open(os.environ["WLB_METRICS_FILE"], "w") as file:
        file.write('{"step": 1, "loss": 1}\\n')
        file.write('{"step": 2, "loss": NaN, "\\\\u001b[31mred\\\\u0007": 1, "big": -Infinity}\\n')
        for n in range(3000):
            file.write('{"step": 3, "n%d": 1}\\n' % n)
        file.write('{"step": 4, "long": ' + "1" * 10000000 + '}\\n')
        file.write('[1]\\nnothing\\n\\0\\n{"step": -1, "loss": 7}\\n{"step": 1e300, "loss": 7}\\n')
        file.write('{"step": 5, "loss": 5}\\n{"step": 2, "loss": 2.5}\\n{"step": 3, "loss": 1e301}\\n')
    time.sleep(3)
    """


# A trainer that says nothing of its steps, but a loss to TensorBoard from its third step on.
HOOKED = """
    import os, torch, time
    from torch.utils.tensorboard import SummaryWriter
    print("path", os.environ["PYTHONPATH"], flush=True)
    optimizer = torch.optim.Optimizer()
    for step in range(3):
        optimizer.step()
    time.sleep(1.5)
    if os.environ["RANK"] == "0":
        SummaryWriter().add_scalar("train/loss", 0.5, 7)
        SummaryWriter().add_scalar("train/loss", 0.25, 8)
        torch.save({}, "saved.pt")
    """


class Follow(ClusterTest):
    nodes = 3

    def submit(self, script, *options, nodes=1):
        return self.cluster.sbatch(script, "--wlb-layout=auto", "--no-kill", "--ntasks-per-node=1", *options, nodes=nodes)

    def program(self, name, text):
        path = self.cluster.work / name
        path.write_text(textwrap.dedent(text), encoding="utf-8")
        return path

    def run_of(self, job):
        """The run of a job that has completed, as the API has it once all is recorded."""
        self.assertEqual(self.cluster.wait_job(job), "COMPLETED", self.cluster.output(job))
        return wait_for(f"end of run {job}", lambda: (lambda run: run if run["state"] == "complete" else None)(self.cluster.show(job)), 20)

    def steps(self, job):
        return {step["step"]: step for step in self.cluster.show(job, "--steps")["steps"]}

    def values(self, run):
        return {value["name"]: value for value in run["values"]}

    def test_steps_that_are_logged_across_attempts(self):
        program = self.program("logged.py", LOGGED)
        job = self.submit(f"wlb run -- python3 {program} {ROOT}/python", nodes=3)
        wait_for("step 26", (self.cluster.work / "at_26").exists, 60)
        wait_for("the last step", lambda: self.cluster.show(job)["last_step"] == 25, 20)
        self.assertRegex(self.cluster.run("wlb", "top", str(job), "--once").stdout, r"step 25 of -, loss 0\.4000, \d+ tokens/s")
        self.cluster.kill_node(2)
        try:
            run = self.run_of(job)
        finally:
            self.cluster.restore_node(2)
        steps = self.steps(job)
        self.assertEqual(sorted(steps), list(range(1, 31)))
        for number, step in steps.items():  # the values of rank 0
            self.assertEqual([step["loss"], step["tokens"], step["attempt"]], [10.0 / number, 1000, 1 if number <= 20 else 2])
        self.assertEqual([run["last_step"], run["steps_repeated"], run["tokens"]], [30, 5, 30000])
        self.assertEqual([attempt["resumed_step"] for attempt in run["attempts"]], [None, 20])
        self.assertEqual([(save["attempt"], save["step"]) for save in run["checkpoints"]], [(1, 10), (1, 20), (2, 30)])
        self.assertEqual([[save[key] for key in ("bytes", "duration_s", "stall_s", "is_seen")] for save in run["checkpoints"]],
                         [[2, 3, 0.0078125, False]] * 3)
        self.assertEqual(self.values(run)["eval/loss"],
                         {"name": "eval/loss", "attempt": 2, "step": 30, "is_of_attempt": False, "value": 1.0 / 30, "source": "log"})
        self.check_times(run, steps)
        self.check_screens(job)
        self.assertEqual(list((self.cluster.work / ".wlb").glob(f"metrics-{job}-*")), [], self.cluster.output(job))

    def check_times(self, run, steps):
        known = [step["step_time_s"] for step in steps.values() if step["step_time_s"] is not None]
        self.assertGreaterEqual(len(known), 28)
        self.assertTrue(all(0.01 < seconds < 5 for seconds in known), known)
        self.assertGreater(run["time_lost"]["ettr"], 0)
        self.assertGreater({lost["cause"]: lost["seconds"] for lost in run["time_lost"]["causes"]}["repeated"], 0)

    def check_screens(self, job):
        shown = self.cluster.run("wlb", "show", str(job)).stdout
        self.assertRegex(shown, r"steps 1 to 30 of - \(5 repeated\), loss 10\.0000 to 0\.3333, 30000 tokens")
        self.assertRegex(shown, r"(?m)^  eval/loss +0\.0333333 +30 +2  wlb\.log$")
        self.assertRegex(self.cluster.run("wlb", "runs").stdout, rf"(?m)^{job} .* 30 +0\.3333 ")

    def test_a_killed_launcher(self):
        """Each line is recorded once, also those that it had no time to read."""
        program = self.program("written.py", """
            import os, time
            with open(os.environ["WLB_METRICS_FILE"], "a", buffering=1) as file:
                for step in range(1, 2001):
                    file.write('{"step": %d, "loss": 1, "tokens": 1}\\n' % step)
                open("written", "w").close()
                time.sleep(600)
            """)
        job = self.submit(f"wlb run -- python3 {program} & echo $! > launcher; wait; wlb run -- true", "--no-requeue")
        wait_for("all lines", (self.cluster.work / "written").exists, 60, 0.01)
        os.kill(int((self.cluster.work / "launcher").read_text()), signal.SIGKILL)
        self.cluster.wait_job(job)
        wait_for("the last step", lambda: self.cluster.show(job)["last_step"] == 2000, 40)
        self.assertEqual(self.cluster.sql(f"select steps, steps_repeated, tokens from runs where name = '{job}'"), [["2000", "0", "2000"]])
        self.assertEqual(list((self.cluster.work / ".wlb").glob(f"metrics-{job}-*")), [], self.cluster.output(job))

    def test_what_is_said_cannot_hurt(self):
        program = self.program("hostile.py", HOSTILE)
        job = self.submit(f"wlb run -- python3 {program}")
        run = self.run_of(job)
        steps = self.steps(job)
        self.assertEqual(sorted(steps), [1, 2, 3, 5])
        self.assertEqual([steps[number]["loss"] for number in (1, 2, 5)], [1, 2.5, 5])
        values = self.values(run)
        self.assertEqual(len(values), 256)
        self.assertEqual([values[name]["value"] for name in ("big", "red")], ["-inf", 1])
        output = self.cluster.output(job)
        self.assertRegex(output, r"wlb: attempt 1: of WLB_METRICS_FILE were left out: \d+ lines that are no records, 1 longer than 64 KiB")
        self.assertRegex(output, r"wlb: attempt 1: \d+ values that the trainer said are not recorded: a run has 256 names of values")
        self.assertIn("wlb: attempt 1: its steps went back", output)
        self.assertNotIn("\x1b", self.cluster.run("wlb", "show", str(job)).stdout)

    def test_what_is_printed(self):
        lines = "".join(f" iteration {step:8d}/ 100 | consumed samples: 160 | elapsed time per iteration (ms): 250.0 | "
                        f"learning rate: 1.0E-03 | lm loss: {step}.5E+00 |\\n" for step in (10, 20, 30))
        job = self.submit(f"wlb run -- printf '{lines}'")
        run = self.run_of(job)
        steps = self.steps(job)
        self.assertEqual({number: (step["loss"], step["lr"], step["step_time_s"]) for number, step in steps.items()},
                         {number: (number + 0.5, 0.001, 0.25) for number in (10, 20, 30)})
        self.assertEqual(self.values(run)["loss"]["source"], "stdout")
        self.assertIn("iteration       30/ 100", self.cluster.output(job))

    def test_a_pattern_of_the_users(self):
        job = self.submit("wlb run --step-pattern 'at (?P<step>[0-9]+): (?P<loss>[0-9.]+) (?P<accuracy>[0-9.]+)' -- "
                          "printf 'at 1: 3.5 0.25\\nat 2: 3.25 0.5\\n'")
        run = self.run_of(job)
        self.assertEqual({number: step["loss"] for number, step in self.steps(job).items()}, {1: 3.5, 2: 3.25})
        self.assertEqual(self.values(run)["accuracy"]["value"], 0.5)
        job = self.submit("wlb run --step-pattern '(a' -- true")
        self.assertEqual(self.cluster.wait_job(job), "FAILED")
        self.assertRegex(self.cluster.output(job), r"wlb run: --step-pattern: ")

    def test_event_files(self):
        folder = self.cluster.work / "events"
        copy = f"mkdir {folder}; cp {SAMPLES}/tensorboard/torch/*tfevents* {folder}"
        job = self.submit(f"wlb run -- sh -c 'sleep 1; {copy}' t --tensorboard-dir {folder}")
        run = self.run_of(job)
        self.assertEqual({number: step["loss"] for number, step in self.steps(job).items()},
                         {1: 4.0, 2: 2.0, 3: struct.unpack("f", struct.pack("f", 4 / 3))[0]})
        self.assertEqual([self.values(run)["lr"][key] for key in ("step", "value", "source")], [3, "nan", "tensorboard"])

    def test_the_hook(self):
        """A stand-in for torch, of which the hook counts the steps, and sees scalars and saves."""
        torch = self.cluster.work / "torch_stand_in"
        for name, text in TORCH.items():
            (torch / name).parent.mkdir(parents=True, exist_ok=True)
            (torch / name).write_text(textwrap.dedent(text), encoding="utf-8")
        program = self.program("hooked.py", HOOKED)
        job = self.submit(f"PYTHONPATH={torch} wlb run -- python3 {program}", "--ntasks-per-node=2")
        run = self.run_of(job)
        self.assertEqual([(step["step"], step["loss"]) for step in self.steps(job).values()], [(7, 0.5), (8, 0.25)])
        self.assertEqual([attempt["step_of_attempt"] for attempt in run["attempts"]], [3])
        # Nobody has said that the run can go on from what was saved.
        saved = [event["detail"] for event in run["events"] if event["kind"] == "saved"]
        self.assertEqual(len(saved), 1)
        self.assertRegex(saved[0], rf"^{self.cluster.work}/saved.pt, which took \d+\.\d s$")
        self.assertEqual([[save[key] for key in ("path", "bytes", "is_seen")] for save in run["checkpoints"]],
                         [[f"{self.cluster.work}/saved.pt", None, True]])
        self.assertIn(f"  {self.cluster.work}/saved.pt (seen by the hook)\n", self.cluster.run("wlb", "show", job).stdout)
        self.assertEqual(self.values(run)["loss"]["source"], "hook")
        self.assertEqual(self.cluster.output(job).count(f"path {torch}\n"), 2)  # no rank has the hook in its own
        job = self.submit(f"PYTHONPATH={torch} wlb run --no-hook -- python3 {program}")
        self.assertEqual([self.run_of(job)[key] for key in ("values", "last_step", "checkpoints")], [[], None, []])
        # `wlb run` is on no node of the attempt, as behind salloc on a login node.
        output = self.cluster.run("salloc", "-N1", "--wlb-layout=auto", "--ntasks-per-node=2", "sh", "-c",
                                  f"echo job=$SLURM_JOB_ID; PYTHONPATH={torch} wlb run -- python3 {program}").stdout
        job = output.split("job=")[1].split()[0]
        self.assertEqual([(step["step"], step["loss"]) for step in self.steps(job).values()], [(7, 0.5), (8, 0.25)], output)
        self.assertEqual(list(self.cluster.work.glob(".wlb/**/hook-*")), [])


class Stored(ClusterTest):
    """The database decides by origins, whatever comes first, and however often."""
    nodes = 1

    def attempt(self, job, *numbers):
        """Makes the run of a job with these attempts; returns their keys."""
        sql = self.cluster.sql
        run = sql("insert into runs (name, job_id, uid, user_name, state) "
                  f"values ('{job}', {job}, 0, 'root', 'running') returning id")[0][0]
        return [sql(f"insert into attempts (run_id, number, uuid, launched) values ({run}, {number}, "
                    f"'00000000-0000-4000-8000-{job:08d}{number:04d}', true) returning id")[0][0] for number in numbers]

    def deliver(self, attempt, *records):
        """Each is (step, source, stream, at, values) and further fields."""
        first = int(self.cluster.sql(f"select coalesce(max(last_seq), 0) from sources where attempt_id = {attempt}")[0][0]) + 1
        body = {"first_seq": first, "records": [
            {"seq": first + i, "time": 1790000000 + step, "type": "followed", "data": {
                "step": step, "is_step": True, "source": source, "stream": stream, "generation": 0, "at": at, "values": values, **more}}
            for i, (step, source, stream, at, values, more) in enumerate(records)]}
        self.cluster.sql(f"select wlb_deliver({attempt}, 'run', '{json.dumps(body)}', '{{}}')")

    def rows(self, job):
        return self.cluster.sql("select step, number, s.loss, s.learning_rate, s.step_time_s, span_steps from steps s "
                                f"join attempts a on a.id = attempt_id join runs r on r.id = s.run_id where r.job_id = {job} order by step")

    def sums(self, job):
        return self.cluster.sql(f"select steps, steps_repeated, last_loss, step_seconds::float8 from runs where job_id = {job}")[0]

    def test_the_order_of_arrival_does_not_matter(self):
        said = [(5, "hook", 0, 9, {"loss": 4}, {}), (5, "stdout", 0, 1, {"loss": 3, "lr": 0.5}, {"is_step": False}),
                (5, "log", 1, 9, {"loss": 2}, {"is_step": False}), (5, "log", 0, 1, {"loss": 1}, {"is_step": False}),
                (5, "log", 0, 2, {"loss": 0.5}, {"is_step": False}), (5, "log", 0, 1, {"loss": 1}, {"is_step": False})]
        for job, records in ((7001, said), (7002, [said[0], *reversed(said)])):
            attempt = self.attempt(job, 1)[0]
            for record in records:
                self.deliver(attempt, record)
            self.assertEqual(self.rows(job), [["5", "1", "0.5", "0.5", "", "1"]])
            self.assertEqual(self.sums(job), ["1", "0", "0.5", "0"])

    def test_saves_that_were_seen_are_parts_of_those_that_are_reported(self):
        attempts = self.attempt(7020, 1, 2)

        def tell(attempt, *records):
            body = {"first_seq": 1, "records": [{"seq": i, "time": 1790000000 + time, "type": kind, "data": data}
                                                for i, (time, kind, data) in enumerate(records, 1)]}
            self.cluster.sql(f"select wlb_deliver({attempt}, 'run', '{json.dumps(body)}', '{{}}')")

        def seen(time, path, **said):
            return time, "event", {"kind": "saved", "detail": path, "save": {"path": path, **said}}

        tell(attempts[0], seen(1, "/c/1/x.pt", duration_s=2, stall_s=0), seen(2, "/c/1/a/y.pt", duration_s=1, bytes=5),
             seen(3, "/c/10/z.pt", duration_s=9, junk="x"), (4, "checkpoint", {"step": 10, "path": "/c/1"}),
             seen(5, "/latest.pt", duration_s=4), (6, "checkpoint", {"step": 20, "path": "/latest.pt", "duration_s": 5}),
             seen(7, "/latest.pt", duration_s=6), (8, "checkpoint", {"step": 30, "path": "/latest.pt"}), seen(9, "/latest.pt", step=31))
        tell(attempts[1], (2.5, "checkpoint", {"step": 40, "path": "/c"}))
        run = self.cluster.sql("select id from runs where name = '7020'")[0][0]
        saves = json.loads(self.cluster.sql(f"select wlb_checkpoints_json({run})")[0][0])
        self.assertEqual([[save[key] for key in ("attempt", "step", "path", "bytes", "duration_s", "stall_s", "is_seen")] for save in saves],
                         [[2, 40, "/c", None, None, None, False], [1, None, "/c/10/z.pt", None, 9, 9, True],
                          [1, 10, "/c/1", None, 3, 1, False], [1, 20, "/latest.pt", None, 5, None, False],
                          [1, 30, "/latest.pt", None, 6, 6, False], [1, 31, "/latest.pt", None, None, None, True]])
        self.assertEqual(self.cluster.sql(f"select count(*) from events where run_id = {run} and save ? 'junk'"), [["0"]])

    def test_attempts_repeat_steps(self):
        first, second = self.attempt(7003, 1, 2)
        ten = {"span": 10, "interval_s": 5}
        self.deliver(first, (10, "stdout", 0, 0, {"loss": 4}, {}), (20, "stdout", 0, 9, {"loss": 3}, ten),
                     (30, "stdout", 0, 19, {"loss": 2}, ten))
        self.deliver(second, (20, "stdout", 0, 0, {"loss": 8}, {}), (30, "stdout", 0, 9, {"loss": 7}, {"span": 10, "interval_s": 10}))
        self.deliver(first, (30, "log", 0, 1, {"loss": 1}, {"is_step": False}))  # late, of what is done again
        self.assertEqual(self.rows(7003), [["10", "1", "4", "", "", "1"], ["20", "2", "8", "", "", "1"], ["30", "2", "7", "", "1", "10"]])
        self.assertEqual(self.sums(7003), ["3", "2", "7", "10"])
        self.assertEqual(self.cluster.sql(f"select repeated_seconds::float8, resumed_step from attempts where id in ({first}, {second}) "
                                          "order by number"), [["10", ""], ["0", "19"]])

    def test_what_is_not_said_is_not_concluded(self):
        """A trainer that logs rarely is not taken to be at the step where its attempt began, nor to have saved nothing."""
        first, second = self.attempt(7005, 1, 2)
        self.deliver(first, (10, "log", 0, 0, {"loss": 4}, {}), (20, "log", 0, 9, {"loss": 3}, {"span": 10, "interval_s": 5}))
        self.cluster.sql(f"update attempts set state = 'failed', ended_at = created_at + interval '46 minutes' where id = {second}")
        self.assertEqual(self.cluster.sql(f"select wlb_crash_step(a, null), wlb_attempt_has_lasted(a) from attempts a where id = {second}"),
                         [["-1", "t"]])
        self.assertEqual(self.cluster.sql("select kept_s::float8, repeated_s::float8 from runs r, wlb_attempt_work(r.id) "
                                          f"where job_id = 7005 and attempt_id = {first}"), [["5", "0"]])

    def test_names_are_bounded(self):
        attempt = self.attempt(7004, 1)[0]
        for i in range(10):
            self.deliver(attempt, (i, "log", 0, i, {f"n{i}_{n}": n for n in range(64)}, {}))
        self.assertEqual(self.cluster.sql("select count(*), max(dropped_values) from followed_names join runs on id = run_id "
                                          "where job_id = 7004"), [["256", "384"]])


if __name__ == "__main__":
    main()
