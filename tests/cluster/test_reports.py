#!/usr/bin/env python3
"""Situations that users met in Slurm jobs, a row each: the sentence says what must happen.

A new report is one more row. What a row cannot say (a fault at a certain time, a second user, a restart of a daemon) is its `meanwhile`,
a function of the test case and the job's id, which runs while the job does."""
import contextlib
import dataclasses
import re
import subprocess
import time
import typing

from harness import ClusterTest, main, wait_for
from test_wlbd_api import NOBODY


@dataclasses.dataclass(frozen=True)
class Situation:
    sentence: str
    script: str  # lines of the batch script
    name: str  # of the test
    options: tuple = ("--wlb-layout=auto", "--no-kill")  # of sbatch
    nodes: int = 1
    slurm_conf: str = ""  # lines that replace those of the same key
    meanwhile: typing.Optional[typing.Callable] = None
    state: str = "COMPLETED"  # of the job at its end
    runs: typing.Optional[dict] = None  # state and number of attempts of each run at the end, by its name after the job id: "", ".2"
    output: tuple = ()  # regular expressions, each of which matches in the job's output
    not_output: tuple = ()  # and those of which none does
    faults: typing.Optional[list] = None  # kind and node (None: any) of each cause in the record
    after: typing.Optional[typing.Callable] = None  # further checks, by a function of the test case and the job's id


TRAIN = """test -e corpus.idx || wlb data build --input /usr/share/common-licenses --output-prefix corpus
echo '{"hidden_size": 64, "intermediate_size": 160, "num_hidden_layers": 2, "num_attention_heads": 4, "vocab_size": 257}' > model.json
wlb run -- wlb-worker train --model model.json --data-path corpus --seq-length 128 --global-batch-size 4 --threads 1 --min-lr 1e-4 \
    --save extended --load extended """


def extend(test, _job):
    """The run is complete; jobs that extend it with another learning rate, as a user resubmits them."""
    def ended(options):
        job = test.cluster.sbatch(TRAIN + options, "--wlb-layout=auto")
        return test.cluster.wait_job(job), test.cluster.show(job)["state"], test.cluster.output(job)

    state, run, output = ended("--train-iters 12 --lr 5e-4")
    test.assertEqual((state, run), ("FAILED", "failed"), output)
    test.assertRegex(output, r"--lr was 0\.001, is 0\.0005; --lr-decay-iters \(by default --train-iters\) was 6, is 12: give the same, "
                             r"or --override-opt_param-scheduler .*, or --use-checkpoint-opt_param-scheduler ")
    test.assertNotIn("attempt 2", output)
    state, run, output = ended("--train-iters 12 --lr 5e-4 --override-opt_param-scheduler")
    test.assertEqual((state, run), ("COMPLETED", "complete"), output)
    test.assertIn("resuming after step 6", output)


# Answers as NCCL's RAS service does, and prints each line that it is asked.
RAS = """
import socketserver
class Ras(socketserver.StreamRequestHandler):
    def handle(self):
        for answer in ("SERVER PROTOCOL 2", "OK", "NCCL version 2.27.3"):
            print("asked", self.rfile.readline(), flush=True)
            self.wfile.write((answer + "\\n").encode())
server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), Ras)
print(server.server_address[1], flush=True)
server.serve_forever()
"""
RAS_RUN = ("rm -f started go; while ! [[ -s ras ]]; do sleep 0.1; done; export NCCL_RAS_ADDR=127.0.0.1:$(< ras); rm ras; "
           "wlb run -- env {} bash -c 'touch started; while ! [[ -e go ]]; do sleep 0.1; done'")


def with_ras(user, is_asked):
    """With a server of RAS of that user at the address that the job names; the stacks of the job's ranks are asked for."""
    def meanwhile(case, job):
        folder = case.cluster.work
        with subprocess.Popen(["/usr/bin/python3", "-c", RAS], user=user, cwd="/", stdout=subprocess.PIPE, text=True) as server, \
                contextlib.ExitStack() as end:
            end.callback(server.terminate)
            end.callback(lambda: (folder / "go").touch())
            (folder / "port").write_text(server.stdout.readline(), encoding="utf-8")
            (folder / "port").rename(folder / "ras")
            wait_for("its rank", (folder / "started").exists, 30)
            time.sleep(2)  # until its agent has reported
            text = case.cluster.run("wlb", "stacks", str(job)).stdout
            case.assertIn("stacks of 1 of 1 ranks", text)
            case.assertEqual("NCCL version 2.27.3" in text, is_asked, text)
            server.terminate()
            case.assertEqual(server.stdout.read().count("asked"), 3 * is_asked)
    return meanwhile


SITUATIONS = (
    Situation("One run of a script is recorded as complete.", "wlb run -- true", "a_run", runs={"": ("complete", 1)}),
    Situation("A finished run that a resubmitted job extends with another learning rate is refused, unless the job says which to take.",
              TRAIN + "--train-iters 6 --lr 1e-3", "an_extended_run", runs={"": ("complete", 1)}, after=extend),
    Situation("NCCL's RAS service of a job with GPUs is asked, at the address that the job names.", RAS_RUN.format("CUDA_VISIBLE_DEVICES=0"),
              "ras_of_the_job", meanwhile=with_ras(0, True)),
    Situation("Another user's process that has the port of NCCL's RAS service on a shared node is not asked.",
              RAS_RUN.format("CUDA_VISIBLE_DEVICES=0"), "ras_of_another_user", meanwhile=with_ras(NOBODY, False)),
    Situation("A job without GPUs has no RAS service of NCCL, and none is asked.", RAS_RUN.format(""), "ras_without_gpus",
              meanwhile=with_ras(0, False)),
)


class Reports(ClusterTest):
    nodes = 4

    def setUp(self):
        self.slurm_conf = self.cluster.dir / "etc/slurm.conf"
        self.addCleanup(self.configure, self.slurm_conf.read_text(encoding="utf-8"))

    def configure(self, text):
        if text != self.slurm_conf.read_text(encoding="utf-8"):
            self.slurm_conf.write_text(text, encoding="utf-8")
            self.cluster.run("scontrol", "reconfigure")

    def with_lines(self, lines):
        """The present slurm.conf, in which each of these lines replaces that of its key."""
        text = self.slurm_conf.read_text(encoding="utf-8")
        for line in lines.splitlines():
            text = re.sub(rf"^\s*{line.split('=')[0]}=.*\n", "", text, flags=re.MULTILINE) + line + "\n"
        return text

    def check_runs(self, situation, job):
        ended = {name: (run["state"], len(run["attempts"])) for name in situation.runs
                 for run in [self.cluster.show(f"{job}{name}")]}
        self.assertEqual(ended, situation.runs, self.cluster.output(job))
        names = {row[0] for row in self.cluster.sql(f"select name from runs where job_id = {job}")}
        self.assertEqual(names, {f"{job}{name}" for name in situation.runs})

    def check_faults(self, situation, job):
        found = self.cluster.sql(f"""select f.kind, f.node from faults f join runs r on r.id = f.run_id
            where r.job_id = {job} and f.cause order by f.detected_at, f.id""")
        expected = [[kind, node or got[1]] for (kind, node), got in zip(situation.faults, found)]
        self.assertEqual((found, len(found)), (expected, len(situation.faults)))

    def check(self, situation):
        self.configure(self.with_lines(situation.slurm_conf))
        job = self.cluster.sbatch(situation.script, *situation.options, nodes=situation.nodes)
        if situation.meanwhile:
            situation.meanwhile(self, job)
        self.assertEqual(self.cluster.wait_job(job), situation.state, self.cluster.output(job))
        output = self.cluster.output(job)
        for pattern in situation.output:
            self.assertRegex(output, pattern)
        for pattern in situation.not_output:
            self.assertNotRegex(output, pattern)
        if situation.runs is not None:
            self.check_runs(situation, job)
        if situation.faults is not None:
            self.check_faults(situation, job)
        if situation.after:
            situation.after(self, job)


def test_of(situation):
    def test(self):
        self.check(situation)

    test.__doc__ = situation.sentence
    return test


for row in SITUATIONS:
    setattr(Reports, f"test_{row.name}", test_of(row))

if __name__ == "__main__":
    main()
