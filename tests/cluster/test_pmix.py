#!/usr/bin/env python3
"""PMIx in steps of two of a job's four nodes, whose first messages to each other cross: docs/slurm-versions.md says why
Slurm's plugin then hangs, and `wlb run` does not."""
from harness import BUILD, ClusterTest, main

# All ranks enter their first fence at the same moment, a second after this line of the script was read.
FENCES = f'{BUILD}/tests/pmix_fences 3 "$(date -d "+1 second" +%s.%N)"'


# wlbd takes the nodes of the first switch, and holds the others back.
TOPOLOGY = """SwitchName=first Nodes=n[2,4]
SwitchName=second Nodes=n[1,3]
SwitchName=top Switches=first,second
"""
OPTIONS = ("--wlb-layout=auto", "--wlb-spares=2", "--ntasks-per-node=1")


class TwoNodes(ClusterTest):
    nodes = 4
    topology = TOPOLOGY

    def runs(self, script, count=1):
        """Submits a job on all nodes, in which `wlb run` is called `count` times; returns its output and its runs."""
        job = self.cluster.sbatch(script, *OPTIONS, nodes=4)
        self.cluster.wait_job(job)
        runs = [self.cluster.show(f"{job}.{i}" if i > 1 else job) for i in range(1, count + 1)]
        self.assertEqual([run["attempts"][0]["nodes"] for run in runs], [["n2", "n4"]] * count)
        return self.cluster.output(job), runs

    def test_messages_that_cross(self):
        output, runs = self.runs(f"for ((i = 0; i < 6; i++)); do wlb run -- {FENCES}; done", count=6)
        self.assertEqual([(run["state"], len(run["attempts"])) for run in runs], [("complete", 1)] * 6, output)
        self.assertEqual(output.count("3 fences in "), 6, output)

    def test_the_nodes_that_a_task_is_told(self):
        output, _ = self.runs("printenv SLURM_JOB_NODELIST\nwlb run -- printenv SLURM_JOB_NODELIST")
        self.assertEqual([line for line in output.splitlines() if line.startswith("n")], ["n[1-4]", "n[2,4]", "n[2,4]"], output)

    def test_a_fence_that_pmix_gives_up(self):
        """With the job's nodes in the variable it hangs where messages cross, as they mostly do: the attempt names the fence
        and its nodes, and no rank is at fault."""
        for _ in range(5):
            output, (run,) = self.runs(f"wlb run --max-restarts 0 --srun-args --export=ALL,SLURM_JOB_NODELIST=n[1-4] -- {FENCES}")
            attempt = run["attempts"][0]
            if attempt["state"] != "complete":
                break
        self.assertEqual(attempt["state"], "failed", output)
        # The first node that gives up ends the step, so that the other may not come to it.
        self.assertRegex(attempt["reason"], r"^the Slurm step did not start: a PMIx fence was ended by PMIxTimeout on (n2|n4|n\[2,4\])$")
        self.assertEqual((run["faults"], attempt["exit_code"]), ([], 75))


if __name__ == "__main__":
    main()
