"""Clusters for case after case: one is kept while it is as it was at first."""
import json
import pathlib
import shutil

import harness
import leftovers
from case import Case
from kinds import NODES
from trainers import TRAINERS


class Bench:
    def __init__(self, logs=None):
        """logs: a folder for what the cluster and the run said in a case that failed."""
        self.logs = pathlib.Path(logs) if logs else None
        self.cluster = None

    def try_case(self, kind, trainer, places):
        """Returns the case's Result."""
        if self.cluster is None:
            self.cluster = harness.Cluster(NODES)
            self.cluster.start()
            for made in TRAINERS.values():
                made(self.cluster).prepare()
        case = Case(self.cluster, kind, TRAINERS[trainer](self.cluster), places)
        result = case.conduct()
        if not result.passed and self.logs:
            self.keep_logs(case)
        if not result.passed or leftovers.ill_nodes(self.cluster):
            self.close()
        return result

    def keep_logs(self, case):
        target = self.logs / f"{case.kind.name} {case.trainer.name}".replace(" ", "-")
        shutil.rmtree(target, ignore_errors=True)
        shutil.copytree(self.cluster.dir / "log", target)
        (target / "run.json").write_text(json.dumps(case.run, indent=1), encoding="utf-8")
        (target / "job.out").write_text(self.cluster.output(case.job), encoding="utf-8")
        shown = self.cluster.run("wlb", "show", case.job, check=False)
        (target / "show.txt").write_text(shown.stdout + shown.stderr, encoding="utf-8")
        (target / "problems.txt").write_text("\n".join(case.result.problems) + "\n", encoding="utf-8")

    def close(self):
        if self.cluster:
            self.cluster.stop()
        self.cluster = None
