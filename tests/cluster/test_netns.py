#!/usr/bin/env python3
"""Clusters whose nodes are network namespaces, and training while links between them are cut, slow or lose packets."""
import contextlib
import json
import os
import pathlib
import shutil
import signal
import statistics
import subprocess
import time
import unittest

import harness
import links
import training
from harness import Cluster, wait_for

MBIT = 60
SILENCE_S = 3
ITERATIONS = 26


@links.needed
class Networks(training.TrainingTest):
    link_mbit = MBIT
    model_config = training.LARGER

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.links = links.Links(cls.cluster)
        cls.cluster.restart_wlbd(f"silence_ms = {SILENCE_S * 1000}\n")

    def start(self, layout, *options, step=3):
        """Submits a job; returns it once it is at this step."""
        job = self.submit(*options, layout=layout, tasks_per_node=1, iterations=ITERATIONS)
        self.wait_step(job, step)
        return job

    def check_stands(self, job, seconds):
        """Only a step whose messages have all arrived may still end."""
        step = self.step_done(job)
        time.sleep(seconds)
        self.assertLessEqual(self.step_done(job), step + 1)

    def check_goes_on(self, job, steps=2):
        self.wait_step(job, self.step_done(job) + steps, 40)

    def step_times_s(self, job, first, last):
        lines = (self.cluster.work / f"m-{job}.jsonl").read_text(encoding="utf-8").splitlines()
        return [step["step_time_s"] for step in map(json.loads, lines[first - 1:last])]

    def check_undisturbed(self, job):
        """One attempt, no fault, and the losses of a single process."""
        run = self.finish(job)
        self.check_complete(run, iterations=ITERATIONS)
        self.assertEqual((len(run["attempts"]), run["faults"]), (1, []))

    def test_check_node_finds_a_slow_link(self):
        least = MBIT / 2 / 1000
        self.assertEqual(self.links.check_node(3, 1, least)[0], 0)
        with self.links.limited(3, mbit=MBIT // 6):
            code, text = self.links.check_node(3, 1, least)
            self.assertEqual(self.links.check_node(2, 1, least)[0], 0)
        self.assertEqual(code, 1, text)
        self.assertRegex(text, rf"^wlb check-node: link {links.DATA}[\d.:]+: [\d.]+ Gbit/s to it.*; limit: {least} Gbit/s$")

    def test_data_parallel_and_cuts(self):
        # After a cut of 4 s TCP sends again after 8 s at the latest, which is when a hang is confirmed by default.
        job = self.start("tp=1,cp=1,pp=1,dp=4", "--wlb-on-fault=hang-after=20")
        with self.links.cut(3):  # for longer than a node may be silent: its reports take the other network
            self.check_stands(job, SILENCE_S + 1)
        self.check_goes_on(job)
        with self.links.cut(1, peer=2):
            self.check_stands(job, 2)
        self.check_goes_on(job)
        with self.links.cut(3, network="all"):
            self.check_stands(job, 2)
        self.check_goes_on(job)
        self.check_undisturbed(job)

    def test_pipeline_and_slow_links(self):
        sent_bytes = self.links.sent_bytes(2)
        job = self.start("tp=1,cp=1,pp=2,dp=2")
        usual_s = self.whole_steps_s(job)
        with self.links.limited(2, MBIT // 4):
            limited_s = self.whole_steps_s(job)
        self.check_goes_on(job)
        with self.links.delayed(2, delay_ms=20, loss_percent=1):
            before = self.links.segments(2)
            delayed_s = self.whole_steps_s(job)
            round_trips_ms = self.links.round_trips_ms(2)
            wait_for("segments that are lost", lambda: self.share_sent_again(before) > 0.003, 30)
            self.say(f"{self.share_sent_again(before):.2%} of the segments sent again,")
        self.check_goes_on(job)
        self.check_undisturbed(job)
        self.say("a step took {:.2f} s, {:.2f} s at a quarter of the rate, {:.2f} s with delay and loss".format(
            *map(statistics.mean, (usual_s, limited_s, delayed_s))))
        # Checkpoints and segments that were sent again are less than a fifth of what the node has sent.
        least_bytes = 0.8 * (self.links.sent_bytes(2) - sent_bytes) / ITERATIONS
        self.assertGreater(min(limited_s), least_bytes * 8 / (MBIT / 4 * 1e6))
        self.assertGreater(min(round_trips_ms), 40)
        self.assertGreater(min(delayed_s), 0.08)  # a micro-batch forward and back, and gradients and parameters

    def share_sent_again(self, before):
        sent, again = (now - then for now, then in zip(self.links.segments(2), before))
        return again / max(sent, 1)

    def whole_steps_s(self, job):
        """Times of the next steps, without the one that is under way."""
        first = self.step_done(job) + 2
        self.wait_step(job, first + 1, 60)
        return self.step_times_s(job, first, first + 1)

    def test_host_of_wlbd_cut_off(self):
        """No node reaches wlbd any more, as where the network of its host is away: none is lost, and training goes on. The
        first node that answers again shows only that the network is coming back."""
        job = self.start("tp=1,cp=1,pp=1,dp=4")
        with contextlib.ExitStack() as cuts:
            for node in range(1, 4):
                cuts.enter_context(self.links.cut(node, network="management"))
            with self.links.cut(4, network="management"):
                wait_for("wlbd's word for it", lambda: "is not set to lost" in self.wlbd_log(), 12)
            time.sleep(6)
        # A connection that sends again after a longer and longer pause may bring the end of the run after that of the job.
        self.cluster.wait_job(job)
        wait_for("the end of the run", lambda: self.cluster.show(job)["state"] == "complete", 60)
        self.check_undisturbed(job)
        states = self.cluster.run("sinfo", "-h", "-N", "-o", "%t").stdout.split()
        self.assertFalse([state for state in states if "down" in state], states)

    def wlbd_log(self):
        return (self.cluster.dir / "log/wlbd.out").read_text(encoding="utf-8")

    def test_node_cut_off_for_good(self):
        """It is lost, as if its power had failed: the run continues without it. srun waits for the tasks of the lost node, since
        slurmctld's messages to srun do not enter its namespace."""
        job = self.start("auto")
        with self.links.cut(3, network="all"):
            run = self.finish(job)
        self.assertIn("srun is ended, since it waits for tasks of lost nodes alone", self.cluster.output(job))
        self.check_complete(run, iterations=ITERATIONS)
        self.check_repeats(run, attempts=2)
        self.assertEqual([(fault["kind"], fault["node"]) for fault in run["faults"] if fault["cause"]], [("node_lost", "n3")])
        self.cluster.restore_node(3)

    def mpi(self, cluster):
        result = cluster.run("srun", "-N4", "--mpi=pmix", harness.mpi_check())
        self.assertEqual(result.stdout, "ranks 4 on n1 n2 n3 n4\n")

    def test_side_by_side(self):
        """Faults and the end of one cluster do not concern the other, and nothing stays of one whose processes died."""
        other = Cluster(nodes=4, link_mbit=MBIT)
        self.addCleanup(other.stop)
        other.start()
        others = links.Links(other)
        self.assertEqual(len(others.traces()), 6, "a namespace for each node and for the switch, and an interface")
        with self.links.cut(1, network="all"):
            self.mpi(other)
        other.verb("delay-link", "2", "--delay-ms", "5")
        unknown = int(other.run("srun", "-N1", "sh", "-c", "env -i setsid sleep 1006 > /dev/null 2>&1 & echo $!").stdout)
        other.sbatch("srun sleep 1005", nodes=4)
        wait_for("the job's tasks", lambda: len(other.processes("sleep 1005")) >= 4, 10)
        for path in (other.dir / "run").glob("*.pid"):
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(path.read_text(encoding="ascii").split()[0]), signal.SIGKILL)
        other.verb("stop")
        self.assertEqual((others.traces(), other.processes()), ([], []))
        wait_for("the end of a process that is known by its namespace alone", lambda: not os.path.exists(f"/proc/{unknown}"), 5)
        self.assertEqual(len(self.links.traces()), 6)
        self.mpi(self.cluster)

    def test_wrong_words_are_refused(self):
        for words, text in ((["cut-link", "5"], "1 to 4"), (["cut-link", "1,1"], "another node"), (["cut-link", "1,5"], "1 to 4"),
                            (["limit-link", "1"], "--mbit"), (["limit-link", "1", "--mbit", "0"], "1 to 10000"),
                            (["delay-link", "1", "--loss-percent", "100"], "less than 100"),
                            (["delay-link", "1", "--delay-ms", "x"], "0 to 10000"), (["cut-link", "1", "--network", "x"], "data")):
            result = subprocess.run([self.cluster.script, *words, "--dir", self.cluster.dir], capture_output=True, text=True,
                                    check=False)
            self.assertEqual((result.returncode, result.stderr.count("\n")), (2, 1), f"{words}: {result.stderr}")
            self.assertIn(text, result.stderr)


@links.needed
class Rack(training.TrainingTest):
    """Most nodes lose their network at once, as by the failure of a switch: those that are left show that wlbd's host has
    one. Slurm alone would find the loss much later."""

    nodes = 8
    link_mbit = MBIT
    model_config = training.LARGER
    CUT = range(4, 9)

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.links = links.Links(cls.cluster)
        path = cls.cluster.dir / "etc/slurm.conf"
        path.write_text(path.read_text(encoding="utf-8").replace("SlurmdTimeout=15", "SlurmdTimeout=180"), encoding="utf-8")
        cls.cluster.verb("kill-service", "slurmctld")
        cls.cluster.verb("start-service", "slurmctld")
        cls.cluster.restart_wlbd(f"silence_ms = {SILENCE_S * 1000}\n")

    def test_five_of_eight_nodes(self):
        job = self.submit(nodes=8, layout="auto", tasks_per_node=1, iterations=ITERATIONS)
        self.wait_step(job, 3)
        with contextlib.ExitStack() as cuts:
            for node in self.CUT:
                cuts.enter_context(self.links.cut(node, network="all"))
            wait_for("an attempt without them", lambda: len(self.cluster.show(job)["attempts"]) == 2, 60)
            run = self.finish(job)
        self.assertEqual(run["attempts"][1]["nodes"], ["n1", "n2", "n3"])
        self.assertEqual({fault["node"] for fault in run["faults"] if fault["kind"] == "node_lost"},
                         {f"n{node}" for node in self.CUT})
        self.check_complete(run, iterations=ITERATIONS)
        for node in self.CUT:
            self.cluster.restore_node(node)


@links.needed
class Refused(unittest.TestCase):
    """Where networks cannot be made nothing is started."""

    def refusal(self, *before):
        """The one line of a start by this command, and its exit code."""
        cluster = Cluster(nodes=1)
        self.addCleanup(cluster.stop)
        result = subprocess.run([*before, cluster.script, "start", "--netns", "--nodes", "1", *harness.start_options(),
                                 "--dir", cluster.dir], capture_output=True, text=True, check=False)
        self.assertFalse(cluster.dir.exists())
        self.assertEqual(result.stderr.count("\n"), 1, result.stderr)
        return result.returncode, result.stderr

    def test_without_a_capability(self):
        for name in ("net_admin", "sys_admin"):
            code, error = self.refusal("setpriv", "--bounding-set", f"-{name}")
            self.assertEqual(code, 2)
            self.assertIn("CAP_NET_ADMIN", error)

    def test_without_a_program(self):
        for name in ("ip", "tc", "nft"):
            path = shutil.which(name, path="/usr/sbin")
            code, error = self.refusal("unshare", "--mount", "sh", "-c",
                                       f'for each in {path} /bin/{name}; do [ ! -e $each ] || mount --bind /dev/null $each; done;'
                                       'exec "$@"', "sh")
            self.assertEqual(code, 1)
            self.assertIn(f"{name} is not installed", error)


if __name__ == "__main__":
    harness.main()
