#!/usr/bin/env python3
"""Where each task stands in the layout, under every distribution of tasks that srun has: what the plugin tells another
trainer, what wlb-worker takes and what `wlb show` says agree."""
import json

import training
from harness import BUILD, main

PLACE = f"{BUILD}/tests/worker_place"
WAYS = ("tp", "cp", "pp", "dp")


def coordinates(layout, nodes):
    """rank -> (tp, cp, pp, dp), from rank -> node: place by place, node by node, tp varying fastest."""
    found = {}
    for place, rank in enumerate(sorted(nodes, key=lambda rank: (nodes[rank], rank))):
        at = []
        for way in WAYS:
            place, index = divmod(place, layout[way])
            at.append(index)
        found[rank] = tuple(at)
    return found


class Places(training.TrainingTest):
    nodes = 2

    def completed(self, script, *options, **keywords):
        job = self.cluster.sbatch(script, *options, **keywords)
        self.assertEqual(self.cluster.wait_job(job), "COMPLETED", self.cluster.output(job))
        return job

    def check_places(self, job, layout):
        """Every line that worker_place printed says the same twice; returns rank -> node."""
        nodes, taken, told = {}, {}, {}
        for line in self.cluster.output(job).splitlines():
            if line.startswith("place "):
                _, rank, node, *words = line.split()
                rank = int(rank)
                nodes[rank], taken[rank], told[rank] = node, tuple(words[:4]), tuple(words[4:])
        expected = {rank: tuple(map(str, at)) for rank, at in coordinates(layout, nodes).items()}
        self.assertEqual(told, expected, self.cluster.output(job))
        self.assertEqual(taken, expected, self.cluster.output(job))
        return nodes

    def test_wlb_run(self):
        """As `wlb run` starts it the tasks are distributed in blocks; the user's own arguments of srun override that."""
        (self.cluster.work / "hosts").write_text("n2\nn1\nn2\nn1\n", encoding="utf-8")
        layout = {"tp": 2, "cp": 1, "pp": 2, "dp": 1}
        for before, option, arguments, nodes in (
                ("", "-mcyclic", "", "n1 n1 n2 n2"),
                ("", "-mplane=1", "", "n1 n1 n2 n2"),
                ("export SLURM_HOSTFILE=hosts; ", "-mblock", "", "n1 n1 n2 n2"),
                ("", "-mblock", "-m cyclic", "n1 n2 n1 n2"),
                ("", "-mblock", "-m plane=1", "n1 n2 n1 n2"),
                ("", "-mblock", "-m arbitrary -w n2,n1,n1,n2", "n2 n1 n1 n2")):
            with self.subTest(before=before, option=option, arguments=arguments):
                job = self.completed(f"{before}wlb run --srun-args '{arguments}' -- {PLACE}", "--wlb-layout=tp=2,pp=2",
                                     "--ntasks-per-node=2", option, nodes=2)
                self.assertEqual(self.check_places(job, layout), dict(enumerate(nodes.split())))
                self.assertEqual(self.cluster.show(job)["layout"], layout)

    def test_distribution_over_cores_is_the_users(self):
        job = self.completed("wlb run -- sh -c 'echo distribution $SLURM_DISTRIBUTION'", "--wlb-layout=auto", "-mcyclic:fcyclic",
                             nodes=2)
        self.assertEqual(self.cluster.output(job).count("distribution block:fcyclic\n"), 2, self.cluster.output(job))

    def test_distribution_over_cores_where_a_rank_is_idle(self):
        """One head, one layer and a batch of five windows: five of six ranks have work. srun takes the node of each rank then, and no
        distribution over cores."""
        one = {**training.MODEL, "num_hidden_layers": 1, "num_attention_heads": 1, "num_key_value_heads": 1}
        (self.cluster.work / "one.json").write_text(json.dumps(one), encoding="utf-8")
        words = " ".join([*training.arguments(iterations=1), "--model", "one.json", "--global-batch-size", "5", "--lr-warmup-iters", "0"])
        job = self.completed(f"wlb run -- sh -c 'echo distribution $SLURM_DISTRIBUTION; exec \"$@\"' trainer wlb-worker {words}",
                             "--wlb-layout=auto", "--ntasks-per-node=3", "--overcommit", "-mcyclic:fcyclic", nodes=2)
        output = self.cluster.output(job)
        self.assertEqual(output.count("distribution arbitrary\n"), 5, output)
        self.assertEqual(output.count("--distribution=cyclic:fcyclic: the part from ':' on is ignored"), 1, output)

    def test_plain_srun(self):
        """Also where the nodes have different numbers of tasks, and where nothing but SLURM_* is exported."""
        for ways, tasks, arguments, nodes in (
                ((1, 1, 7, 1), "-n7", "-m cyclic", "n1 n2 n1 n1 n1 n1 n1"),
                ((1, 7, 1, 1), "-n7", "-m plane=4 --export=NONE", "n1 n1 n1 n1 n2 n1 n1"),
                ((1, 1, 1, 7), "-n7", "", "n1 n1 n1 n1 n1 n1 n2"),
                ((2, 1, 3, 1), "--ntasks-per-node=4", "-n6 -m arbitrary -w n2,n1,n1,n2,n1,n1", "n2 n1 n1 n2 n1 n1")):
            with self.subTest(arguments):
                layout = dict(zip(WAYS, ways))
                exports = " ".join(f"SLURM_WLB_{way.upper()}={count} WLB_{way.upper()}={count}"
                                   for way, count in layout.items())
                job = self.completed(f"export {exports}\nsrun --mpi=pmix {arguments} {PLACE}", "--wlb-layout=auto",
                                     tasks, nodes=2)
                self.assertEqual(self.check_places(job, layout), dict(enumerate(nodes.split())))

    def test_what_cannot_be_served_is_refused(self):
        """Before a task has run."""
        for script, options, reason in (
                ("export WLB_TP=7 WLB_CP=1 WLB_PP=1 WLB_DP=1; srun echo ran", ("-n7",),
                 "layout tp=7,cp=1,pp=1,dp=1: tp must divide the ranks of each node, and node 1 has 6; use tp=1"),
                ("wlb run --tasks-per-node 2 --max-restarts 0 --srun-args '-m arbitrary -w n2,n1,n2,n2' -- echo ran",
                 ("--ntasks-per-node=4",),
                 "tp must divide the ranks of each node, and node 1 has 1; use tp=1"),
                ("wlb run -- echo ran", ("-n7",),
                 "SLURM_TASKS_PER_NODE is 6,1: `wlb run` starts as many tasks on each node; submit with "
                 "--ntasks-per-node and without --ntasks, or add --tasks-per-node to `wlb run`")):
            with self.subTest(script):
                job = self.cluster.sbatch(f"{script}; exit $?", "--wlb-layout=tp=2,pp=2", *options, nodes=2)
                self.assertEqual(self.cluster.wait_job(job), "FAILED", self.cluster.output(job))
                self.assertIn(reason, self.cluster.output(job))
                self.assertNotIn("ran\n", self.cluster.output(job))

    def test_training(self):
        """wlb-worker itself: the ranks that it records, and the loss of a single process."""
        iterations = 5
        words = " ".join(training.arguments(iterations=iterations))
        tell = "echo told $SLURM_PROCID $WLB_RANK_TP $WLB_RANK_CP $WLB_RANK_PP $WLB_RANK_DP"
        for arguments, nodes in (("-m cyclic", "n1 n2 n1 n2"), ("-m arbitrary -w n2,n1,n1,n2", "n2 n1 n1 n2")):
            with self.subTest(arguments):
                job = self.completed(f"wlb run --srun-args '{arguments}' -- sh -c '{tell}; exec wlb-worker {words}'",
                                     "--wlb-layout=tp=2,pp=2", "--ntasks-per-node=2", nodes=2)
                run = self.cluster.show(job)
                shown = {place["rank"]: place["node"] for place in run["rank_map"]}
                self.assertEqual(shown, dict(enumerate(nodes.split())))
                told = {int(line.split()[1]): tuple(map(int, line.split()[2:]))
                        for line in self.cluster.output(job).splitlines() if line.startswith("told ")}
                self.assertEqual(told, coordinates(run["layout"], shown))
                expected = training.single_process_losses(iterations=iterations)[iterations]
                self.assertAlmostEqual(run["last_loss"], expected, delta=training.TOLERANCE["float64"] * expected)


if __name__ == "__main__":
    main()
