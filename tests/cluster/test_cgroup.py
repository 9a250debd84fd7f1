#!/usr/bin/env python3
"""ProctrackType=proctrack/cgroup with cgroup/v2: wlb-agent is in a cgroup of its step there. Slurm kills what is in it once
the step's tasks have ended, or waits until it is empty."""
import os
import pathlib
import re
import unittest
import uuid

import harness
import test_agent
from harness import clock_s, wait_for


class CgroupTest(test_agent.AgentTest):
    cgroup = True

    @classmethod
    def setUpClass(cls):
        try:
            super().setUpClass()
        except harness.Failed as error:
            if "--cgroup: this" not in str(error):
                raise
            raise unittest.SkipTest(str(error).strip()) from None
        slurmd = (cls.cluster.dir / "run" / "slurmd-n1.pid").read_text(encoding="utf-8").split()[0]
        cls.folder = pathlib.Path(f"/proc/{slurmd}/root{cls.cluster.dir}/cgroup")  # in its namespace

    @classmethod
    def node_states(cls):
        """A node that Slurm has drained is "drained" or "draining"."""
        return set(cls.cluster.run("sinfo", "-h", "-N", "-o", "%T").stdout.split())

    def check_no_trace(self):
        """Slurm has removed the cgroups of the jobs, and drained no node."""
        wait_for("idle nodes", lambda: self.node_states() == {"idle"}, 20)
        wait_for("removal of the jobs' cgroups", lambda: not list(self.folder.glob("system.slice/*/job_*")), 10)
        self.check_nothing_left()

    def let_agents_delay(self):
        """They report as those of a step of 65,533 nodes: after up to 6.5 s."""
        agent = harness.BUILD / "libexec" / "wlb" / "wlb-agent"
        wrapper = self.cluster.work / "agent"
        wrapper.write_text("#!/bin/bash\nargs=(\"$@\")\nfor i in \"${!args[@]}\"; do\n"
                           "\t[[ ${args[i]} != --nodes ]] || args[i + 1]=65533\ndone\n"
                           f"exec {agent} \"${{args[@]}}\"\n", encoding="utf-8")
        wrapper.chmod(0o755)
        self.set_agent(wrapper)


class Cgroup(CgroupTest):
    def test_a_killed_rank(self):
        """The last of its node: its agent reports before Slurm kills it."""
        self.let_agents_delay()
        tap = self.tap()
        job = self.sleep(2061, tasks=1)
        agent = next(iter(self.cluster.processes(test_agent.AGENT)))
        self.assertIn("/step_0/slurm", pathlib.Path(f"/proc/{agent}/cgroup").read_text(encoding="utf-8"))
        began = clock_s()
        os.kill(self.ranks(2061)[1], 9)
        self.check_noticed(job, began, ("rank_lost", "n2", "1"))
        told = [(end["rank"], end["code"]) for report in tap.reports() if report.get("node") == "n2" and report["goodbye"]
                for end in report["exits"]]
        self.assertEqual(told, [(1, 137)])
        self.assertEqual(self.cluster.wait_job(job), "COMPLETED", self.cluster.output(job))
        self.check_no_trace()

    def test_steps_end_at_once_without_wlbd(self):
        self.cluster.verb("kill-wlbd")
        self.addCleanup(self.cluster.verb, "start-wlbd")
        variables = {"WLB_TP": "1", "WLB_CP": "1", "WLB_PP": "1", "WLB_DP": "3", "WLB_ATTEMPT_ID": str(uuid.uuid4())}
        began = clock_s()
        out = self.cluster.run("srun", "--wlb-layout=auto", "-N3", "-n3", "sh", "-c", "echo $WLB_NODE_PAGE", env=variables)
        self.assertEqual(len(re.findall(r"^/proc/\d+/fd/\d+$", out.stdout, re.M)), 3, out)
        self.assertLess(clock_s() - began, 5)
        self.check_no_trace()


if __name__ == "__main__":
    harness.main()
