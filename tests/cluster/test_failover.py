#!/usr/bin/env python3
"""A second slurmctld takes over while a job trains: the run notices nothing, and a fault after that is handled as any other."""
import os
import pathlib
import shutil
import subprocess
import unittest

import harness
import test_time_limit
from harness import wait_for

ITERATIONS = 150
HOSTS = {"primary": "127.0.0.1", "backup": "127.0.0.2"}


@unittest.skipUnless(os.geteuid() == 0, "a host name of one's own needs root")
class Failover(test_time_limit.StopTest):
    nodes = 3

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        path = cls.cluster.dir / "etc/slurm.conf"
        lines = path.read_text(encoding="utf-8").splitlines()
        at = next(i for i, line in enumerate(lines) if line.startswith("SlurmctldHost="))
        lines[at:at + 1] = [f"SlurmctldHost={name}({address})" for name, address in HOSTS.items()]
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
        cls.cluster.verb("kill-service", "slurmctld")
        cls.controllers = {name: cls.start(name) for name in HOSTS}
        wait_for("both controllers", lambda: cls.ping().count("is UP") == 2, 30)
        cls.cluster.run("scontrol", "reconfigure")
        cls.cluster.restart_wlbd()

    @classmethod
    def start(cls, name):
        """A slurmctld on a host of that name."""
        program = shutil.which("slurmctld", path=cls.cluster.env["PATH"] + ":/usr/sbin")
        log = pathlib.Path(cls.cluster.dir / f"log/{name}.log").open("w", encoding="utf-8")
        names = cls.cluster.home / "hosts"
        names.write_text("127.0.0.1 localhost\n" + "".join(f"{each} {host}\n" for host, each in HOSTS.items()), encoding="utf-8")
        pid, own_pid = cls.cluster.dir / "slurm/slurmctld.pid", cls.cluster.home / f"{name}.pid"
        pid.touch()
        own_pid.touch()
        process = subprocess.Popen(["unshare", "--uts", "--mount", "sh", "-c", f"mount --bind {names} /etc/hosts && "
                                    f"mount --bind {own_pid} {pid} && hostname {name} && exec {program} -D"],
                                   env=cls.cluster.env, stdout=log, stderr=log)
        log.close()
        cls.addClassCleanup(process.wait)
        cls.addClassCleanup(process.kill)
        return process

    @classmethod
    def ping(cls):
        return cls.cluster.run("scontrol", "ping", check=False).stdout

    def test_backup_takes_over(self):
        job = self.submit_slow("", "--requeue", iterations=ITERATIONS, nodes=3, ranks=3, layout="pp=1")
        self.wait_step(job, 4)
        self.cluster.wait_saved(job)
        started = len(self.cluster.show(job)["attempts"])  # 2 where Slurm ended the first, whose ranks did not find each other
        self.controllers["primary"].kill()
        wait_for("the backup", lambda: "(backup) at backup is UP" in (text := self.ping()) and "primary is DOWN" in text, 30)
        wait_for("a job of the backup", lambda: self.cluster.run("squeue", "-h", check=False).returncode == 0, 60)
        run = self.cluster.show(job)
        self.assertEqual((run["state"], run["faults"], len(run["attempts"])), ("running", [], started))
        self.cluster.kill_node(3)
        run = self.finish(job)
        self.assertEqual((run["state"], [attempt["nodes"] for attempt in run["attempts"][started - 1:]]),
                         ("complete", [["n1", "n2", "n3"], ["n1", "n2"]]))
        self.assertEqual([(fault["kind"], fault["node"]) for fault in run["faults"] if fault["cause"]], [("node_lost", "n3")])
        self.check_losses(run, ITERATIONS)


if __name__ == "__main__":
    harness.main()
