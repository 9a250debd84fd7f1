"""Runs cases one after the other on a private cluster, which is replaced after a case that failed or left a node down."""
import atexit
import json
import shutil
import time

import harness
import leftovers
from case import Case, Result
from kinds import NODES
from trainers import TRAINERS


# wlbd takes a launcher that has reported the end of an attempt for killed only where it has itself recorded for 5 s before
# the end of the job (coordinator/wlbd/rules/job_end.h).
WLBD_RECORDS_S = 6


class CaseRunner:
    def __init__(self, on_failure):
        """on_failure(case) is called while the cluster of a case that failed is still there."""
        self.on_failure = on_failure
        self.cluster, self.link_mbit = None, 0
        self.ended = False
        atexit.register(self.end)

    def run_case(self, kind, trainer, places, layout="auto", link_mbit=0, options=()):
        """Returns the case's Result. link_mbit: see harness.Cluster; options: more of sbatch."""
        try:
            if self.cluster is None or self.link_mbit != link_mbit:
                self.close()
                self.open(link_mbit)
        except harness.Failed as error:
            self.close()
            return Result(kind.name, trainer, problems=[str(error)])
        case = Case(self.cluster, kind, TRAINERS[trainer](self.cluster), places, layout, options)
        result = case.execute()
        if not result.passed:
            self.on_failure(case)
        if not result.passed or leftovers.ill_nodes(self.cluster):
            self.close()
        return result

    def open(self, link_mbit):
        self.cluster, self.link_mbit = harness.Cluster(NODES, link_mbit=link_mbit), link_mbit
        if self.ended:
            raise harness.Failed("the test program is ending: no cluster is started")
        self.cluster.start()
        for made in TRAINERS.values():
            made(self.cluster).prepare()
        time.sleep(WLBD_RECORDS_S)

    def end(self):
        """Called at exit, also while another thread runs a case."""
        self.ended = True
        self.close()

    def close(self):
        cluster, self.cluster = self.cluster, None
        if cluster:
            cluster.stop()


def keep_nothing(_case):
    """Keeps no logs: the table is all that is printed."""


def show_logs(case):
    case.cluster.show_logs()


def keep_logs(folder, case):
    """Copies the logs of the cluster and the output of the run into a folder of their own."""
    cluster, target = case.cluster, folder / f"{case.kind.name} {case.trainer.name}".replace(" ", "-")
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(cluster.dir / "log", target)
    shown = cluster.run("wlb", "show", case.job, check=False) if case.job else None
    for name, text in (("run.json", json.dumps(case.run, indent=1)), ("job.out", cluster.output(case.job)),
                       ("show.txt", shown.stdout + shown.stderr if shown else ""),
                       ("problems.txt", "\n".join(case.result.problems) + "\n")):
        (target / name).write_text(text, encoding="utf-8")
