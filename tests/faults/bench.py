"""Clusters for case after case: one is kept while it is as it was at first."""
import atexit
import json
import shutil

import harness
import leftovers
from case import Case, Result
from kinds import NODES
from trainers import TRAINERS


class Bench:
    def __init__(self, on_failure):
        """on_failure(case) is called while the cluster of a case that failed is still there."""
        self.on_failure = on_failure
        self.cluster = None
        self.ended = False
        atexit.register(self.end)

    def try_case(self, kind, trainer, places):
        """Returns the case's Result."""
        try:
            if self.cluster is None:
                self.open()
        except harness.Failed as error:
            self.close()
            return Result(kind.name, trainer, problems=[str(error)])
        case = Case(self.cluster, kind, TRAINERS[trainer](self.cluster), places)
        result = case.conduct()
        if not result.passed:
            self.on_failure(case)
        if not result.passed or leftovers.ill_nodes(self.cluster):
            self.close()
        return result

    def open(self):
        self.cluster = harness.Cluster(NODES)
        if self.ended:
            raise harness.Failed("no more clusters are wanted")
        self.cluster.start()
        for made in TRAINERS.values():
            made(self.cluster).prepare()

    def end(self):
        """At exit, perhaps in the middle of a case of another thread."""
        self.ended = True
        self.close()

    def close(self):
        cluster, self.cluster = self.cluster, None
        if cluster:
            cluster.stop()


def keep_nothing(_case):
    """For who looks at the table only."""


def show_logs(case):
    case.cluster.show_logs()


def keep_logs(folder, case):
    """What the cluster and the run said, in a folder of its own."""
    cluster, target = case.cluster, folder / f"{case.kind.name} {case.trainer.name}".replace(" ", "-")
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(cluster.dir / "log", target)
    shown = cluster.run("wlb", "show", case.job, check=False) if case.job else None
    for name, text in (("run.json", json.dumps(case.run, indent=1)), ("job.out", cluster.output(case.job)),
                       ("show.txt", shown.stdout + shown.stderr if shown else ""),
                       ("problems.txt", "\n".join(case.result.problems) + "\n")):
        (target / name).write_text(text, encoding="utf-8")
