#!/usr/bin/env python3
"""What `wlb run` tells the ranks of any trainer, and the launchers that start them: where the others are, in every attempt."""
import re

from harness import BUILD, ClusterTest, main, wait_for

NAMES = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")
PET_NAMES = ("PET_NNODES", "PET_NODE_RANK", "PET_RDZV_ID", "PET_RDZV_ENDPOINT", "PET_MASTER_ADDR", "PET_MASTER_PORT")
LINE = "echo vars $WLB_ATTEMPT $SLURM_PROCID $SLURMD_NODENAME " + " ".join(f"${{{name}:-none}}" for name in NAMES + PET_NAMES)
WAIT = "[ $WLB_ATTEMPT -gt 1 ] || sleep 600"


class RankVariables(ClusterTest):
    nodes = 3

    def submit(self, script, *options, nodes=2, tasks=2):
        return self.cluster.sbatch(script, "--wlb-layout=auto", "--no-kill", f"--ntasks-per-node={tasks}", *options, nodes=nodes)

    def variables(self, job):
        """(attempt, rank) -> (node, {name: value}) of the lines that LINE printed."""
        found = {}
        for line in self.cluster.output(job).splitlines():
            if line.startswith("vars "):
                attempt, rank, node, *values = line.split()[1:]
                found[int(attempt), int(rank)] = node, dict(zip(NAMES + PET_NAMES, values))
        return found

    def completed(self, job):
        self.assertEqual(self.cluster.wait_job(job), "COMPLETED", self.cluster.output(job))
        return self.variables(job)

    def wait_lines(self, job, count):
        wait_for(f"{count} tasks of job {job}", lambda: len(self.variables(job)) == count, 60)

    def check_ranks(self, found, attempt, nodes):
        """Two tasks on each node; returns the port."""
        mine = {rank: task for (number, rank), task in found.items() if number == attempt}
        self.assertEqual(sorted(mine), list(range(2 * len(nodes))))
        ports = {values["MASTER_PORT"] for _, values in mine.values()}
        self.assertEqual(len(ports), 1, mine)
        for rank, (node, values) in mine.items():
            self.assertEqual(node, nodes[rank // 2])
            self.assertEqual([values[name] for name in NAMES[:5]],
                             [str(rank), str(2 * len(nodes)), str(rank % 2), "2", "127.0.0.1"])
            self.assertEqual({values[name] for name in PET_NAMES}, {"none"})
        return int(ports.pop())

    def test_after_the_loss_of_a_node(self):
        job = self.submit(f"wlb run -- sh -c '{LINE}; {WAIT}'", nodes=3)
        self.wait_lines(job, 6)
        self.cluster.kill_node(2)
        try:
            found = self.completed(job)
        finally:
            self.cluster.restore_node(2)
        first = self.check_ranks(found, 1, ["n1", "n2", "n3"])
        second = self.check_ranks(found, 2, ["n1", "n3"])
        self.assertNotEqual(first, second)
        with open("/proc/sys/net/ipv4/ip_local_port_range", encoding="ascii") as ports:
            self.assertLess(max(first, second), int(ports.read().split()[0]))

    def test_without_the_environment_of_the_job(self):
        path = f"{BUILD}/bin:/usr/sbin:/usr/bin:/sbin:/bin"
        job = self.submit(f"PATH={path} wlb run -- /bin/sh -c '{LINE}'", "--export=NONE")
        self.check_ranks(self.completed(job), 1, ["n1", "n2"])

    def test_what_the_script_has_set_stays(self):
        job = self.submit("export MASTER_ADDR=127.0.0.9 MASTER_PORT=12345 WORLD_SIZE=77 LOCAL_WORLD_SIZE=7 RANK=9\n"
                          f"wlb run -- sh -c '{LINE}'")
        for (_, rank), (_, values) in self.completed(job).items():
            self.assertEqual([values[name] for name in NAMES], [str(rank), "77", str(rank % 2), "7", "127.0.0.9", "12345"])
        self.assertNotIn("MASTER_ADDR is", self.cluster.output(job))

    def test_an_address_of_another_node_is_replaced(self):
        job = self.submit(f"export MASTER_ADDR=n2.cluster WORLD_SIZE=4\nwlb run -- sh -c '{LINE}'")
        for _, values in self.completed(job).values():
            self.assertEqual([values["MASTER_ADDR"], values["WORLD_SIZE"]], ["127.0.0.1", "4"])
        self.assertIn("wlb: attempt 1: MASTER_ADDR is 127.0.0.1, since n2.cluster, which the script has set, is not the node of "
                      "rank 0", self.cluster.output(job))

    def test_a_step_of_a_rank_is_none_of_the_attempt(self):
        """It has the environment of the rank, and none of its own."""
        job = self.submit("wlb run -- sh -c '[ $SLURM_PROCID -gt 0 ] || srun --overlap --mpi=none -n2 -N2 sh -c "
                          "\"echo inner \\$RANK \\$SLURM_PROCID\"'", tasks=1)
        self.completed(job)
        self.assertEqual(sorted(line for line in self.cluster.output(job).splitlines() if line.startswith("inner")),
                         ["inner 0 0", "inner 0 1"])

    def launcher(self, name, line='echo launched $WLB_ATTEMPT $SLURM_PROCID "$@"'):
        path = self.cluster.work / name
        path.write_text(f"#!/bin/sh\n{line}\n{LINE}\n{WAIT}\n", encoding="utf-8")
        path.chmod(0o755)
        return f"./{name}"

    def launched(self, job):
        return sorted(line.split(maxsplit=3)[1:] for line in self.cluster.output(job).splitlines() if line.startswith("launched "))

    def test_a_launcher_gets_the_nodes_of_each_attempt(self):
        command = self.launcher("torchrun")
        job = self.cluster.sbatch(f"wlb run -- {command} --nnodes $SLURM_NNODES --rdzv-backend=c10d --rdzv-endpoint=n2:1 t.py "
                                  "--nnodes 3", "--wlb-layout=auto", "--no-kill", "--ntasks=3", nodes=3)
        self.wait_lines(job, 3)
        self.cluster.kill_node(3)
        try:
            found = self.completed(job)
        finally:
            self.cluster.restore_node(3)
        launched = self.launched(job)
        self.assertEqual([words[:2] for words in launched], [["1", "0"], ["1", "1"], ["1", "2"], ["2", "0"], ["2", "1"]])
        for attempt, rank, text in launched:
            nodes, port = {"1": 3, "2": 2}[attempt], found[int(attempt), int(rank)][1]["MASTER_PORT"]
            self.assertEqual(text, f"--rdzv_id={job}.{attempt} --nnodes {nodes} --rdzv-backend=c10d "
                                   f"--rdzv-endpoint=127.0.0.1:{port} t.py --nnodes 3")
            self.assertEqual([found[int(attempt), int(rank)][1][name] for name in PET_NAMES],
                             [str(nodes), rank, f"{job}.{attempt}", f"127.0.0.1:{port}", "127.0.0.1", port])
        self.assertRegex(self.cluster.output(job), rf"wlb: attempt 2 runs: {re.escape(command)} --rdzv_id={job}.2 --nnodes 2 ")

    def test_the_rank_of_a_node_in_an_option(self):
        command = self.launcher("accelerate")
        job = self.submit(f"wlb run -- env A=1 {command} launch --num_processes 4 --machine_rank 0 --main_process_ip n2 'a b.py'",
                          tasks=1)
        self.cluster.run("sed", "-i", "s/gt 1/gt 0/", command)
        found = self.completed(job)
        port = found[1, 0][1]["MASTER_PORT"]
        self.assertEqual([(rank, text) for _, rank, text in self.launched(job)],
                         [(str(rank), f"launch --machine_rank={rank} --num_machines=2 --main_process_port={port} "
                                      "--num_processes 4 --main_process_ip 127.0.0.1 a b.py") for rank in range(2)])

    def test_the_command_is_kept(self):
        command = self.launcher("torchrun")
        self.cluster.run("sed", "-i", "s/gt 1/gt 0/", command)
        job = self.submit(f"wlb run --keep-command -- {command} --nnodes=5 t.py", tasks=1)
        found = self.completed(job)
        self.assertEqual(self.launched(job), [["1", "0", "--nnodes=5 t.py"], ["1", "1", "--nnodes=5 t.py"]])
        self.assertEqual({values[name] for _, values in found.values() for name in PET_NAMES}, {"none"})

    def test_the_error_of_a_rank(self):
        """The exception's own line, from the lines of all ranks."""
        (self.cluster.work / "fails.py").write_text("import os, time\n"
                                                    "if os.environ['RANK'] == '2':\n"
                                                    "    raise ValueError('loss is nan')\n"
                                                    "time.sleep(60)\n", encoding="utf-8")
        job = self.submit("wlb run --max-restarts 0 -- python3 fails.py")
        self.assertEqual(self.cluster.wait_job(job), "FAILED", self.cluster.output(job))
        self.assertIn("wlb: attempt 1: the first error of its ranks: ValueError: loss is nan\n", self.cluster.output(job))

    def test_the_error_file_of_a_rank(self):
        """Where its lines are not on stderr."""
        path = self.cluster.work / "raises.sh"
        path.write_text('[ $RANK = 2 ] || sleep 60\n'
                        'echo "{\\"message\\":{\\"message\\":\\"ValueError: rank $RANK\\"}}" > $TORCHELASTIC_ERROR_FILE\n'
                        "exit 1\n", encoding="utf-8")
        job = self.submit("wlb run --max-restarts 0 -- sh raises.sh")
        self.assertEqual(self.cluster.wait_job(job), "FAILED", self.cluster.output(job))
        self.assertIn("wlb: attempt 1: the first error of its ranks: ValueError: rank 2\n", self.cluster.output(job))
        self.assertEqual(list((self.cluster.work / ".wlb").glob("error-*")), [])

    def test_what_cannot_be_served_is_refused(self):
        for command, tasks, why in (
                (f"{self.launcher('deepspeed')} t.py", 1, "deepspeed: it starts the other nodes by ssh"),
                (f"{self.launcher('torchrun')} --standalone t.py", 1, "torchrun --standalone: each node would train on its own"),
                (f"{self.launcher('torchrun')} t.py", 2, "torchrun: it starts the ranks of a node, and each of the 2 tasks")):
            with self.subTest(command=command, tasks=tasks):
                job = self.submit(f"wlb run -- {command}; echo code $?", tasks=tasks)
                self.completed(job)
                self.assertIn(why, self.cluster.output(job))
                self.assertIn("code 2\n", self.cluster.output(job))
                self.assertEqual(self.launched(job), [])


if __name__ == "__main__":
    main()
