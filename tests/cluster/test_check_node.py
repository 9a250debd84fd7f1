#!/usr/bin/env python3
"""`wlb check-node` as Slurm's prolog, as its HealthCheckProgram, and in a job: a node whose disk cannot be written to is drained
with the reason, and the others go on."""
import os
import shutil

import harness

WLB = harness.BUILD / "bin/wlb"
# The examples of wlb-check-node(1), with a folder for each node.
PROLOG = """#!/bin/sh
{wlb} check-node --seconds 0.3 --dir {work}/disk-$SLURMD_NODENAME
[ $? -ne 1 ]
"""
HEALTH = """#!/bin/sh
reason=$({wlb} check-node --only disk --dir {work}/disk-$SLURMD_NODENAME 2>&1 >/dev/null)
if [ $? -eq 1 ]; then
	SLURM_CONF={conf} {scontrol} update node="${{SLURMD_NODENAME:-$(hostname -s)}}" state=drain reason="$reason"
fi
"""


class CheckNodeTest(harness.ClusterTest):
    nodes = 2

    def setUp(self):
        for node in ("n1", "n2"):
            self.cluster.work.joinpath(f"disk-{node}").mkdir(exist_ok=True)

    def configure(self, name, text, *lines):
        """Writes a script for Slurm, and adds the lines to slurm.conf."""
        conf = self.cluster.dir / "etc/slurm.conf"
        script = self.cluster.dir / "etc" / name
        script.write_text(text.format(wlb=WLB, work=self.cluster.work, conf=conf, scontrol=shutil.which("scontrol")),
                          encoding="utf-8")
        script.chmod(0o755)
        with open(conf, "a", encoding="utf-8") as file:
            file.write("".join(line.format(script=script) + "\n" for line in lines))
        self.cluster.run("scontrol", "reconfigure")

    def node(self, name):
        return self.cluster.run("scontrol", "-o", "show", "node", name).stdout

    def drained(self, name):
        return harness.wait_for(f"{name} is drained", lambda: "DRAIN" in self.node(name) and self.node(name), 60)


class Prolog(CheckNodeTest):
    def test_prolog(self):
        self.configure("check_node_prolog", PROLOG, "Prolog={script}")
        self.assertEqual(self.cluster.wait_job(self.cluster.sbatch("true", "-wn2")), "COMPLETED")
        self.cluster.work.joinpath("disk-n2").rmdir()
        job = self.cluster.sbatch("echo has run", "-wn2")
        self.drained("n2")
        self.assertNotIn("has run", self.cluster.output(job))
        self.cluster.run("scancel", job)
        self.assertEqual(self.cluster.wait_job(self.cluster.sbatch("true")), "COMPLETED")
        self.assertNotIn("DRAIN", self.node("n1"))


class Health(CheckNodeTest):
    wlbd_conf = harness.WLBD_CONF + "job_poll_ms = 200\n"

    def drains(self):
        """node, whether it is drained, whether the times are in order, reason"""
        return self.cluster.sql("select node, ended_at is null, began_at <= coalesce(ended_at, now()), reason from node_drains "
                                "order by began_at")

    def test_health_check_program(self):
        self.cluster.sql("alter function wlb_nodes_drained rename to kept")  # what cannot be stored is stored later
        self.cluster.work.joinpath("disk-n2").rmdir()
        self.configure("check_node_health", HEALTH, "HealthCheckProgram={script}", "HealthCheckInterval=1")
        reason = self.drained("n2").split("Reason=")[1]
        self.assertIn(f"wlb check-node: disk {self.cluster.work}/disk-n2: no file can be made: No such file or directory", reason)
        self.assertNotIn("DRAIN", self.node("n1"))
        log = self.cluster.dir / "log/wlbd.out"
        harness.wait_for("a try to store it", lambda: "wlb_nodes_drained" in log.read_text(encoding="utf-8"), 10)
        self.assertEqual(self.drains(), [])
        self.cluster.sql("alter function kept rename to wlb_nodes_drained")
        harness.wait_for("the drain is stored", self.drains, 10)
        (node, is_open, in_order, stored), = self.drains()
        self.assertEqual((node, is_open, in_order), ("n2", "t", "t"))
        self.assertIn(stored, reason)
        self.assertIn("no file can be made", stored)
        self.cluster.work.joinpath("disk-n2").mkdir()
        self.cluster.run("scontrol", "update", "node=n2", "state=resume")
        harness.wait_for("its end is stored", lambda: self.drains()[0][:3] == ["n2", "f", "t"], 10)
        self.cluster.sql("select wlb_nodes_drained(case when n % 2 = 1 then '{\"n9\": {\"reason\": \"\", \"at\": 0}}' "
                         "else '{}' end::jsonb) from generate_series(1, 301) as n")
        drains = self.drains()
        self.assertEqual((len(drains), drains[0][0], [drain[1] for drain in drains].count("t")), (101, "n2", 1))


class Job(CheckNodeTest):
    def test_link_between_two_nodes(self):
        job = self.cluster.sbatch(
            "export WLB_CHECK_NODE_TOKEN=0123456789abcdef0123\n"
            f"srun -N1 -n1 -w n1 {WLB} check-node --serve 0 --seconds 30 > served &\n"
            "until port=$(sed -n 's/serving at port \\([0-9]*\\) .*/\\1/p' served) && [ -n \"$port\" ]; do sleep 0.1; done\n"
            f"srun -N1 -n1 -w n2 {WLB} check-node --only links --peer localhost:$port --link-gbit-per-s 0.01 && wait",
            nodes=2)
        self.assertEqual(self.cluster.wait_job(job), "COMPLETED", self.cluster.output(job))
        self.assertRegex(self.cluster.output(job), r"link localhost:\d+ +ok +\S+ Gbit/s to it, .*; limit: 0.01 Gbit/s")

    def test_without_mpi(self):
        """Neither the launcher's variables nor its libraries are needed; MUNGE's is that of --report."""
        libraries = self.cluster.run("ldd", harness.BUILD / "bin/wlb-check-node").stdout
        self.assertNotRegex(libraries, "libmpi|libpmix|libslurm")
        self.assertEqual(self.cluster.run(WLB, "check-node", "--seconds", "0.2", env={"PATH": os.defpath}).returncode, 0)


if __name__ == "__main__":
    harness.main()
