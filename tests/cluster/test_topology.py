#!/usr/bin/env python3
"""The placement of ranks on two switches whose nodes alternate in Slurm's order: ranks fill the nodes of one switch before
those of the next, for wlb-worker and for a program that knows PMIx and its environment only, and `wlb show` shows it."""
import json

import harness
import training
from test_places import PLACE, WAYS, coordinates

TOPOLOGY = """SwitchName=left Nodes=n[1,3]
SwitchName=right Nodes=n[2,4]
SwitchName=top Switches=left,right
"""
ORDER = ["n1", "n3", "n2", "n4"]
SWITCHES = [{"switch": "left", "nodes": "n[1,3]", "first_rank": 0, "ranks": 4},
            {"switch": "right", "nodes": "n[2,4]", "first_rank": 4, "ranks": 4}]


class Topology(training.TrainingTest):
    topology = TOPOLOGY

    def completed(self, script, *options, **keywords):
        job = self.cluster.sbatch(script, "--ntasks-per-node=2", *options, **keywords)
        self.assertEqual(self.cluster.wait_job(job), "COMPLETED", self.cluster.output(job))
        return job

    def placement(self, run):
        return run["attempts"][-1]["plan"]["placement"]

    def test_another_trainer(self):
        """Its rank is its place in the layout, so that a trainer that has only its rank has the same groups as the plugin
        says, and each group of tp x cp ranks is on one switch."""
        layout = {"tp": 2, "cp": 2, "pp": 2, "dp": 1}
        for arguments, wanted in (("", ORDER), ("-m cyclic", None)):
            with self.subTest(arguments):
                job = self.completed(f"wlb run --srun-args '{arguments}' -- {PLACE}", "--wlb-layout=tp=2,cp=2,pp=2", nodes=4)
                nodes, told, taken = {}, {}, {}
                for line in self.cluster.output(job).splitlines():
                    if line.startswith("place "):
                        _, rank, node, *words = line.split()
                        nodes[int(rank)] = node
                        taken[int(rank)], told[int(rank)] = tuple(map(int, words[:4])), tuple(map(int, words[4:]))
                self.assertEqual(len(nodes), 8, self.cluster.output(job))
                self.assertEqual(taken, told)
                expected = coordinates(layout, {rank: ORDER.index(node) for rank, node in nodes.items()})
                self.assertEqual(told, expected)
                if wanted:
                    self.assertEqual([nodes[rank] for rank in range(8)], [node for node in wanted for _ in range(2)])
                    self.assertEqual(told, coordinates(layout, {rank: rank for rank in range(8)}))
                run = self.cluster.show(job)
                self.assertEqual(run["layout"], layout)
                self.assertEqual(self.placement(run), SWITCHES)
                shown = self.cluster.run("wlb", "show", str(job)).stdout
                for pattern in (r"left +n\[1,3\] +0-3", r"right +n\[2,4\] +4-7"):
                    self.assertRegex(shown, pattern)

    def test_training_and_a_lost_node(self):
        """The order is made again of the nodes that are left, without the coordinator as well."""
        iterations = 24
        job = self.submit(layout="tp=2,cp=1,pp=2", iterations=iterations)
        self.wait_step(job, training.SAVE_INTERVAL + 1)
        self.cluster.kill_node(3)
        self.addCleanup(self.cluster.restore_node, 3)
        run = self.finish(job)
        self.assertEqual([a["plan"]["placement"] for a in run["attempts"]],
                         [SWITCHES, [{"switch": "left", "nodes": "n1", "first_rank": 0, "ranks": 2},
                                     {"switch": "right", "nodes": "n2", "first_rank": 2, "ranks": 2}]])
        self.assertEqual([place["node"] for place in run["rank_map"]], ["n1", "n1", "n2", "n2"])
        expected = training.single_process_losses(iterations=iterations)[iterations]
        self.assertAlmostEqual(run["last_loss"], expected, delta=training.TOLERANCE["float64"] * expected)

    def test_nodes_in_slurms_order(self):
        """Ranks fill them in blocks: no list of hosts is needed."""
        job = self.completed("wlb run -- sh -c 'echo distribution $SLURM_DISTRIBUTION'", "--wlb-layout=auto", "-wn[1,3]", nodes=2)
        self.assertEqual(self.cluster.output(job).count("distribution block\n"), 4, self.cluster.output(job))


if __name__ == "__main__":
    harness.main()
