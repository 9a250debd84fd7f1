#!/usr/bin/env python3
"""--wlb-grow: a run that goes on with fewer nodes after a loss takes in nodes again, once they are there."""
import json
import shutil
import time

import harness
import live_run
import test_time_limit
from harness import wait_for

ITERATIONS = 70
LEAST_S = 4  # that an attempt runs before it is stopped to grow
# What is added to a machine file where it was measured, in float64.
MEASURED = {"element_bytes": 8, "gemm": {"rows": [61, 125], "depth": [64, 128], "columns": [64, 128],
                                         "flops_per_s": [[[1e9, 1e9], [1e9, 1e9]], [[1e9, 1e9], [1e9, 1e9]]]}}
# An srun that does not start the check of a node, and keeps its words and its environment.
REFUSING_SRUN = """#!/bin/bash
[[ " $* " == *" check-node "* ]] && echo "$*" > {folder}/words && env > {folder}/check && exit 3
env > {folder}/attempt
exec {srun} "$@"
"""


class GrowTest(test_time_limit.StopTest):
    nodes = 4

    def submit_slow(self, arguments, *options, iterations=ITERATIONS):
        return super().submit_slow(arguments, "--requeue", *options, iterations=iterations, nodes=4, ranks=4, layout="pp=1")

    def wait_attempt(self, job, number):
        wait_for(f"attempt {number}", lambda: len(self.cluster.show(job)["attempts"]) == number, 60)

    def events(self, run, kind):
        return [event["detail"] for event in run["events"] if event["kind"] == kind]

    def check_grown(self, job, run, why):
        """4 nodes, 3 and 4 again, each time from the step that was saved last, and with the losses of a run without faults."""
        self.assertEqual(run["state"], "complete")
        first, second, third = run["attempts"]
        self.assertEqual([attempt["nodes"] for attempt in run["attempts"]],
                         [["n1", "n2", "n3", "n4"], ["n1", "n2", "n4"], ["n1", "n2", "n3", "n4"]])
        self.assertEqual([attempt["layout"]["dp"] for attempt in run["attempts"]], [4, 3, 4])
        self.assertEqual((first["state"], first["reason"]), ("failed", "node n3 is lost"))
        step = second["last_step"]
        self.assertEqual((second["state"], second["exit_code"], second["reason"]),
                         ("ended", 85, f"{why}: saved step {step} and stopped"))
        self.assertEqual((third["resumed_step"], third["first_step"]), (step, step + 1))
        self.assertEqual(self.asked(run), [f"{why}: asked to save and stop, to go on with 4 nodes"])
        self.assertEqual(self.events(run, "growth"), ["the run has grown from 3 to 4 nodes"])
        self.assertIn("(4 nodes; the run has grown from 3 to 4 nodes)", self.cluster.output(job))
        self.assertEqual([(fault["kind"], fault["node"]) for fault in run["faults"] if fault["cause"]], [("node_lost", "n3")])
        self.assertIn(second["reason"], self.cluster.run("wlb", "show", job).stdout)
        self.check_losses(run, ITERATIONS)


class LostNode(GrowTest):
    def test_a_node_that_slurm_took(self):
        """Two jobs lose the node. That with the option is requeued when the node is back, the other keeps three nodes."""
        job = self.submit_slow("", f"--wlb-grow={LEAST_S}")
        plain = self.submit_slow("")
        for each in (job, plain):
            self.wait_step(each, 4)
        self.cluster.kill_node(3)
        for each in (job, plain):
            self.wait_attempt(each, 2)
            wait_for("the loss in Slurm", lambda each=each: self.cluster.job(each)["NodeList"] == "n[1-2,4]", 30)
        self.cluster.restore_node(3)
        run = self.finish(job)
        self.check_grown(job, run, "1 lost node can be replaced")
        self.assertEqual(self.cluster.job(job)["Restarts"], "1")
        self.assertIn("job %s is requeued" % job, self.cluster.output(job))
        self.assertEqual(run["policy"]["grow_s"], LEAST_S)

        run = self.finish(plain)
        self.assertEqual([len(attempt["nodes"]) for attempt in run["attempts"]], [4, 3])
        self.assertEqual((self.asked(run), self.cluster.job(plain)["Restarts"]), ([], "0"))

    def test_another_run_of_the_job_works(self):
        """A requeue would end it: the lost node is replaced once the other run has ended."""
        other = "-- bash -c 'until [ -e end-$SLURM_JOB_ID ]; do sleep 0.2; done' &\nsleep 2\nwlb run"
        job = self.submit_slow(other, f"--wlb-grow={LEAST_S}", iterations=100000)
        self.wait_step(job, 2)
        self.cluster.kill_node(3)
        self.wait_attempt(f"{job}.2", 2)
        wait_for("the loss in Slurm", lambda: self.cluster.job(job)["NodeList"] == "n[1-2,4]", 30)
        self.cluster.restore_node(3)
        said = "lost nodes are not replaced while another wlb run of this job works"
        wait_for("its words", lambda: said in self.cluster.output(job), 30)
        time.sleep(2 * LEAST_S)
        self.assertEqual((self.cluster.output(job).count(said), self.asked(self.cluster.show(f"{job}.2"))), (1, []))
        (self.cluster.work / f"end-{job}").touch()
        wait_for("the requeue", lambda: self.cluster.job(job)["Restarts"] == "1", 60)
        self.assertEqual(self.cluster.show(job)["state"], "complete")
        self.cluster.run("scancel", job)

    def test_jobs_that_cannot_grow(self):
        """Each says why at its start."""
        for options, line in ((("--wlb-grow", "--no-requeue"), "--wlb-grow does not replace nodes that Slurm takes from the job: the "
                               "job was submitted without --requeue; submit it with --requeue"),
                              (("--wlb-grow", "--requeue", "--nodelist=n1"), "--wlb-grow does not replace nodes that Slurm takes from "
                               "the job: the job names nodes"),
                              (("--wlb-grow=9", "--requeue"), "")):
            job = self.cluster.sbatch("wlb run --stop-before-end 30 -- true", "--wlb-layout=auto", *options)
            self.assertEqual(self.cluster.wait_job(job, 60), "COMPLETED", self.cluster.output(job))
            self.assertIn(line, self.cluster.output(job))
            self.assertEqual("--wlb-grow" in self.cluster.output(job), line != "")
            self.assertEqual(self.cluster.show(job)["policy"]["grow_s"], 9 if options[0] == "--wlb-grow=9" else 600)
        job = self.cluster.sbatch("#SBATCH --wlb-grow\nwlb run -- true", "--wlb-layout=auto", "--requeue")
        self.assertEqual(self.cluster.wait_job(job, 60), "COMPLETED", self.cluster.output(job))
        self.assertIn("--wlb-grow has no effect: the command must save and stop at SIGUSR1", self.cluster.output(job))


class Spares(GrowTest):
    def test_a_spare_steps_in_and_fewer_than_the_least_are_none(self):
        """Four nodes, one of them spare: it replaces the first that is lost. After the second two are left of three."""
        run = self.lose_two()
        self.assertEqual([attempt["nodes"] for attempt in run["attempts"]], [["n1", "n2", "n3"], ["n1", "n3", "n4"]])
        self.assertEqual(run["state"], "out_of_nodes")
        # wlbd may decide before or after Slurm has taken n3 from the job.
        self.assertRegex(run["reason"], r"^(2 of 4 nodes|n3 is lost; 2 nodes) remain, and the run needs at least 3 \(--wlb-min-nodes\)$")
        self.assertEqual([(fault["kind"], fault["node"]) for fault in run["faults"] if fault["cause"]],
                         [("node_lost", "n2"), ("node_lost", "n3")])

    def lose_two(self):
        job = self.submit_slow("", "--wlb-spares=1", "--wlb-min-nodes=3", f"--wlb-grow={LEAST_S}")
        self.wait_step(job, 4)
        self.cluster.kill_node(2)
        self.wait_attempt(job, 2)
        wait_for("steps of attempt 2", lambda: (self.cluster.show(job)["attempts"][1]["last_step"] or 0) > 4, 60)
        self.cluster.kill_node(3)
        self.assertEqual(self.cluster.wait_job(job, 90), "FAILED", self.cluster.output(job))
        return self.cluster.show(job)


class Suspect(GrowTest):
    def test_a_node_that_passes_its_check(self):
        """A rank hangs on n3, which is left out and checked while the run goes on: it passes, and the run grows to it."""
        job = self.submit_slow("", f"--wlb-grow={LEAST_S}", "--wlb-on-fault=hang-after=5")
        self.wait_step(job, 6)
        self.stop_in_computation(2)
        run = self.finish(job)
        self.assertEqual(run["state"], "complete")
        first, second, _ = run["attempts"]
        self.assertEqual([attempt["nodes"] for attempt in run["attempts"]],
                         [["n1", "n2", "n3", "n4"], ["n1", "n2", "n4"], ["n1", "n2", "n3", "n4"]])
        self.assertRegex(first["reason"], r"^rank 2 on n3 hangs at step \d+$")
        self.assertEqual(second["reason"], f"n3 is usable again: saved step {second['last_step']} and stopped")
        self.assertEqual(self.events(run, "node_checked"), ["n3 has passed its check: the next attempt may use it"])
        self.assertEqual(self.events(run, "growth"), ["the run has grown from 3 to 4 nodes"])
        self.assertIn("n3, which this attempt excludes, has passed its check", self.cluster.output(job))
        self.check_losses(run, ITERATIONS)

    def test_the_coordinator_is_away_as_the_check_ends(self):
        """What was found is sent again, and the run grows to the node as if nothing had been."""
        steps = 2 * ITERATIONS  # the run must not end before the coordinator is back
        job = self.submit_slow("", f"--wlb-grow={LEAST_S}", "--wlb-on-fault=hang-after=5", iterations=steps)
        self.wait_step(job, 6)
        self.stop_in_computation(2)
        self.wait_attempt(job, 2)
        wait_for("the check", lambda: self.cluster.processes("check-node", "--json"), 60, 0.05)
        self.cluster.verb("kill-wlbd")
        wait_for("its end", lambda: "the check of n3 is not recorded yet: " in self.cluster.output(job), 60)
        self.cluster.verb("start-wlbd")
        run = self.finish(job)
        self.assertEqual(run["state"], "complete")
        self.assertEqual([attempt["nodes"] for attempt in run["attempts"]],
                         [["n1", "n2", "n3", "n4"], ["n1", "n2", "n4"], ["n1", "n2", "n3", "n4"]])
        self.assertEqual(self.events(run, "node_checked"), ["n3 has passed its check: the next attempt may use it"])
        self.assertEqual(self.events(run, "node_not_checked"), [])
        self.check_losses(run, steps)

    def test_a_node_that_cannot_be_checked(self):
        """The srun of its check fails: the run goes on without it and records why. That srun has no share of a task, and asks
        for the type in which the machine was measured."""
        folder = self.cluster.work / "refusing"
        folder.mkdir()
        live_run.write_program(folder / "srun", REFUSING_SRUN.format(srun=shutil.which("srun", path=self.cluster.env["PATH"]), folder=folder))
        machine = json.loads((harness.ROOT / "libwlb/machines/CPU.json").read_text(encoding="utf-8"))
        (folder / "machine.json").write_text(json.dumps(machine | MEASURED), encoding="utf-8")
        job = self.submit_slow("", "--wlb-on-fault=hang-after=5", "--cpus-per-task=1",
                               f"--export=ALL,WLB_MACHINE={folder}/machine.json,PATH={folder}:{self.cluster.env['PATH']}")
        self.wait_step(job, 6)
        self.stop_in_computation(2)
        run = self.finish(job)
        self.assertEqual([attempt["nodes"] for attempt in run["attempts"]], [["n1", "n2", "n3", "n4"], ["n1", "n2", "n4"]])
        why = "its check ended with exit code 3 and without a result"
        self.assertEqual(self.events(run, "node_not_checked"), [f"n3 could not be checked: {why}"])
        self.assertIn(f"n3, which this attempt excludes, could not be checked: {why}", self.cluster.output(job))
        environments = [(folder / name).read_text(encoding="utf-8") for name in ("attempt", "check")]
        self.assertEqual(["CPUS_PER_TASK=" in text for text in environments], [True, False])
        self.assertIn(" check-node --json --disk-mib 4 --disk-mib-per-s 1 --dtype float64\n", (folder / "words").read_text(encoding="utf-8"))


class SilentNode(GrowTest):
    """The coordinator sets no node DOWN, and Slurm waits longer for one than it is silent: the job keeps the node."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        path = cls.cluster.dir / "etc/slurm.conf"
        text = path.read_text(encoding="utf-8")
        path.write_text(text.replace("SlurmdTimeout=15", "SlurmdTimeout=120"), encoding="utf-8")
        cls.cluster.verb("kill-service", "slurmctld")
        cls.cluster.verb("start-service", "slurmctld")
        cls.cluster.restart_wlbd("silence_ms = 2000\nnode_down = no\n")

    def test_a_node_that_answers_again(self):
        """The same job goes on with it, and that is no restart of those that --max-restarts allows."""
        job = self.submit_slow("--max-restarts 1", f"--wlb-grow={LEAST_S}")
        self.wait_step(job, 4)
        self.cluster.verb("freeze-node", "3")
        self.addCleanup(self.cluster.verb, "thaw-node", "3")
        self.wait_attempt(job, 2)
        self.cluster.verb("thaw-node", "3")
        run = self.finish(job)
        self.check_grown(job, run, "n3 is usable again")
        self.assertEqual(self.cluster.job(job)["Restarts"], "0")


if __name__ == "__main__":
    harness.main()
