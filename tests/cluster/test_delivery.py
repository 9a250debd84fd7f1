#!/usr/bin/env python3
"""Records that could not be delivered while their job ran: who delivers them, what is refused, and whom it holds up."""
import fcntl
import json
import os
import pathlib
import random
import re
import signal
import subprocess
import time
import uuid

from harness import clock_s, ClusterTest, main, wait_for

MINUTE = 60
CLUSTER = "local"  # by slurm.conf
NOBODY = ("setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups")
PROCESSES_MOST = 16  # of a user that the epilogs on a node have started
RETURN_S = 10  # everything is stored so soon after coordinator and database are back


class DeliveryTest(ClusterTest):
    nodes = 2

    def submit(self, script, *options, nodes=1):
        return self.cluster.sbatch(script, "--wlb-layout=auto", "--no-kill", "--ntasks-per-node=1", *options, nodes=nodes)

    def complete(self, job):
        self.assertEqual(self.cluster.wait_job(job, MINUTE), "COMPLETED", self.cluster.output(job))

    def folder(self, name=".wlb"):
        return self.cluster.work / name

    def spools(self, name=".wlb"):
        return sorted(path.name for path in self.folder(name).glob("*.jsonl"))

    def flushes(self):
        """Pids of processes that deliver on their own."""

        def is_wlb(pid):
            try:
                return os.readlink(f"/proc/{pid}/exe").endswith("/wlb")
            except OSError:  # it has just ended
                return False

        return [pid for pid in self.cluster.processes("flush", "--wait") if is_wlb(pid)]

    def show(self, run):
        """None while the coordinator does not know it, or is not there yet. Without a list of pending folders: the
        command would deliver them."""
        result = self.cluster.run("wlb", "show", run, "--json", check=False, env={"XDG_STATE_HOME": "/nowhere"})
        return json.loads(result.stdout) if result.returncode == 0 else None

    def go_away(self):
        self.cluster.verb("kill-wlbd")
        self.cluster.verb("stop-db")

    def come_back(self):
        self.cluster.verb("start-db")
        self.cluster.verb("start-wlbd")

    def write_spool(self, run, records, name=".wlb", attempt=None, source="rank0"):
        """A spool as an earlier process left it: `records` are pairs of type and data, or lines as they are."""
        attempt = attempt or str(uuid.uuid4())
        lines = [json.dumps({"wlb_spool": 1, "run_id": str(run), "attempt_id": attempt, "source": source})]
        for seq, record in enumerate(records, 1):
            lines.append(record if isinstance(record, str) else
                         json.dumps({"seq": seq, "time": time.time(), "type": record[0], "data": record[1]}))
        self.folder(name).mkdir(exist_ok=True)
        path = self.folder(name) / f"{attempt}.{source}.jsonl"
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
        self.set_idle(path)
        return path

    def set_idle(self, path):
        """As if nobody had written to it for longer than a writer is silent."""
        os.utime(path, (time.time() - 3600,) * 2)


class Away(DeliveryTest):
    def check_delivered(self, job, folder=".wlb"):
        """Checks that the records are delivered without a command, within the documented time."""
        self.assertNotEqual(self.spools(folder), [])
        self.come_back()
        wait_for("the run in the database", lambda: (self.show(job) or {}).get("state") == "complete", RETURN_S)
        wait_for("an empty folder", lambda: self.spools(folder) == [], 20)
        self.assertEqual([attempt["state"] for attempt in self.show(job)["attempts"]], ["complete"])
        wait_for("the end of the process that delivered", lambda: not self.flushes(), 10)
        self.assertEqual([path.name for path in self.folder(folder).glob("flush.*")], [])

    def test_during_all_of_a_run(self):
        self.go_away()
        job = self.submit("wlb run -- true")
        self.complete(job)
        self.assertIn("records wait in", self.cluster.output(job))
        self.check_delivered(job)

    def test_in_a_folder_with_many_other_files(self):
        """Those of other jobs, which a file system may list before the records."""
        self.go_away()
        job = self.submit("wlb run --spool-dir many -- true\nseq -f many/other-%g 20001 | xargs touch")
        self.complete(job)
        self.check_delivered(job, "many")

    def test_with_a_spool_of_its_own_choice(self):
        self.go_away()
        job = self.submit("wlb run --spool-dir kept -- true")
        self.complete(job)
        self.assertEqual(self.spools(), [])
        self.check_delivered(job, "kept")

    def test_a_job_of_salloc(self):
        """No epilog knows its directory: the user's next command delivers what is in it."""
        self.go_away()
        output = self.cluster.run("salloc", "-N1", "--wlb-layout=auto", "sh", "-c", "echo job=$SLURM_JOB_ID; wlb run -- true").stdout
        job = int(re.search(r"job=(\d+)", output)[1])
        wait_for("the end of the job", lambda: self.cluster.job(job)["JobState"] == "COMPLETED", 20)
        self.assertEqual(self.flushes(), [])
        self.assertNotEqual(self.spools(), [])
        self.come_back()
        self.cluster.run("wlb", "runs")
        wait_for("an empty folder", lambda: self.spools() == [], RETURN_S)
        self.assertEqual(self.show(job)["state"], "complete")

    def test_when_only_the_launcher_was_killed(self):
        """Its last record is on disk; nobody else would tell of it."""
        self.go_away()
        job = self.submit("wlb run -- sleep 2021; true")
        wait_for("a record", lambda: any("step_started" in path.read_text(encoding="utf-8")
                                         for path in self.folder().glob("*.jsonl")), 30)
        for pid in self.cluster.processes("wlb run"):
            if os.readlink(f"/proc/{pid}/exe").endswith("/wlb"):
                os.kill(pid, signal.SIGKILL)
        self.cluster.wait_job(job, MINUTE)
        self.assertNotEqual(self.spools(), [])
        self.come_back()
        wait_for("an empty folder", lambda: self.spools() == [], RETURN_S)

    def lock_of_flush(self):
        """Locked; a flush of a test before may end meanwhile, and remove the file."""
        while True:
            lock = (self.folder() / "flush.lock").open("w", encoding="utf-8")
            fcntl.flock(lock, fcntl.LOCK_EX)
            if os.fstat(lock.fileno()).st_nlink > 0:
                return lock
            lock.close()

    def test_beside_another_flush_of_the_folder_that_ends_first(self):
        """As one that a `wlb run` in the same folder has started, which ends in a minute."""
        self.go_away()
        self.folder().mkdir(exist_ok=True)
        with self.lock_of_flush():
            job = self.submit("wlb run -- true")
            self.complete(job)
            time.sleep(15)  # longer than a user's own flush waits
            self.assertNotEqual(self.cluster.processes("flush", f"--ended-job {job}"), [])
            (self.folder() / "flush.lock").unlink()
        self.check_delivered(job)

    def test_what_was_given_up_is_delivered_by_the_next_command(self):
        job = self.submit("wlb run -- true")
        self.complete(job)
        self.cluster.verb("kill-wlbd")
        home = self.cluster.work / "home"
        home.mkdir(exist_ok=True)
        env = {"HOME": str(home), "XDG_STATE_HOME": ""}  # where most users have it
        self.write_spool(job, [("event", {"kind": "late", "detail": "x"})], "given-up")
        listed = home / ".local/state/wlb/pending"
        result = self.cluster.run("wlb", "flush", "--wait", "1", "given-up", check=False, env=env)
        self.assertEqual(result.returncode, 1)
        self.assertEqual(listed.read_text(encoding="utf-8"), f"{CLUSTER}:{self.folder('given-up')}\n")
        # Another cluster with the same home has a job of this number, too.
        self.write_spool(job, [("event", {"kind": "late", "detail": "y"})], "elsewhere")
        elsewhere = f"elsewhere:{self.folder('elsewhere')}\n"
        listed.write_text(elsewhere + listed.read_text(encoding="utf-8"), encoding="utf-8")
        self.cluster.verb("start-wlbd")
        wait_for("the coordinator", lambda: self.show(job), 10)
        self.cluster.run("wlb", "runs", env=env)
        wait_for("an empty folder", lambda: self.spools("given-up") == [], 5)
        wait_for("the other cluster's line alone", lambda: listed.read_text(encoding="utf-8") == elsewhere, 5)
        self.assertEqual(len(self.spools("elsewhere")), 1)


class ManyJobs(DeliveryTest):
    def test_few_processes_of_a_user_wait(self):
        """Those that the epilogs start are in no job's limits. What the others leave waits for the user's next command."""
        folders = [f"many{number}" for number in range(PROCESSES_MOST + 3)]
        self.go_away()
        jobs = [self.submit("wlb run -- true", f"--export=ALL,WLB_SPOOL_DIR={self.folder(name)}") for name in folders]
        for job in jobs:
            self.complete(job)
        wait_for("the last epilog", lambda: len(self.waiting()) == PROCESSES_MOST, 30)
        time.sleep(3)
        self.assertEqual(len(self.waiting()), PROCESSES_MOST)
        self.come_back()
        wait_for("the ends of those that wait", lambda: not self.waiting(), MINUTE)
        # Commands of other tests, which run as the same user, may have delivered some of the rest.
        self.assertIn(len([name for name in folders if self.spools(name)]), range(4))
        self.cluster.run("wlb", "flush", *(self.folder(name) for name in folders))
        self.assertFalse(any(self.spools(name) for name in folders))

    def waiting(self):
        return [pid for pid in self.flushes() if self.is_of_an_epilog(pid)]

    def is_of_an_epilog(self, pid):
        try:
            return b"--ended-job" in pathlib.Path(f"/proc/{pid}/cmdline").read_bytes()
        except OSError:
            return False

    def test_files_of_old_jobs_are_removed(self):
        """Slurm does not know the job, and nobody has written to them for long."""
        folder = self.folder("old")
        folder.mkdir()
        for name, days in (("900000.json", 31), ("900001.json", 1)):
            (folder / name).touch()
            os.utime(folder / name, (time.time() - days * 24 * 3600,) * 2)
        job = self.submit("wlb run --spool-dir old -- true")
        self.complete(job)
        self.assertEqual(sorted(path.name for path in folder.iterdir() if path.suffix == ".json"),
                         sorted(["900001.json", f"{job}.json"]))


class WriterElsewhere(DeliveryTest):
    """A spool whose writer is on a host of which no lock is seen here."""

    def add(self, path, seq, detail, end="\n"):
        with path.open("a", encoding="utf-8") as file:
            file.write(json.dumps({"seq": seq, "time": time.time(), "type": "event",
                                   "data": {"kind": "elsewhere", "detail": detail}})[:None if end else 20] + end)

    def stored(self, run):
        return [event["detail"] for event in self.show(run)["events"] if event["kind"] == "elsewhere"]

    def test_its_records_are_delivered_and_the_file_stays(self):
        job = self.submit("wlb run -- true")
        self.complete(job)
        path = self.write_spool(job, [], "elsewhere")
        self.add(path, 1, "first")
        self.add(path, 2, "half", end="")
        size = path.stat().st_size
        result = self.cluster.run("wlb", "flush", "elsewhere")
        self.assertIn("1 spool may have a writer on another host", result.stdout)
        self.assertEqual((self.stored(job), path.stat().st_size), (["first"], size))
        with path.open("r+", encoding="utf-8") as file:  # the half record is whole now
            file.truncate(size - 20)
        self.add(path, 2, "second")
        self.cluster.run("wlb", "flush", "elsewhere")
        self.assertEqual(self.stored(job), ["first", "second"])
        self.assertTrue(path.exists())
        self.set_idle(path)
        self.cluster.run("wlb", "runs")  # delivers in the folders that are listed
        wait_for("an empty folder", lambda: self.spools("elsewhere") == [], 5)
        self.assertEqual(self.stored(job), ["first", "second"])
        self.assertFalse((self.folder("elsewhere") / "refused").exists())

    def test_a_job_that_has_ended_has_no_writer(self):
        job = self.submit("wlb run -- true")
        self.complete(job)
        path = self.write_spool(job, [], "elsewhere")
        self.add(path, 1, "last")
        self.cluster.run("wlb", "flush", "--ended-job", job, "elsewhere")
        self.assertEqual((self.stored(job), self.spools("elsewhere")), (["last"], []))


class OtherUser(DeliveryTest):
    for_others = True

    def test_the_process_is_the_users_in_every_respect(self):
        os.chown(self.cluster.work, 65534, 65534)
        self.cluster.verb("kill-wlbd")
        script = self.cluster.work / "job.sh"
        script.write_text("#!/bin/sh\nwlb run -- true\n", encoding="utf-8")
        job = self.cluster.run(*NOBODY, "sbatch", "--parsable", "--wlb-layout=auto", "-o", "%j.out", script).stdout.strip()
        self.complete(job)
        pids = wait_for("the process that delivers", self.flushes, 5)
        status = dict(line.split(":\t", 1) for line in
                      pathlib.Path(f"/proc/{pids[0]}/status").read_text(encoding="utf-8").splitlines())
        self.assertEqual(set(status["Uid"].split()), {"65534"})
        self.assertEqual(set(status["Gid"].split()), {"65534"})
        self.assertLessEqual(set(status["Groups"].split()), {"65534"})
        self.assertEqual(int(status["CapEff"], 16), 0)
        # A job of the user that could trace it would leave its own limits.
        wait_for("files in /proc that are root's", lambda: os.stat(f"/proc/{pids[0]}/environ").st_uid == 0, 5)
        self.assertEqual({os.readlink(path) for path in pathlib.Path(f"/proc/{pids[0]}/fd").glob("[012]")},
                         {"/dev/null"})
        about = (self.cluster.dir / "state").stat()  # where only root may write what the epilog believes
        self.assertEqual((about.st_uid, about.st_mode & 0o777), (0, 0o755))
        self.assertEqual([path for path in (self.cluster.dir / "state").iterdir() if not path.name.startswith("delivery.uid")], [])
        self.cluster.verb("start-wlbd")
        wait_for("an empty folder", lambda: self.spools() == [], RETURN_S)


class Refused(DeliveryTest):
    for_others = True
    BAD = ("step", {"step": -1})

    def finished_job(self):
        job = self.submit("wlb run -- true")
        self.complete(job)
        return job

    def said(self, *jobs):
        return sum(self.cluster.output(job).count("refused and moved") for job in jobs)

    def test_an_undeliverable_record_is_set_aside_and_said_once(self):
        earlier = self.finished_job()
        good = [("event", {"kind": "note", "detail": str(i)}) for i in range(40)]
        path = self.write_spool(earlier, good[:17] + [self.BAD] + good[17:])
        began = clock_s()
        jobs = [self.finished_job() for _ in range(3)]
        self.assertLess(clock_s() - began, 15)
        wait_for("an empty folder", lambda: self.spools() == [], 5)
        events = self.show(earlier)["events"]
        self.assertEqual(sorted(int(e["detail"]) for e in events if e["kind"] == "note"), list(range(40)))
        self.assertEqual([e["kind"] for e in events].count("record_refused"), 1)
        kept = (self.folder() / "refused" / path.name).read_text(encoding="utf-8").splitlines()
        self.assertEqual(len(kept), 2)
        self.assertIn("step", json.loads(kept[1])["refused"])
        self.assertEqual(json.loads(kept[1])["data"], self.BAD[1])
        self.assertEqual(self.said(*jobs), 1, [self.cluster.output(job) for job in jobs])
        line = next(line for job in jobs for line in self.cluster.output(job).splitlines() if "refused and" in line)
        self.assertIn(path.name, line)

    def test_refused_records_are_tried_again_by_hand(self):
        """Records of a run that is somebody else's, and is not any more."""
        earlier = self.finished_job()
        path = self.write_spool(earlier, [("event", {"kind": "again", "detail": str(i)}) for i in range(5)], "again")
        self.cluster.run("chown", "-R", "nobody", self.folder("again"))
        result = self.cluster.run(*NOBODY, "wlb", "flush", "again", check=False)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("belongs to", result.stderr)
        self.assertEqual(self.spools("again"), [])
        self.assertTrue((self.folder("again") / "refused" / path.name).exists())
        self.cluster.run("wlb", "flush", "again")
        self.assertEqual([e for e in self.show(earlier)["events"] if e["kind"] == "again"], [])  # not root's files
        self.cluster.run("chown", "-R", "root", self.folder("again"))
        result = self.cluster.run("wlb", "flush", "--refused", "again", check=False)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(sorted(e["detail"] for e in self.show(earlier)["events"] if e["kind"] == "again"),
                         list("01234"))
        self.assertFalse((self.folder("again") / "refused" / path.name).exists())

    def test_damaged_spools_are_set_aside(self):
        earlier = self.finished_job()
        whole = json.dumps({"seq": 2, "time": time.time(), "type": "event", "data": {"kind": "whole", "detail": ""}})
        damaged = self.write_spool(earlier, ["this is not JSON", whole], "damaged")
        with damaged.open("a", encoding="utf-8") as file:
            file.write('{"seq":3,"time":17')
        self.set_idle(damaged)
        headless = self.folder("damaged") / "x.rank0.jsonl"
        headless.write_text("no header\n", encoding="utf-8")
        result = self.cluster.run("wlb", "flush", "damaged")
        self.assertIn(headless.name, result.stderr)
        self.assertEqual(self.spools("damaged"), [headless.name])
        self.assertEqual(headless.read_text(encoding="utf-8"), "no header\n")
        kinds = [event["kind"] for event in self.show(earlier)["events"]]
        self.assertEqual((kinds.count("whole"), kinds.count("spool_damaged")), (1, 1))
        kept = {path.name: path.read_text(encoding="utf-8") for path in (self.folder("damaged") / "refused").iterdir()}
        self.assertEqual(kept, {damaged.name.replace(".jsonl", ".1.damaged"): "this is not JSON",
                                damaged.name.replace(".jsonl", ".3.damaged"): '{"seq":3,"time":17'})

    def test_leftovers_of_other_runs_hold_nobody_up(self):
        """A folder with more of them than a job has time for, and a coordinator that is away."""
        self.cluster.verb("kill-wlbd")
        self.addCleanup(self.cluster.verb, "start-wlbd")
        for _ in range(200):
            self.write_spool(990000, [("event", {"kind": "x"})] * 20)
        began = clock_s()
        self.finished_job()
        self.assertLess(clock_s() - began, 8)


class Killed(DeliveryTest):
    STEPS = 30000

    def test_a_flush_that_is_killed_at_any_moment_stores_each_record_once(self):
        job = self.submit("wlb run -- true")
        self.complete(job)
        steps = [("step", {"step": step, "loss": 1.0, "tokens": 7}) for step in range(1, self.STEPS + 1)]
        steps[12345] = ("step", {"step": -1})
        self.write_spool(job, steps, "killed")
        count = f"SELECT count(*), count(DISTINCT step) FROM steps JOIN runs ON runs.id = run_id WHERE runs.name = '{job}'"
        draw, kills = random.Random(8), 0
        while self.spools("killed"):
            process = subprocess.Popen(["wlb", "flush", "killed"], cwd=self.cluster.work, env=self.cluster.env,
                                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            try:
                process.wait(draw.uniform(0.005, 0.4))
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
                kills += 1
        self.assertGreater(kills, 3)
        self.assertEqual(self.cluster.sql(count), [[str(self.STEPS - 1)] * 2])
        refused = (self.folder("killed") / "refused").glob("*.jsonl")
        self.assertEqual([len(path.read_text(encoding="utf-8").splitlines()) for path in refused], [2])
        events = [event["kind"] for event in self.show(job)["events"]]
        self.assertEqual(events.count("record_refused"), 1)


class Script(DeliveryTest):
    """The launcher and the script that started it."""

    def launchers(self):
        return [pid for pid in self.cluster.processes("wlb", "run")
                if os.readlink(f"/proc/{pid}/exe").endswith("/wlb")]

    def script_pid(self, launcher):
        with open(f"/proc/{launcher}/stat", encoding="utf-8") as file:
            return int(file.read().rsplit(")", 1)[1].split()[1])

    def test_a_launcher_ends_with_its_job_when_the_script_is_killed(self):
        job = self.submit("wlb run -- sleep 2031\ntrue", nodes=2)
        wait_for("the tasks", lambda: len(self.cluster.processes("sleep 2031")) >= 2, 30)
        launcher, = self.launchers()
        os.kill(self.script_pid(launcher), signal.SIGKILL)
        self.cluster.wait_job(job, MINUTE)
        wait_for("the end of the launcher", lambda: not self.launchers(), 20)
        wait_for("the end of srun", lambda: not self.cluster.processes("srun", "2031"), 20)
        self.assertNotIn("cancelled", self.cluster.output(job))
        self.assertNotIn(f"run {job} failed", self.cluster.output(job))
        self.assertNotEqual(self.show(job)["state"], "cancelled")

    def test_a_launcher_goes_on_without_the_shell_that_started_it(self):
        job = self.submit("( wlb run -- sleep 3 > quiet.out 2>&1 & )\nwhile ! grep -q complete quiet.out; do sleep 0.2; done")
        self.complete(job)
        self.assertEqual(self.show(job)["state"], "complete")

    def test_scancel_is_still_a_cancelled_run(self):
        job = self.submit("wlb run -- sleep 2032")
        wait_for("the task", lambda: self.cluster.processes("sleep 2032"), 30)
        self.cluster.run("scancel", job)
        self.assertEqual(self.cluster.wait_job(job, 30), "CANCELLED")
        wait_for("the run's end", lambda: self.show(job)["state"] == "cancelled", 20)
        wait_for("the end of the launcher", lambda: not self.launchers(), 5)


if __name__ == "__main__":
    main()
