#!/usr/bin/env python3
"""`wlb run --on-rank-exit=continue`: the death of a rank is recorded and ends nothing, as long as enough nodes are left."""
from harness import ClusterTest, main, wait_for

# Each task writes when it began; a rank named in the file `die` exits with 3; all end well once there is a file `end`.
TRAINER = """echo began $SLURM_PROCID
while [ ! -e end ]; do
	case " $(cat die 2> /dev/null) " in *" $SLURM_PROCID "*) exit 3 ;; esac
	sleep 0.2
done
"""


class OnRankExit(ClusterTest):
    nodes = 3

    def setUp(self):
        for name in ("die", "end"):
            (self.cluster.work / name).unlink(missing_ok=True)
        (self.cluster.work / "train.sh").write_text(TRAINER, encoding="utf-8")

    def submit(self, *options):
        job = self.cluster.sbatch("wlb run --on-rank-exit=continue -- bash train.sh", "--wlb-layout=auto", "--no-kill",
                                  "--ntasks-per-node=2", *options, nodes=3)
        wait_for("all tasks", lambda: self.cluster.output(job).count("began") == 6, 60)
        return job

    def die(self, *ranks):
        (self.cluster.work / "die").write_text(" ".join(map(str, ranks)), encoding="utf-8")

    def faults(self, job):
        return {(fault["kind"], fault["rank"], fault["node"]) for fault in self.cluster.show(job)["faults"]}

    def wait_faults(self, job, *faults):
        wait_for(f"{faults}", lambda: self.faults(job) >= set(faults), 60)

    def end(self, job):
        (self.cluster.work / "end").touch()
        state = self.cluster.wait_job(job)
        return state, wait_for("the end of the run", lambda: (run := self.cluster.show(job))["ended_at"] and run, 60)

    def test_each_death_is_recorded_and_the_others_go_on(self):
        job = self.submit()
        self.die(1)
        self.wait_faults(job, ("rank_lost", 1, "n1"))
        self.cluster.restart_wlbd()
        self.die(1, 4)
        self.wait_faults(job, ("rank_lost", 4, "n3"))
        state, run = self.end(job)
        self.assertEqual((state, run["state"]), ("COMPLETED", "complete"), self.cluster.output(job))
        self.assertEqual([(a["state"], a["exit_code"], a["reason"]) for a in run["attempts"]], [("complete", 0, "")])
        self.assertEqual(self.faults(job), {("rank_lost", 1, "n1"), ("rank_lost", 4, "n3")})

    def test_a_lost_node_ends_nothing(self):
        job = self.submit()
        self.cluster.kill_node(2)
        try:
            self.wait_faults(job, ("node_lost", None, "n2"))
            state, run = self.end(job)
        finally:
            self.cluster.restore_node(2)
        self.assertEqual((state, run["state"], len(run["attempts"])), ("COMPLETED", "complete", 1), self.cluster.output(job))

    def test_fewer_nodes_than_the_least_end_the_attempt(self):
        job = self.submit("--wlb-min-nodes=3")
        self.cluster.kill_node(2)
        try:
            state = self.cluster.wait_job(job)
        finally:
            self.cluster.restore_node(2)
        run = self.cluster.show(job)
        self.assertNotEqual(state, "COMPLETED")
        self.assertEqual((run["state"], run["attempts"][0]["state"], run["attempts"][0]["reason"]),
                         ("out_of_nodes", "failed", "node n2 is lost"))

    def test_where_every_rank_dies_the_attempt_has_failed(self):
        job = self.cluster.sbatch("wlb run --on-rank-exit=continue --max-restarts=0 -- sh -c 'exit $((SLURM_PROCID + 3))'",
                                  "--wlb-layout=auto", "--ntasks-per-node=2", nodes=2)
        self.assertEqual(self.cluster.wait_job(job), "FAILED")
        attempt, = self.cluster.show(job)["attempts"]
        self.assertEqual(attempt["state"], "failed")
        self.assertIn(attempt["exit_code"], range(3, 7))


if __name__ == "__main__":
    main()
