#!/usr/bin/env python3
"""wlb doctor: that it finds what would stop a run, on a cluster where that was broken, and names the remedy."""
import json
import os
import pathlib
import shutil
import tempfile
import unittest

import harness
from harness import ClusterTest, main


class DoctorTest(ClusterTest):
    nodes = 2

    def findings(self, *options, env=None, program="wlb"):
        """{check: (finding, detail, remedy)}. The exit code must say whether one would stop a run."""
        result = self.cluster.run(program, "doctor", "--json", *options, check=False, env=env)
        findings = json.loads(result.stdout)
        found = {finding["check"]: (finding["finding"], finding["detail"], finding["remedy"]) for finding in findings}
        self.assertEqual(len(found), len(findings), findings)
        self.assertEqual(result.returncode, 1 if "FAIL" in {word for word, _, _ in found.values()} else 0, found)
        return found

    def check(self, found, check, finding, detail="", remedy=""):
        """Whether a check has this finding, and its texts contain these."""
        self.assertEqual(found[check][0], finding, found)
        self.assertIn(detail, found[check][1])
        self.assertIn(remedy, found[check][2])
        if finding in ("ok", "info"):
            self.assertEqual(found[check][2], "")

    def folder(self):
        path = pathlib.Path(tempfile.mkdtemp(dir=self.cluster.work))
        self.addCleanup(shutil.rmtree, path)
        return path

    def path_with(self, **scripts):
        """A PATH whose first folder has these shell scripts."""
        folder = self.folder()
        for name, text in scripts.items():
            program = folder / name.replace("_to_", "-")
            program.write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
            program.chmod(0o755)
        return f"{folder}:{self.cluster.env['PATH']}"

    def changed_conf(self, key, value):
        """A slurm.conf like the cluster's but for one line; for clients alone."""
        conf = self.folder() / "slurm.conf"
        lines = (self.cluster.dir / "etc/slurm.conf").read_text(encoding="utf-8").splitlines()
        conf.write_text("\n".join([line for line in lines if not line.startswith(f"{key}=")] + [f"{key}={value}", ""]),
                        encoding="utf-8")
        return str(conf)


class Host(DoctorTest):
    def test_where_nothing_is_wrong(self):
        found = self.findings()
        for check in ("munge", "version", "slurm", "plugin", "pmix", "fence", "lost nodes", "coordinator", "database", "credential",
                      "worker", "mpi", "save directory"):
            self.check(found, check, "ok")
        self.check(found, "slurm", "ok", "2 nodes")
        self.check(found, "fence", "ok", "PMIxCollFence=ring")
        self.check(found, "two nodes", "ok")
        self.check(self.findings(env={"SLURM_JOB_NODELIST": "n[1-2]"}), "two nodes", "ok")
        self.check(self.findings(env={"SLURM_JOB_NODELIST": "n[1-4]"}), "two nodes", "warn", "these 4 nodes", "unset SLURM_JOB_NODELIST")

    def test_without_a_cluster(self):
        found = self.findings(env={"SLURM_CONF": "/nowhere", "WLB_MUNGE_SOCKET": "/nowhere", "WLB_COORDINATOR": "x:y"})
        self.check(found, "munge", "FAIL", "/nowhere", "systemctl start munge")
        self.check(found, "slurm", "FAIL")
        self.check(found, "coordinator", "FAIL", "x:y")
        self.assertNotIn("plugin", found)  # what needs Slurm is not asked: each command would wait for a minute

    def test_a_configuration_with_which_libslurm_ends_the_process(self):
        conf = self.folder() / "slurm.conf"
        conf.write_text("ClusterName=x\nNonsense=3\n", encoding="utf-8")
        found = self.findings(env={"SLURM_CONF": str(conf)})
        self.check(found, "slurm", "FAIL", "unrecognized key: Nonsense", "set SLURM_CONF")
        self.assertNotIn("plugin", found)
        self.check(found, "coordinator", "ok")
        self.check(found, "mpi", "ok")

    @unittest.skipIf(pathlib.Path("/etc/slurm/slurm.conf").exists(), "this host has a slurm.conf")
    def test_without_a_configuration(self):
        self.addCleanup(self.cluster.env.update, SLURM_CONF=self.cluster.env.pop("SLURM_CONF"))
        self.check(self.findings(), "slurm", "FAIL", "configuration source", "/etc/slurm/slurm.conf")

    def test_programs_that_are_not_installed(self):
        wlb = self.cluster.run("which", "wlb").stdout.strip()
        found = self.findings(program=wlb, env={"PATH": "/nowhere"})
        self.check(found, "slurm", "ok")  # libslurm needs no command
        self.check(found, "version", "FAIL", "sinfo cannot be run", "correct PATH")
        self.check(found, "plugin", "FAIL", "srun cannot be run", "correct PATH")
        self.check(found, "pmix", "FAIL", remedy="mpi_pmix")
        self.check(found, "fence", "warn", "cannot be read")
        self.check(found, "lost nodes", "warn", "cannot be read")
        self.check(found, "worker", "ok")  # beside wlb
        self.check(found, "mpi", "warn", remedy="openmpi-bin")
        alone = self.folder() / "wlb"
        shutil.copy(wlb, alone)
        self.check(self.findings(program=alone, env={"PATH": "/nowhere"}), "worker", "warn", "not found", "PATH")

    def test_programs_that_do_not_run(self):
        """In their place are scripts that print what the programs do then."""
        path = self.path_with(wlb_to_worker="echo 'wlb-worker: error while loading shared libraries: libx.so.1' >&2; exit 127",
                              sinfo="echo slurm 99.05.1")
        found = self.findings(env={"PATH": path})
        self.check(found, "version", "FAIL", "slurm 99.05.1, but WLB was built for", "this Slurm series")
        self.check(found, "worker", "ok")  # 127: as if it were not there; the one beside wlb runs
        path = self.path_with(wlb_to_worker="echo 'its library is too old'; echo more; exit 3")
        self.check(self.findings(env={"PATH": path}), "worker", "FAIL", "does not run: its library is too old")

    def test_a_program_that_hangs_or_prints_much(self):
        """It is killed after 10 s, and what is too long is left out."""
        path = self.path_with(ompi_info="echo $$ > hung; exec sleep 1000", sinfo="yes slurm | head -c 100000; exit 1")
        found = self.findings(env={"PATH": path})
        self.check(found, "mpi", "warn", "cannot be run")
        self.check(found, "version", "FAIL", "cannot be run")
        self.assertFalse(pathlib.Path("/proc", (self.cluster.work / "hung").read_text(encoding="ascii").strip()).exists())

    def test_a_folder_for_checkpoints(self):
        found = self.findings("--save-dir", "/proc")
        self.check(found, "save directory", "FAIL", "/proc: nothing can be written there", "--save-dir DIR")
        folder = self.folder()
        self.check(self.findings("--save-dir", folder), "save directory", "ok", str(folder))
        self.assertEqual(os.listdir(folder), [])


class Client(DoctorTest):
    """A cluster that is right, and a host whose Slurm configuration is not."""

    def test_the_plugin_is_not_configured(self):
        plugstack = self.folder() / "plugstack.conf"
        plugstack.write_text("", encoding="utf-8")
        found = self.findings(env={"SLURM_CONF": self.changed_conf("PlugStackConfig", plugstack)})
        self.check(found, "plugin", "FAIL", "srun does not know --wlb-layout", "plugstack.conf beside slurm.conf")
        self.check(found, "pmix", "ok")

    def test_the_plugin_cannot_be_loaded(self):
        plugstack = self.folder() / "plugstack.conf"
        plugstack.write_text("required /nowhere/spank_wlb.so\n", encoding="utf-8")
        found = self.findings(env={"SLURM_CONF": self.changed_conf("PlugStackConfig", plugstack)})
        self.check(found, "plugin", "FAIL", "spank_wlb.so", "plugstack.conf beside slurm.conf")

    def findings_with_plugin(self, before, after):
        """With a copy of the plugin in which these bytes, which occur once, are others."""
        whole = pathlib.Path(harness.BUILD, "lib/spank_wlb.so").read_bytes()
        self.assertEqual(whole.count(before), 1)
        plugin = self.folder() / "spank_wlb.so"
        plugin.write_bytes(whole.replace(before, after))
        plugstack = plugin.with_name("plugstack.conf")
        plugstack.write_text(f"optional {plugin}\n", encoding="utf-8")
        return self.findings(env={"SLURM_CONF": self.changed_conf("PlugStackConfig", plugstack)})

    def test_a_plugin_of_another_release_of_slurm(self):
        running = int("".join(f"{int(part):02x}" for part in self.cluster.run("srun", "--version").stdout.split()[1].split(".")), 16)
        found = self.findings_with_plugin(*(b"\x01\0\0\0" + number.to_bytes(4, "little") for number in (running, 0x170b00)))
        self.check(found, "plugin", "FAIL", "another Slurm release", "built for this Slurm series")
        self.check(found, "coordinator", "ok")

    def test_a_plugin_of_another_version(self):
        version = self.cluster.run("wlb", "--version").stdout.split()[1]
        self.check(self.findings(), "plugin", "ok", f"wlb-{version}")
        found = self.findings_with_plugin(f"under wlb-{version}:".encode(), f"under wlb-{version[:-1]}9:".encode())
        self.check(found, "plugin", "warn", f"version {version[:-1]}9, this is {version}", "same version everywhere")

    def test_a_password_that_others_can_read(self):
        conf = self.folder() / "wlbd.conf"
        conf.write_text("database = host=db password=x\n", encoding="utf-8")
        for mode, finding in ((0o600, "ok"), (0o644, "warn")):
            conf.chmod(mode)
            self.check(self.findings(env={"WLBD_CONF": str(conf)}), "wlbd.conf", finding)
        passwords = conf.with_name("pgpass")
        passwords.write_text("*:*:*:*:x\n", encoding="utf-8")
        conf.write_text(f"database = host=db passfile={passwords}\n", encoding="utf-8")
        for mode, finding in ((0o600, "ok"), (0o640, "warn")):
            passwords.chmod(mode)
            self.check(self.findings(env={"WLBD_CONF": str(conf)}), "wlbd.conf", finding)

    def test_slurm_without_pmix(self):
        config = self.cluster.run("scontrol", "show", "config").stdout
        plugins = pathlib.Path(next(line.split("=")[1].strip() for line in config.splitlines() if line.startswith("PluginDir")))
        folder = self.folder()
        for plugin in plugins.glob("*.so"):
            if not plugin.name.startswith("mpi_pmix"):
                (folder / plugin.name).symlink_to(plugin)
        found = self.findings(env={"SLURM_CONF": self.changed_conf("PluginDir", folder)})
        self.check(found, "pmix", "FAIL", "no pmix", "mpi_pmix")
        self.check(found, "plugin", "ok")


class Services(DoctorTest):
    def test_the_coordinator_is_away(self):
        self.cluster.verb("kill-wlbd")
        self.addCleanup(self.cluster.verb, "start-wlbd")
        self.check(self.findings(), "coordinator", "FAIL", "Connection refused", "systemctl start wlbd")
        self.assertRegex(self.cluster.run("wlb", "doctor", check=False).stdout, r"FAIL +coordinator .*systemctl start wlbd")

    def test_the_database_is_away(self):
        self.cluster.verb("stop-db")
        self.addCleanup(self.cluster.verb, "start-db")
        found = harness.wait_for("wlbd to lose its database", self.findings_without_database, 20)
        self.check(found, "coordinator", "ok")
        self.check(found, "database", "FAIL", remedy="start PostgreSQL")

    def findings_without_database(self):
        found = self.findings()
        return found if found["database"][0] != "ok" else None

    def test_nodes_that_are_down(self):
        self.addCleanup(self.cluster.run, "scontrol", "update", "nodename=n[1-2]", "state=resume")
        self.cluster.run("scontrol", "update", "nodename=n2", "state=down", "reason=test")
        self.check(self.findings(), "slurm", "warn", "1 of 2 nodes are down", "sinfo -R")
        self.cluster.run("scontrol", "update", "nodename=n1", "state=down", "reason=test")
        self.check(self.findings(), "slurm", "FAIL", "2 of 2 nodes are down", "sinfo -R")

    def test_slurmctld_is_away(self):
        self.cluster.verb("kill-service", "slurmctld")
        self.addCleanup(self.cluster.verb, "start-service", "slurmctld")
        found = self.findings()
        self.check(found, "slurm", "FAIL", remedy="scontrol ping")
        self.check(found, "fence", "warn", "cannot be read", "scontrol show config")
        self.check(found, "coordinator", "ok")


class Settings(DoctorTest):
    """Of Slurm, which tells them."""

    def restart_slurmctld(self):
        self.cluster.verb("kill-service", "slurmctld")
        self.cluster.verb("start-service", "slurmctld")

    def test_nodes_that_stay_down(self):
        conf = self.cluster.dir / "etc/slurm.conf"
        text = conf.read_text(encoding="utf-8")
        for value in (0, 1):
            conf.write_text(text.replace("ReturnToService=2", f"ReturnToService={value}"), encoding="utf-8")
            self.cluster.run("scontrol", "reconfigure")
            self.check(self.findings(), "lost nodes", "warn", f"ReturnToService is {value}: ", "state=resume")
        conf.write_text(text, encoding="utf-8")
        self.cluster.run("scontrol", "reconfigure")
        self.check(self.findings(), "lost nodes", "ok")

    def test_a_cluster_without_the_ring(self):
        (self.cluster.dir / "etc/mpi.conf").write_text("PMIxTimeout=10\n", encoding="utf-8")
        self.restart_slurmctld()
        self.check(self.findings(), "fence", "warn", "a plain srun does not", "PMIxCollFence=ring")
        self.check(self.findings(env={"SLURM_PMIX_FENCE": "ring"}), "fence", "ok", "is set here")
        with open(self.cluster.dir / "etc/slurm.conf", "a", encoding="utf-8") as conf:
            conf.write("TreeWidth=2\n")
        self.restart_slurmctld()
        self.check(self.findings(), "fence", "ok", "TreeWidth is 2")


if __name__ == "__main__":
    main()
