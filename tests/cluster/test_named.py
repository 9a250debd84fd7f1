#!/usr/bin/env python3
"""Ranks of trainers that report nothing: one that is stopped is named and left out, also below a launcher. Nothing else is acted on."""
import ctypes
import os
import pathlib
import re
import signal
import time

import harness
from harness import ClusterTest, wait_for
from test_wlbd_api import Api, step
from training import state_of

# Ends when the file `end` is there. A rank does what the file work-RANK says, for as long as it is there.
TRAINER = """
import os, subprocess, sys, time
work = "work-" + os.environ["RANK"]
while not os.path.exists("end"):
    if os.path.exists(work):
        what = open(work).read()
        if what == "compile": # as torch.compile does: other processes compute
            subprocess.run([sys.executable, "-c", "import time; end = time.time() + 1\\nwhile time.time() < end: pass"])
        elif what == "compute":
            sum(range(10**6))
        else:
            with open(work + ".saved", "wb") as file:
                file.write(bytes(10**6))
                os.fsync(file.fileno())
    time.sleep(0.05)
"""

# Starts two ranks on each node, as torchrun does, or waits for nodes that do not come.
LAUNCHER = """#!/usr/bin/python3
import os, subprocess, sys, time
node, ranks = int(os.environ["SLURM_NODEID"]), []
if "--nnodes=3" in sys.argv:
    time.sleep(600)
for local in (0, 1):
    own = {"RANK": str(2 * node + local), "LOCAL_RANK": str(local), "WORLD_SIZE": "4", "TORCHELASTIC_RUN_ID": "x"}
    ranks.append(subprocess.Popen([sys.executable, "trainer.py"], env=os.environ | own))
while any(rank.poll() is None for rank in ranks):
    time.sleep(0.1)
"""

PTRACE_SEIZE, PTRACE_INTERRUPT, PTRACE_DETACH = 0x4206, 0x4207, 17


class Named(ClusterTest):
    nodes = 4  # the tests have n1 and n2

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        work = cls.cluster.work
        (work / "trainer.py").write_text(TRAINER, encoding="utf-8")
        (work / "torchrun").write_text(LAUNCHER, encoding="utf-8")
        (work / "torchrun").chmod(0o755)
        cls.waiting = cls.cluster.sbatch("wlb run --keep-command -- ./torchrun --nnodes=3", "--wlb-layout=tp=1,cp=1,pp=1",
                                         "--ntasks-per-node=1", "--nodelist=n[3-4]", nodes=2)

    def start(self, command, *options):
        """Returns the job, once its ranks run."""
        (self.cluster.work / "end").unlink(missing_ok=True)
        job = self.cluster.sbatch(f"wlb run {command}", "--wlb-layout=tp=1,cp=1,pp=1", "--no-kill", "--nodelist=n[1-2]", *options, nodes=2)
        self.addCleanup(self.cluster.run, "scancel", str(job))
        wait_for("its ranks", lambda: len(self.ranks()) == 4, 60)
        return job

    def ranks(self):
        """The processes of the ranks, by RANK; of a launcher, the ranks that it has started."""
        found = {}
        for pid in self.cluster.processes("trainer.py"):
            try:
                values = dict(word.split(b"=", 1) for word in pathlib.Path(f"/proc/{pid}/environ").read_bytes().split(b"\0") if word)
                name = pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")[1]
            except (OSError, IndexError):
                continue
            if name == b"trainer.py":
                found[int(values[b"RANK"])] = pid
        return found

    def verdicts(self, job):
        return self.cluster.show(job)["verdicts"]

    def attempts(self, job):
        return [attempt["nodes"] for attempt in self.cluster.show(job)["attempts"]]

    def finish(self, job):
        (self.cluster.work / "end").touch()
        self.assertEqual(self.cluster.wait_job(job), "COMPLETED", self.cluster.output(job))
        return self.cluster.show(job)

    def test_a_stopped_rank_is_named_and_its_node_is_left_out(self):
        job = self.start("-- /usr/bin/python3 trainer.py", "--ntasks-per-node=2")
        pid, began = self.ranks()[3], time.monotonic()
        os.kill(pid, signal.SIGSTOP)
        found, = wait_for("a verdict", lambda: self.verdicts(job), 15)
        self.assertLess(time.monotonic() - began, 15)
        self.assertEqual({key: found[key] for key in ("kind", "ranks", "nodes", "action")},
                         {"kind": "hang", "ranks": [3], "nodes": ["n2"], "action": "evict"})
        self.assertEqual(found["evidence"], f"process {pid} of rank 3 on n2 is stopped by a signal (SIGSTOP or alike)")
        wait_for("the next attempt", lambda: self.attempts(job) == [["n1", "n2"], ["n1"]], 40)
        run = self.finish(job)
        self.assertEqual(run["attempts"][0]["reason"], "rank 3 on n2 hangs")
        fault, = [fault for fault in run["faults"] if fault["cause"]]
        self.assertEqual((fault["kind"], fault["rank"], fault["node"]), ("hang", 3, "n2"))
        self.assertIn("rank 3 on n2", self.cluster.run("wlb", "faults", str(job)).stdout)

    def test_the_ranks_below_a_launcher(self):
        job = self.start("-- ./torchrun --nnodes=2 --nproc-per-node=2 trainer.py", "--ntasks-per-node=1",
                         "--wlb-on-fault=hang=report")
        ranks = self.ranks()
        self.wait_top(job, r"\nn1 R R +n2 R R")
        self.stop_with_a_debugger(ranks[2])
        self.suspend(job, ranks.values())
        self.assertEqual(self.verdicts(job), [])
        os.kill(ranks[2], signal.SIGSTOP)
        found, = wait_for("a verdict", lambda: self.verdicts(job), 15)
        self.assertEqual((found["kind"], found["ranks"], found["nodes"], found["action"]), ("hang", [2], ["n2"], "report"))
        self.assertIn(f"process {ranks[2]} of rank 2 on n2 is stopped", found["evidence"])
        self.wait_top(job, r"\nn1 R R +n2 T#R")
        wait_for("that it is sure", lambda: self.verdicts(job)[0]["state"] == "confirmed", 15)
        os.kill(ranks[2], signal.SIGCONT)
        wait_for("the end of the verdict", lambda: self.verdicts(job)[0]["state"] == "over", 15)
        self.finish(job)
        self.assertEqual(self.attempts(job), [["n1", "n2"]])

    def wait_top(self, job, page):
        """Until `wlb top` shows what the regular expression describes: agents list their processes every 2 s."""
        wait_for(f"{page} of wlb top", lambda: re.search(page, self.cluster.run("wlb", "top", str(job), "--once").stdout), 20)

    def stop_with_a_debugger(self, pid):
        """For as long as would name a process that a signal has stopped."""
        libc = ctypes.CDLL(None, use_errno=True)
        for request in (PTRACE_SEIZE, PTRACE_INTERRUPT):
            self.assertEqual(libc.ptrace(request, pid, None, None), 0)
        self.assertEqual(os.waitpid(pid, 0x40000000)[0], pid)  # __WALL
        time.sleep(6)
        self.assertEqual(state_of(pid), "t")
        self.assertEqual(libc.ptrace(PTRACE_DETACH, pid, None, None), 0)

    def suspend(self, job, pids):
        self.cluster.run("scontrol", "suspend", str(job))
        wait_for("the stop", lambda: all(state_of(pid) == "T" for pid in pids), 10)
        time.sleep(6)
        self.cluster.run("scontrol", "resume", str(job))
        wait_for("the end of the stop", lambda: all(state_of(pid) == "S" for pid in pids), 10)
        time.sleep(4)

    def test_what_takes_long_is_not_acted_on(self):
        """The bound of a hang is 2 s here, not 8: a first step, a compilation, a validation, a save and a slow loader, each of 4 s."""
        job = self.start("-- /usr/bin/python3 trainer.py", "--ntasks-per-node=2", "--wlb-on-fault=hang-after=2")
        attempt = self.cluster.sql(f"select a.uuid from attempts a join runs r on r.id = run_id where r.name = '{job}'")[0][0]
        api = Api(self.cluster)
        for number, what in enumerate(("", "compile", "compute", "save", ""), 1):
            work = [self.cluster.work / f"work-{rank}" for rank in ((1,) if what == "save" else (0, 1, 2) if what else ())]
            for path in work:
                path.write_text(what, encoding="utf-8")
            time.sleep(4)
            for path in work:
                path.unlink()
            body = {"attempt_id": attempt, "source": "rank0", "job_id": job, "first_seq": number, "records": [step(number, number)]}
            self.assertEqual(api.call("POST", f"/v1/runs/{job}/records", body)[0], 200)
        run = self.finish(job)
        self.assertEqual([attempt["nodes"] for attempt in run["attempts"]], [["n1", "n2"]])
        self.assertEqual([verdict for verdict in run["verdicts"] if verdict["action"] != "report"], [])
        self.assertEqual(run["faults"], [])

    def test_which_launcher_waits_is_named_within_30_s(self):
        """The job that setUpClass has started."""
        job = self.waiting
        found, = wait_for("a verdict", lambda: self.verdicts(job), 40)
        self.assertEqual((found["kind"], found["state"]), ("hang", "suspected"))
        self.assertRegex(found["evidence"], r"torchrun, process \d+ on n[34], has had no rank for \d+ s: it waits for 3 nodes, and "
                                            "the attempt has 2")
        began, = self.cluster.sql(f"""select extract(epoch from v.found_at - a.started_at) from verdicts v join attempts a on a.id = v.attempt_id
                                      join runs r on r.id = a.run_id where r.name = '{job}'""")
        self.assertLess(float(began[0]), 30)
        time.sleep(3)
        self.assertEqual(self.attempts(job), [["n3", "n4"]])
        self.cluster.run("scancel", str(job))


if __name__ == "__main__":
    harness.main()
