"""A private Slurm cluster for a measurement: jobs of `wlb run`, and how long they took."""
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]


class PrivateCluster:
    def __init__(self, build, folder):
        self.build, self.work, self.dir = build, folder / "work", folder / "c"
        folder.chmod(0o755)  # PostgreSQL runs as an account of its own
        self.work.mkdir()
        self.env = {**os.environ, "XDG_STATE_HOME": str(folder / "state")}

    def verb(self, *words):
        return subprocess.run([ROOT / "scripts/cluster", *words, "--dir", self.dir], check=True, capture_output=True,
                              text=True, timeout=120).stdout

    def start(self, nodes):
        self.verb("start", "--nodes", str(nodes), "--build", str(self.build))
        text = subprocess.run(["bash", "-c", f'eval "$({ROOT}/scripts/cluster env --dir {self.dir})"; env -0'], check=True,
                              capture_output=True, text=True).stdout
        self.env.update(line.split("=", 1) for line in text.split("\0") if "=" in line and
                        not line.startswith("XDG_STATE_HOME="))

    def stop_coordinator(self):
        """With its database."""
        self.verb("kill-wlbd")
        self.verb("stop-db")

    def start_coordinator(self):
        self.verb("start-db")
        self.verb("start-wlbd")

    def run(self, *command, check=True):
        return subprocess.run(command, cwd=self.work, env=self.env, check=check, capture_output=True, text=True,
                              timeout=120).stdout

    def job(self, command, nodes):
        """Submits a job and waits for its end; returns its id and the seconds that `wlb run` took."""
        script = self.work / "job.sh"
        script.write_text(f"#!/bin/bash\nbegin=$(date +%s%N)\nwlb run -- {command}\n"
                          "echo took $(($(date +%s%N) - begin))\n", encoding="utf-8")
        output = self.run("sbatch", "-W", "--parsable", "--wlb-layout=auto", "--no-kill", "--ntasks-per-node=1", f"-N{nodes}",
                          "-o", "%j.out", script)
        job = output.split()[0]
        lines = (self.work / f"{job}.out").read_text(encoding="utf-8").splitlines()
        took = [line.split()[1] for line in lines if line.startswith("took ")]
        if not took:
            sys.exit(f"{pathlib.Path(sys.argv[0]).name}: job {job} failed: {lines}")
        return job, int(took[0]) / 1e9
