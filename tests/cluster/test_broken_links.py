#!/usr/bin/env python3
"""Links that stay cut while a run trains: the node is found by a check of the links, and the run goes on without it."""
import contextlib
import re
import unittest

import harness
import links
import training
from harness import clock_s, wait_for

MBIT = 60
ITERATIONS = 48
BREAK_AT = 20
SLOW_MBIT = 5
PAIR = re.compile(r"(n\d) in ([\d.]+) s")
FOUND_S = 10
RESUMED_S = 20
LABELS = "export SLURM_LABELIO=1"  # the steps of the checks must not take it from the job
ENDED = re.compile(r"^wlb: (ending attempt 1|attempt 1): ", re.MULTILINE)


@unittest.skipUnless(links.may_be_made(), "this account may not make network namespaces")
class BrokenLinks(training.TrainingTest):
    link_mbit = MBIT
    model_config = training.LARGER

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.links = links.Links(cls.cluster)

    def lines(self, *options):
        """What the ranks of `wlb check-links` print, and the exit code of srun."""
        result = self.cluster.run("srun", "-N4", "--mpi=pmix", "--ntasks-per-node=1", "wlb", "check-links", *options, check=False)
        return sorted(result.stdout.splitlines()), result.returncode

    def test_the_command(self):
        self.assertEqual(self.lines(), ([f"n{node} reaches 3 nodes" for node in range(1, 5)], 0))
        with self.links.cut(2):
            self.assertEqual(self.lines(), (["n1 does not reach n2", "n2 does not reach n1 n3 n4", "n3 does not reach n2",
                                             "n4 does not reach n2"], 1))
        with self.links.cut(2, peer=4):
            self.assertEqual(self.lines(), (["n1 reaches 3 nodes", "n2 does not reach n4", "n3 reaches 3 nodes",
                                             "n4 does not reach n2"], 1))

    def pair_times(self):
        """Bytes of a message, and {nodes of a pair: seconds}, the greater of what both print."""
        lines, code = self.lines("--times")
        self.assertEqual((code, len(lines)), (0, 8), lines)
        self.assertEqual(lines[1::2], [f"n{node} reaches 3 nodes" for node in range(1, 5)])
        times = {}
        for line in lines[::2]:
            self.assertRegex(line, r"^n\d exchanges \d+ bytes with n\d in [\d.]+ s, n\d in [\d.]+ s, n\d in [\d.]+ s$")
            for node, seconds in PAIR.findall(line):
                pair = frozenset((line[:2], node))
                times[pair] = max(times.get(pair, 0), float(seconds))
        self.assertEqual(len(times), 6)
        self.assertEqual(len({line.split()[2] for line in lines[::2]}), 1, lines)
        return int(lines[0].split()[2]), times

    def test_times(self):
        """Messages of 256 KiB where the slowest pair takes long enough with them."""
        size, times = self.pair_times()
        self.assertGreater(min(times.values()), 0.7 * 8 * size / (MBIT * 1e6))
        with self.links.limited(2, mbit=SLOW_MBIT):
            size, times = self.pair_times()
        self.assertEqual(size, 262144)
        own = [seconds for pair, seconds in times.items() if "n2" in pair]
        others = [seconds for pair, seconds in times.items() if "n2" not in pair]
        self.assertGreater(min(own), 0.7 * 8 * size / (SLOW_MBIT * 1e6))
        self.assertLess(max(others), min(own) / 4)

    def leave_out(self, fault=contextlib.nullcontext()):
        """A rank on n3 hangs: the node is left out, and checked, with `fault`, while the run goes on without it."""
        job = self.submit("--wlb-grow=1", "--wlb-on-fault=hang-after=5", tasks_per_node=1, iterations=2 * ITERATIONS, before=LABELS)
        self.wait_step(job, BREAK_AT)
        self.stop_in_computation(2)
        with fault:
            wait_for("the check of n3", lambda: "n3, which this attempt excludes" in self.cluster.output(job), 120)
        return job

    def checks(self, run):
        return [event["detail"] for event in run["events"] if event["kind"] == "node_checked"]

    def test_a_node_whose_link_is_slow(self):
        run = self.finish(self.leave_out(self.links.limited(3, mbit=SLOW_MBIT)))
        self.assertEqual([attempt["nodes"] for attempt in run["attempts"]], [["n1", "n2", "n3", "n4"], ["n1", "n2", "n4"]])
        self.assertEqual(len(self.checks(run)), 1, run["events"])
        self.assertRegex(self.checks(run)[0], r"^n3 has failed its check: links: exchanges 256 KiB with n\d in [\d.]+ ms, other pairs "
                         r"take [\d.]+ ms; limit: 4 times as long, and 20 ms longer$")

    def test_a_node_whose_link_is_as_fast_as_the_others(self):
        """While the run uses the links of the others."""
        run = self.finish(self.leave_out())
        self.assertEqual(self.checks(run), ["n3 has passed its check: the next attempt may use it"])
        self.assertEqual([len(attempt["nodes"]) for attempt in run["attempts"]], [4, 3, 4])

    def train_through(self, fault, node):
        """Trains through a fault that stays; the run must end on the nodes beside `node`, which fails its check: it is not grown to."""
        job = self.submit("--wlb-grow=1", tasks_per_node=1, iterations=ITERATIONS, before=LABELS)
        self.wait_step(job, BREAK_AT)
        with fault:
            began = clock_s()
            wait_for("the end of the attempt", lambda: ENDED.search(self.cluster.output(job)), 40)
            found_s = clock_s() - began
            step = self.step_done(job)
            wait_for("the next attempt", lambda: "attempt 2 on" in self.cluster.output(job), 60)
            wait_for("a new step", lambda: self.step_done(job) > step, 60)
            resumed_s = clock_s() - began
            wait_for(f"the check of {node}", lambda: f"{node}, which this attempt excludes" in self.cluster.output(job), 60)
            run = self.finish(job)
        self.say(f"found after {found_s:.1f} s, training again after {resumed_s:.1f} s;")
        self.check_complete(run, iterations=ITERATIONS)
        self.check_repeats(run, attempts=2)
        self.assertEqual([(fault["kind"], fault["node"]) for fault in run["faults"] if fault["cause"]], [("hang", node)])
        self.assertEqual(run["attempts"][1]["nodes"], [name for name in ("n1", "n2", "n3", "n4") if name != node])
        self.assertLessEqual(found_s, FOUND_S + 5)  # beside other tests
        self.assertLessEqual(resumed_s, RESUMED_S + 20)
        return run

    def check_told(self, run, words):
        """The fault and the reason of the attempt, to programs and people."""
        self.assertRegex(run["attempts"][0]["reason"], rf"^{words}: ranks hang at step \d+$")
        self.assertIn(words, next(fault["detail"] for fault in run["faults"] if fault["cause"]))
        self.assertIn(run["attempts"][0]["reason"], self.cluster.run("wlb", "show", run["run_id"]).stdout)

    def check_failed(self, run, words):
        self.assertEqual(self.checks(run), [words])

    def test_the_link_of_a_node(self):
        run = self.train_through(self.links.cut(2), "n2")
        self.check_told(run, "n2 does not reach n1, n3 and n4")
        self.check_failed(run, "n2 has failed its check: links: exchanges no messages with n1, n3, n4")

    def test_the_link_between_two_nodes(self):
        """One that the collectives of this layout use; of the two nodes the last is left out."""
        run = self.train_through(self.links.cut(3, peer=4), "n4")
        self.check_told(run, "n4 does not reach n3")
        self.check_failed(run, "n4 has failed its check: links: exchanges no messages with n3")


if __name__ == "__main__":
    harness.main()
