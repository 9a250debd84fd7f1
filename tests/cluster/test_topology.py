#!/usr/bin/env python3
"""What Slurm knows of the nodes, in a run. The placement of ranks on two switches whose nodes alternate in Slurm's order:
ranks fill the nodes of one switch before those of the next, for wlb-worker and for a program that knows PMIx and its
environment only, and `wlb show` shows it. The machine that a run is planned with, by the types of the GPUs in Slurm's GRES:
known, of two types, unknown, and not named."""
import json

import harness
import test_wlbd_api
import training
from test_places import PLACE, WAYS, coordinates

TOPOLOGY = """SwitchName=left Nodes=n[1,3]
SwitchName=right Nodes=n[2,4]
SwitchName=far Nodes=n5
SwitchName=top Switches=left,right,far
"""
ORDER = ["n1", "n3", "n2", "n4"]
SWITCHES = [{"switch": "left", "nodes": "n[1,3]", "first_rank": 0, "ranks": 4},
            {"switch": "right", "nodes": "n[2,4]", "first_rank": 4, "ranks": 4}]


class Topology(training.TrainingTest):
    nodes = 5  # n5 has GPUs without a type
    topology = TOPOLOGY
    gpu_types = ("h100", "h100", "a100", "abacus")

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

    def test_a_node_with_fewer_ranks(self):
        """Seven of eight ranks have work: the last node in the order of switches has one."""
        model = {"model_type": "llama", "hidden_size": 64, "intermediate_size": 160, "num_hidden_layers": 1,
                 "num_attention_heads": 1, "vocab_size": 300, "max_position_embeddings": 64}
        (self.cluster.work / "one.json").write_text(json.dumps(model), encoding="utf-8")
        job = self.completed(f"wlb run -- {PLACE} --seq-length 64 --global-batch-size 7", "--wlb-layout=auto",
                             "--wlb-model=one.json", nodes=4)
        output = self.cluster.output(job)
        nodes = {int(line.split()[1]): line.split()[2] for line in output.splitlines() if line.startswith("place ")}
        self.assertEqual([nodes[rank] for rank in sorted(nodes)], ["n1", "n1", "n3", "n3", "n2", "n2", "n4"], output)
        self.assertIn("the best layout uses 7 of 8 ranks: 1 is idle, local rank 1 of n4\n", output)
        self.assertEqual(self.placement(self.cluster.show(job)), [SWITCHES[0], {**SWITCHES[1], "ranks": 3}])

    def test_without_the_coordinator(self):
        """`wlb run` asks Slurm itself then, and the placement is recorded once the coordinator is back."""
        self.cluster.verb("kill-wlbd")
        self.addCleanup(self.cluster.verb, "start-wlbd")
        job = self.completed(f"wlb run -- {PLACE}", "--wlb-layout=tp=2,cp=2,pp=2", nodes=4)
        nodes = dict(line.split()[1:3] for line in self.cluster.output(job).splitlines() if line.startswith("place "))
        self.assertEqual([nodes[str(rank)] for rank in range(8)], [node for node in ORDER for _ in range(2)])
        self.cluster.verb("start-wlbd")

        def recorded():
            reply = self.cluster.run("wlb", "show", str(job), "--json", check=False)
            return reply.returncode == 0 and json.loads(reply.stdout)["attempts"][-1]["plan"]

        self.assertEqual(harness.wait_for("the plan's record", recorded, 60)["placement"], SWITCHES)

    def test_training_and_a_lost_node(self):
        """The order is made again of the nodes that are left; of these two are used that are under one switch."""
        iterations = 24
        job = self.submit(layout="tp=2,cp=1,pp=2", iterations=iterations)
        self.wait_step(job, training.SAVE_INTERVAL + 1)
        self.cluster.kill_node(3)
        self.addCleanup(self.cluster.restore_node, 3)
        run = self.finish(job)
        self.assertEqual([run["attempts"][i]["plan"]["placement"] for i in (0, -1)],
                         [SWITCHES, [{"switch": "right", "nodes": "n[2,4]", "first_rank": 0, "ranks": 4}]])
        self.assertEqual([place["node"] for place in run["rank_map"]], ["n2", "n2", "n4", "n4"])
        expected = training.single_process_losses(iterations=iterations)[iterations]
        self.assertAlmostEqual(run["last_loss"], expected, delta=training.TOLERANCE["float64"] * expected)

    def test_nodes_in_slurms_order(self):
        """Ranks fill them in blocks: no list of hosts is needed."""
        job = self.completed("wlb run -- sh -c 'echo distribution $SLURM_DISTRIBUTION'", "--wlb-layout=auto", "-wn[1,3]", nodes=2)
        self.assertEqual(self.cluster.output(job).count("distribution block\n"), 4, self.cluster.output(job))

    def plan_with_gpus(self, nodes, *options, before=""):
        """Returns the job of another trainer of the model with two GPUs on each of the nodes."""
        return self.cluster.sbatch(f"{before}\nwlb doctor\nwlb run -- {PLACE} --seq-length 64 --global-batch-size 8", "--wlb-layout=auto",
                                   "--wlb-model=model.json", "--gpus-per-node=2", "--ntasks-per-node=2", f"-w{nodes}", *options, nodes=2 if "[" in nodes else 1)

    def test_types_of_gpus(self):
        """The slowest of two types is searched with; wlbd says the types, from what Slurm told it."""
        for nodes, machine, reason in (("n[1-2]", "H100", None), ("n[1,3]", "A100", "the slowest of the types h100,a100")):
            with self.subTest(nodes):
                job = self.plan_with_gpus(nodes, "--account=physics")
                self.assertEqual(self.cluster.wait_job(job), "COMPLETED", self.cluster.output(job))
                run = self.cluster.show(job)
                self.assertEqual((run["account"], run["gpu_count"]), ("physics", 4))
                plan = run["attempts"][0]["plan"]
                self.assertTrue(plan["machine"].startswith(machine), plan)
                self.assertIn(reason or "plans on H100", plan["reason"])
                self.assertIn("not measured, from the type of Slurm's GRES", self.cluster.output(job))
                shown = self.cluster.run("wlb", "show", str(job)).stdout
                self.assertIn(reason or "plans on H100", shown)
                rows = self.cluster.sql("select decision->'gpu_types' from attempts join runs on runs.id = run_id "
                                        f"where runs.name = '{job}'")
                self.assertEqual([entry["type"] for entry in json.loads(rows[0][0])],
                                 ["h100", "a100"] if reason else ["h100"])

    def test_measured_types(self):
        """wlbd stores a calibration of GPUs whose type nobody named under their type in Slurm's GRES, and refuses one of two
        types; a run on both is planned with the slower of what was measured and what the name of the type says."""
        api = test_wlbd_api.Api(self.cluster)
        self.cluster.dir.joinpath("munge").chmod(0o755)
        machine = json.loads((harness.ROOT / "libwlb/machines/H100.json").read_text(encoding="utf-8"))
        machine.update(name="H100 slowed down", peak_flops=machine["peak_flops"] / 16)

        def post(**changed):
            return api.call("POST", "/v1/calibrations", {"node_type": "gpu", "ranks_per_node": 2, "nodes": ["n1", "n2"],
                                                         "machine": machine, **changed})

        status, reply = post(nodes=["n1", "n3"])
        self.assertEqual((status, "n1 has GPUs of type h100 and n3 of type a100" in str(reply)), (400, True), reply)
        for nodes in (["n1", "n5"], ["n5", "n1"], ["n5"]):
            status, reply = post(nodes=nodes)
            self.assertEqual((status, "n5 has no type of GPU" in str(reply)), (400, True), reply)
        status, reply = post(node_type="gpu:a100")
        self.assertEqual((status, "node n1 has GPUs of type h100" in str(reply)), (400, True), reply)
        status, reply = post()
        self.assertEqual((status, reply["node_type"]), (200, "gpu:h100"), reply)
        self.addCleanup(self.cluster.sql, "delete from calibrations")
        for nodes in ("n[1-2]", "n[1,3]"):
            job = self.plan_with_gpus(nodes)
            self.assertEqual(self.cluster.wait_job(job), "COMPLETED", self.cluster.output(job))
            self.assertIn("planned with an administrator's calibration", self.cluster.output(job))
            self.assertIn("'gpu:h100', measured: an administrator's calibration", self.cluster.output(job))
            plan = self.cluster.show(job)["attempts"][0]["plan"]
            self.assertEqual(plan["machine"], machine["name"])
            if nodes == "n[1-2]":  # the type is the one that wlbd says: nothing in the job names it
                self.assertRegex(plan["calibration"]["compared_with"], "^the machine H100")

    def test_gpus_without_a_type(self):
        """They are not planned as processors: one line with the remedy, before a step starts."""
        job = self.plan_with_gpus("n5")
        self.assertEqual(self.cluster.wait_job(job), "FAILED", self.cluster.output(job))
        output = self.cluster.output(job)
        for word in ("GRES names no type of them", "WLB_MACHINE=H100", "machine = H100 of wlb.conf"):
            self.assertIn(word, output)
        self.assertNotIn("place ", output)
        self.assertEqual([a["started_at"] for a in self.cluster.show(job)["attempts"]], [None])
        job = self.plan_with_gpus("n5", before="export WLB_MACHINE=A100")
        self.assertEqual(self.cluster.wait_job(job), "COMPLETED", self.cluster.output(job))
        self.assertTrue(self.cluster.show(job)["attempts"][0]["plan"]["machine"].startswith("A100"))

    def test_a_type_that_nobody_knows(self):
        """One line with the remedy, before a step starts; the machine of wlb.conf is taken where it names one."""
        job = self.plan_with_gpus("n4")
        self.assertEqual(self.cluster.wait_job(job), "FAILED", self.cluster.output(job))
        output = self.cluster.output(job)
        for word in ("GPU type 'abacus' of Slurm's GRES", "WLB_MACHINE=H100", "machine = H100 of wlb.conf"):
            self.assertIn(word, output)
        self.assertNotIn("place ", output)
        self.assertEqual([a["started_at"] for a in self.cluster.show(job)["attempts"]], [None])
        text = (self.cluster.dir / "etc/wlb.conf").read_text(encoding="utf-8")
        conf = self.cluster.work / "wlb.conf"
        conf.write_text(text + "machine = B200  # of n4\n", encoding="utf-8")
        job = self.plan_with_gpus("n4", before=f"export WLB_CONF={conf}")
        self.assertEqual(self.cluster.wait_job(job), "COMPLETED", self.cluster.output(job))
        self.assertTrue(self.cluster.show(job)["attempts"][0]["plan"]["machine"].startswith("B200"))
        self.assertIn("from wlb.conf", self.cluster.run("wlb", "doctor", check=False, env={"WLB_CONF": str(conf)}).stdout)


if __name__ == "__main__":
    harness.main()
