#!/usr/bin/env python3
"""Situations that users met in Slurm jobs, a row each: the sentence says what must happen.

A new report is one more row. What a row cannot say (a fault at a certain time, a second user, a restart of a daemon) is its `meanwhile`,
a function of the test case and the job's id, which runs while the job does."""
import contextlib
import dataclasses
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
import typing

import harness
import training
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
    wlbd_conf: str = ""  # the same of wlbd.conf
    meanwhile: typing.Optional[typing.Callable] = None
    state: str = "COMPLETED"  # of the job at its end
    runs: typing.Optional[dict] = None  # state and number of attempts of each run at the end, by its name after the job id: "", ".2"
    output: tuple = ()  # regular expressions, each of which matches in the job's output
    not_output: tuple = ()  # and those of which none does
    faults: typing.Optional[list] = None  # kind and node (None: any) of each cause in the record
    after: typing.Optional[typing.Callable] = None  # further checks, by a function of the test case and the job's id
    user: typing.Optional[int] = None  # who submits it, from a new directory where every account may write; None: root alone
    before: typing.Optional[typing.Callable] = None  # what happens between its submission and its start, as `meanwhile`


EXTENDED = """test -e corpus.idx || wlb data build --input /usr/share/common-licenses --output-prefix corpus
echo '{"hidden_size": 64, "intermediate_size": 160, "num_hidden_layers": 2, "num_attention_heads": 4, "vocab_size": 257}' > model.json
wlb run -- wlb-worker train --model model.json --data-path corpus --seq-length 128 --global-batch-size 4 --threads 1 --min-lr 1e-4 \
    --save extended --load extended """


def extend(test, _job):
    """The run is complete; jobs that extend it with another learning rate, as a user resubmits them."""
    def ended(options):
        job = test.cluster.sbatch(EXTENDED + options, "--wlb-layout=auto")
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


# ---- several `wlb run` of one job ----------------------------------------------------------------------------------

SIDE_BY_SIDE = {"": ("complete", 1), ".2": ("complete", 1)}
ONE_RUN = ("--wlb-layout=auto", "--no-kill", "-n1")


def ran(*names):
    """What commands `echo NAME $WLB_RUN_ID $WLB_ATTEMPT` printed: each in one attempt."""
    return tuple(rf"(?m)^{name} \d+(\.\d)? 1$" for name in names)


def go(test, job):
    (test.cluster.work / f"go-{job}").touch()


def wait_output(test, job, text):
    wait_for(f"'{text}' in the output of job {job}", lambda: text in test.cluster.output(job), 30)


def restart_wlbd(test, job):
    """The second `wlb run` begins before the first has reported to the new wlbd."""
    wait_output(test, job, "first began")
    test.cluster.verb("kill-wlbd")
    test.cluster.verb("start-wlbd")
    go(test, job)


def begin_without_wlbd(test, job):
    """The first `wlb run` works, and the second begins while wlbd is away."""
    wait_output(test, job, "first began")
    test.cluster.verb("kill-wlbd")
    go(test, job)
    wait_output(test, job, "continuing without the coordinator")
    test.cluster.verb("start-wlbd")


def requeue(test, job):
    for name in "ab":
        wait_output(test, job, f"{name} of start 0")
    start_again(test, job)


def start_again(test, job):
    test.cluster.run("scontrol", "requeue", job)
    wait_for(f"second start of job {job}", lambda: test.cluster.job(job)["Restarts"] == "1", 20)
    # A job that is requeued is held for up to two minutes.
    wait_for("the job to run", lambda: test.cluster.run("scontrol", "release", job, check=False)
             and test.cluster.run("scontrol", "update", f"jobid={job}", "starttime=now", check=False)
             and test.cluster.job(job)["JobState"] in ("RUNNING", "COMPLETED"), 60, 1)


def have_their_names(test, job):
    """Each command has the run that it had before the requeue."""
    names = dict(re.findall(r"(?m)^([ab]) of start 0: (\S+)$", test.cluster.output(job)))
    # The second start of a job that slurmd still kills is refused ("already killed, do not launch batch job"); a third one follows.
    test.assertEqual(dict(re.findall(r"(?m)^([ab]) of start [12]: (\S+)$", test.cluster.output(job))), names)
    test.assertEqual(sorted(names.values()), [str(job), f"{job}.2"])


def kill_launcher(test, job):
    wait_output(test, job, "first began")
    launchers = [pid for pid in test.cluster.processes("wlb run") if os.readlink(f"/proc/{pid}/exe").endswith("/wlb")]
    os.kill(launchers[0], signal.SIGKILL)


def no_attempts(test, job):
    test.assertEqual(test.cluster.sql(f"select count(*) from attempts a join runs r on r.id = a.run_id where r.job_id = {job}"), [["0"]])


REQUEUED = """export START=${{SLURM_RESTART_COUNT:-0}}; [ $START != 5 ] || START=0
begin() {{ {spool}wlb run -- sh -c 'echo $0 of start $START: $WLB_RUN_ID; [ $START != 0 ] || sleep 60' $1 & }}
set -- a b; [ $START = 0 ] || set -- b a
begin $1; until grep -q "$1 of start $START" $SLURM_JOB_ID.out; do sleep 0.1; done; begin $2; wait"""


def array_tasks(test, job):
    """All of the array's tasks have ended: their runs are found by the names that Slurm shows, and by their job ids."""
    wait_for("the end of the array", lambda: not test.cluster.run("squeue", "-h", "-j", str(job), check=False).stdout.strip(), 60)
    listed = test.cluster.run("wlb", "runs").stdout
    for task in ("0", "2"):
        for launch in ("", ".2"):
            name = f"{job}_{task}{launch}"
            story = test.cluster.show(name)
            test.assertEqual((story["alias"], story["state"], story), (name, "complete", test.cluster.show(story["run_id"])))
            test.assertEqual(story["run_id"], f"{story['job_id']}{launch}")
            test.assertIn(f"{story['run_id']} ({name})", listed)
            test.assertIn(f"Run {story['run_id']} ({name}): complete", test.cluster.run("wlb", "show", name).stdout)
            for words in (("faults",), ("faults", "--json"), ("top", "--once")):
                test.cluster.run("wlb", *words, name)
            for words in (("set", name, "on-fault=report"), ("stacks", name)):
                refusal = test.cluster.run("wlb", *words, check=False).stderr
                test.assertRegex(refusal, f"run {re.escape(name)} has ended|run {story['run_id']}: its attempt 1 has ended")
    refused = test.cluster.run("wlb", "show", f"{job}_1", check=False)
    test.assertEqual((refused.returncode, refused.stderr), (1, f"wlb show: no run {job}_1; wlb runs lists them\n"))


def components(test, job):
    test.assertEqual(test.cluster.show(f"{job}+0"), test.cluster.show(job))
    refused = test.cluster.run("wlb", "show", f"{job}+1", check=False)
    test.assertEqual((refused.returncode, refused.stderr),
                     (1, f"wlb show: no run {job}+1: the runs of heterogeneous job {job} are on its component 0; see run {job}\n"))


def kill_nodes(*after):
    """Kills n4 and those before it, after so many seconds each, once the ranks of the run work on all nodes."""

    def meanwhile(test, job):
        wait_for("ranks on all nodes", lambda: test.cluster.output(job).count("working") == 4, 30)
        killers = [threading.Timer(after_s, test.cluster.kill_node, (4 - number,)) for number, after_s in enumerate(after)]
        for killer in killers:
            killer.start()
        test.addCleanup(bring_back, test, len(after))
        for killer in killers:
            killer.join()

    return meanwhile


def bring_back(test, count):
    for number in range(4 - count + 1, 5):
        test.cluster.restore_node(number)
        test.cluster.run("scontrol", "update", f"nodename=n{number}", "state=resume", check=False)
    wait_for("idle nodes", lambda: set(test.cluster.run("sinfo", "-h", "-N", "-o", "%t").stdout.split()) == {"idle"}, 60)


def lost_nodes(*nodes):
    """Each of them is a fault of the run, one of them a cause in each attempt that lost some, which is its reason."""

    def after(test, job):
        story = test.cluster.show(job)
        found = [fault for fault in story["faults"] if fault["kind"] == "node_lost"]
        test.assertEqual({fault["node"] for fault in found}, set(nodes))
        for attempt in story["attempts"][:-1]:
            causes = [fault["node"] for fault in found if fault["attempt"] == attempt["attempt"] and fault["cause"]]
            test.assertEqual([f"node {node} is lost" for node in causes], [attempt["reason"]])

    return after


def kill_batch_stepd(test, job):
    """Once the run is complete; Slurm finds out when slurmd tells it which jobs it has, and requeues the job."""
    wait_for("the end of the run", lambda: test.cluster.processes(f"sleep {job}999"), 30)
    for pid in test.cluster.processes(f"slurmstepd: [{job}.batch]") + test.cluster.processes(f"sleep {job}999"):
        os.kill(pid, signal.SIGKILL)

    def has_begun_again():
        test.cluster.run("scontrol", "reconfigure")
        return test.cluster.job(job)["Restarts"] == "1"

    wait_for("the job's second start", has_begun_again, 60, 2)


def freeze_batch_node(test, job):
    """While the database is away, so that steps that ranks have reported are not recorded when the node stops."""

    def last_step():
        path = test.cluster.work / f"m-{job}.jsonl"
        return path.read_text(encoding="utf-8").count("\n") if path.exists() else 0

    test.addCleanup(bring_back, test, 4)
    wait_for("recorded steps", lambda: test.cluster.sql(
        f"select 1 from steps s join runs r on r.id = s.run_id where r.job_id = {job} limit 1"), 60)
    test.cluster.verb("stop-db")
    before = last_step()
    wait_for("steps without a database", lambda: last_step() > before + 3, 30)
    time.sleep(2)  # two reports
    test.cluster.verb("freeze-node", test.cluster.job(job)["BatchHost"][1:])
    test.cluster.verb("start-db")
    wait_for("wlbd's connection", lambda: test.cluster.run("wlb", "show", job, check=False).returncode == 0, 30)


def missing_steps(test, job):
    """They are said to be missing, and from which node, until that goes on and they are delivered."""
    story = test.cluster.show(job)
    missing, = story["steps_missing"]
    test.assertEqual((story["state"], missing["attempt"], missing["node"]), ("complete", 1, story["attempts"][0]["nodes"][0]))
    count = missing["last_step"] - missing["first_step"] + 1
    test.assertRegex(test.cluster.run("wlb", "runs").stdout, rf"(?m)^{job} .* \({count} missing\) ")
    test.assertIn(f"steps {missing['first_step']} to {missing['last_step']} of attempt 1 are not recorded: its rank 0 on {missing['node']} ",
                  test.cluster.run("wlb", "show", job).stdout)
    test.cluster.verb("thaw-node", missing["node"][1:])
    wait_for("their delivery", lambda: test.cluster.show(job)["steps_missing"] == [], 60, 1)


# Ranks that end at once when they are asked to, as those of wlb-worker do.
LOSING = "wlb run -- bash -c 'echo working; for ((i = 0; i < 60; i++)); do sleep 0.1; done'"
LOSING_OPTIONS = ("--wlb-layout=auto", "--no-kill", "--requeue")
FAILS_ONCE = "[ $WLB_ATTEMPT -gt 1 ] || exit 3"  # a rank of the first attempt


def requeue_once(test, job):
    """Once its first attempt has written to the file of srun."""
    written = test.cluster.work / f"{job}.log"
    wait_for("what the rank writes", lambda: written.exists() and written.stat().st_size > 0, 30)
    test.cluster.run("scontrol", "requeue", job)


def check_times(test, job):
    test.assertEqual(test.cluster.sql(f"""select r.started_at <= r.ended_at, r.ended_at - r.started_at < interval '20 s',
        bool_and(a.started_at between r.started_at and a.ended_at) from runs r join attempts a on a.run_id = r.id
        where r.job_id = {job} group by r.id"""), [["t", "t", "t"]])
    test.assertRegex(test.cluster.run("wlb", "show", job).stdout, "started .*, ended .*, took ")


def wait_step(test, job, step=0):
    wait_for(f"step {step} of job {job}", lambda: f"{job}.{step} " in test.cluster.run("squeue", "-h", "-s", "-o", "%i ").stdout, 60)


def cancel_step(test, job):
    wait_step(test, job)
    test.cluster.run("scancel", f"{job}.0")


def end_srun(test, job):
    wait_step(test, job)
    for pid in test.cluster.processes("srun", f"sleep 3{job}"):
        os.kill(pid, signal.SIGTERM)


def no_rank_is_blamed(test, job):
    """Neither as the cause of a fault nor beside it."""
    blamed = test.cluster.sql(f"""select f.kind, f.rank, f.node from faults f join runs r on r.id = f.run_id
        where r.job_id = {job} and (f.rank is not null or f.node is not null)""")
    test.assertEqual(blamed, [])


def refused(sentence, name, words, reason, remedy, nodes=1, **more):
    """A row: what srun refuses for good is tried once, and no rank or node is blamed."""
    return Situation(sentence, f"wlb run {words}", name, nodes=nodes, state="FAILED", runs={"": ("failed", 1)},
                     output=(f"wlb: run .* failed after 1 attempt: {reason}.*; .*{remedy}",), faults=[("step_failed", None)],
                     after=is_the_reason_of_the_record(reason, remedy), **more)


def is_the_reason_of_the_record(reason, remedy):
    def check(test, job):
        run = test.cluster.show(job)
        for text in (run["reason"], run["attempts"][0]["reason"], test.cluster.run("wlb", "show", job).stdout):
            test.assertRegex(" ".join(text.split()), f"{reason}.*; .*{remedy}")
        no_rank_is_blamed(test, job)

    return check


def tasks_of_gpus(test, job):
    test.assertEqual(test.cluster.output(job).count("a rank of 8"), 8)


def none_is_left(test, job):
    test.assertEqual(test.cluster.processes(f"sleep 7{job}"), [])
    events = test.cluster.sql(f"""select e.detail from events e join runs r on r.id = e.run_id
        where r.job_id = {job} and e.kind = 'processes_ended' order by e.id""")
    test.assertEqual(events, [["4 processes that ranks had left on 2 nodes"], ["4 processes that ranks had left on 2 nodes"]])


# Each rank leaves two processes that are in a session of their own, of which one ignores SIGTERM; the script has one, too.
LEAVES_PROCESSES = """setsid sleep 8$SLURM_JOB_ID &
cat > leaves-$SLURM_JOB_ID <<'END'
((WLB_ATTEMPT == 2)) && pgrep -f "^sleep 7$SLURM_JOB_ID.1" && echo "a process is left"
for_s=7$SLURM_JOB_ID.$WLB_ATTEMPT$SLURM_PROCID
setsid --fork sleep $for_s
setsid --fork bash -c "trap '' TERM; exec sleep $for_s"
until (($(pgrep -cf "^sleep $for_s") == 2)); do sleep 0.1; done
touch left-$for_s
until [[ -e left-${for_s%?}0 && -e left-${for_s%?}1 ]]; do sleep 0.1; done
((WLB_ATTEMPT == 2)) || exit 7
END
wlb run -- bash leaves-$SLURM_JOB_ID
pgrep -f "^sleep 7$SLURM_JOB_ID" && echo "a process is left"
pgrep -f "sleep 8$SLURM_JOB_ID" > /dev/null && echo "that of the script works on"
pkill -f "sleep 8$SLURM_JOB_ID"
"""

ONE_ENDS_FIRST = 'bash -c "((SLURM_PROCID == 0)) || sleep 4"'
SLEEPS_ONCE = 'bash -c "((WLB_ATTEMPT == 2)) || sleep 3$SLURM_JOB_ID"'


# ---- texts of any bytes: those that are not UTF-8 are surrogates here, as Python has them on a command line ------------

AUTO = ("--wlb-layout=auto", "--no-kill")
EVERY_BYTE = bytes(range(1, 256)).decode(errors="surrogateescape")
CUT = b" ".join((b"\xc3", b"\xe2\x82", b"\xf0\x9f\x98", b"\xc0\xaf", b"\xed\xa0\x80", b"\xf8\x88\x80\x80\x80", b"\xff")).decode(
    errors="surrogateescape")
CONTROLS = "a\x1b[31mb\x7f\x9bc\u2028d\u202ee\u2066f\u200bg\ufeffh"
TRAIN = r"""
mkdir -p $'d\xe9'
wlb-data build --input /usr/share/common-licenses --output-prefix $'d\xe9/c\xe9' > /dev/null
echo '{"model_type": "llama", "hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2,
  "num_key_value_heads": 2, "vocab_size": 257, "max_position_embeddings": 64, "tie_word_embeddings": true}' > $'d\xe9/m.json'
wlb run --tasks-per-node 1 -- wlb-worker train --model $'d\xe9/m.json' --data-path $'d\xe9/c\xe9' --seq-length 64 \
  --global-batch-size 2 --train-iters 4 --save-interval 2 --save $'d\xe9/ck' --load $'d\xe9/ck' --lr 1e-3"""


def no_control(test, text):
    found = [hex(ord(c)) for c in text if c != "\n" and (c < " " or "\x7f" <= c <= "\x9f" or c in "\u2028\u202e\u2066\u200b\ufeff")]
    test.assertEqual(found, [], text)


def is_shown(test, job):
    """Each command shows the run in characters that a terminal draws, and no log has others."""
    for words in (("runs",), ("runs", "--json"), ("show", str(job)), ("show", str(job), "--json"), ("faults", str(job)), ("nodes",)):
        no_control(test, test.cluster.run("wlb", *words).stdout.encode(errors="surrogateescape").decode())
    for log in ("wlbd.out", "wlbd.log"):
        path = test.cluster.dir / "log" / log
        if path.exists():
            no_control(test, path.read_text(encoding="utf-8"))
    test.assertFalse((test.cluster.work / ".wlb/refused").exists())


def is_named(name):
    """The run is listed under this name, and nothing of it was refused."""

    def check(test, job):
        test.assertEqual(test.cluster.show(job)["job_name"], name)
        listed = json.loads(test.cluster.run("wlb", "runs", "--json").stdout)["runs"]
        test.assertEqual([run["job_name"] for run in listed if run["job_id"] == job], [name])
        is_shown(test, job)

    return check


def stored(text):
    """What is stored of a text: U+FFFD for each byte that is not UTF-8."""
    return re.sub("[\udc80-\udcff]", "\ufffd", text)


def has_reason(pattern):
    def check(test, job):
        test.assertRegex(test.cluster.show(job)["attempts"][-1]["reason"], pattern)
        is_shown(test, job)

    return check


def has_checkpoints(test, job):
    run = test.cluster.show(job)
    test.assertEqual([c["step"] for c in run["checkpoints"]], [2, 4])
    for checkpoint in run["checkpoints"]:
        test.assertIn("/d\ufffd/ck/step_", "/" + checkpoint["path"])
    test.assertTrue((test.cluster.work / "d\udce9/ck/step_00000004").is_dir())
    is_shown(test, job)


CRASH_ONCE = "wlb run -- bash -c 'test -e again-$SLURM_JOB_ID || { touch again-$SLURM_JOB_ID; kill -9 $$; }'"


DAEMON, BIN = 1, 2  # accounts without rights


# ---- a directory that others prepare -------------------------------------------------------------------------------------

def prepared(*parts):
    """Runs shell commands as an account each, whose shell waits until the test ends, in the submit directory: $own is what the
    user of the job has beside .wlb, $count where the job's runs are counted."""

    def prepare(case, job):
        for account, commands in parts:
            process = subprocess.Popen(["bash", "-ec", f"umask 0; {commands}; echo ready; exec sleep 600"], cwd=case.cluster.work, user=account,
                                       group=account, extra_groups=[], stdout=subprocess.PIPE, text=True,
                                       env={"PATH": "/usr/bin:/bin", "own": f".wlb-{case.user}", "count": f".wlb/{job}.json"})
            for end in (process.stdout.close, process.wait, process.kill):
                case.addCleanup(end)
            case.assertEqual(process.stdout.readline(), "ready\n")

    return prepare


def run_of_root(case, _job):
    job = case.cluster.sbatch("wlb run -- true", "--wlb-layout=auto")
    case.assertEqual(case.cluster.wait_job(job), "COMPLETED", case.cluster.output(job))
    case.assertEqual(case.cluster.show(job)["state"], "complete")


def files_in(name, mode=0o700):
    """The job's files are in this folder of the submit directory, which is its user's, and no record waits there."""

    def check(case, job):
        folder = case.cluster.work / name.format(user=case.user)
        about = folder.stat()
        case.assertEqual((about.st_uid, about.st_mode & 0o7777), (case.user, mode))
        case.assertTrue((folder / f"{job}.json").is_file() or (folder / f"{job}.json").is_fifo())
        wait_for("records that are delivered", lambda: not list(folder.glob("*.jsonl")), 20)

    return check


def without_wlbd(prepare):
    def before(case, job):
        prepare(case, job)
        case.cluster.verb("kill-wlbd")
        case.addCleanup(case.cluster.verb, "start-wlbd")

    return before


def with_wlbd_again(check):
    def after(case, job):
        case.assertTrue(list(case.cluster.work.glob(".wlb-*/*.jsonl")), "records that wait")
        case.cluster.verb("start-wlbd")
        check(case, job)
        case.assertEqual(case.cluster.show(job)["state"], "complete")

    return after


def replaced(case, job):
    """Another account renames the folder while the run works, and puts its own in its place."""
    wait_for("the command", lambda: (case.cluster.work / "begun").exists(), 30)
    prepared((BIN, "mv .wlb gone; mkdir .wlb; mkfifo $count"))(case, job)


def exit_code(code):
    def check(case, job):
        case.assertEqual(case.cluster.job(job)["ExitCode"], f"{code}:0")

    return check


COMPLETE = {"": ("complete", 1)}
# Locks the first byte of the file that a shell has open as 9 until the shell ends (F_OFD_SETLK).
LOCK_9 = """python3 -c 'import fcntl, struct; fcntl.fcntl(9, 37, struct.pack("hhqqi4x", fcntl.F_WRLCK, 0, 0, 1, 0))'"""
OF_ANOTHER = prepared((BIN, "mkdir .wlb"))
BOTH_OF_ANOTHER = prepared((BIN, "mkdir .wlb $own"))


def is_evaluated(test, _job):
    wait_for("the end of the job that the rank has submitted", lambda: "evaluated" in
             (test.cluster.work / "evaluation.out").read_text(encoding="utf-8"), 20)


# The run is complete; in the second start of the job its first attempt waits, and fails.
REQUEUED_AFTER_ITS_END = """wlb run -- sh -c '[ ${SLURM_RESTART_COUNT:-0} = 0 ] && exit; echo again $WLB_ATTEMPT $WLB_RUN_ID
    test -e waited && exit; touch waited; while ! [ -e go ]; do sleep 0.1; done; exit 3'
[ ${SLURM_RESTART_COUNT:-0} != 0 ] || sleep 60"""


def requeue_without_wlbd(test, job):
    wait_output(test, job, "complete after 1 attempt")
    test.cluster.verb("kill-wlbd")
    test.addCleanup(test.cluster.verb, "start-wlbd")
    start_again(test, job)
    wait_output(test, job, "again")
    test.cluster.verb("start-wlbd")
    wait_for("the record of attempt 2", lambda: len(test.cluster.show(job)["attempts"]) == 2, 30)
    (test.cluster.work / "go").touch()


SITUATIONS = (
    Situation("One run of a script is recorded as complete.", "wlb run -- true", "a_run", runs={"": ("complete", 1)}),
    Situation("A finished run that a resubmitted job extends with another learning rate is refused, unless the job says which to take.",
              EXTENDED + "--train-iters 6 --lr 1e-3", "an_extended_run", runs={"": ("complete", 1)}, after=extend),
    Situation("NCCL's RAS service of a job with GPUs is asked, at the address that the job names.", RAS_RUN.format("CUDA_VISIBLE_DEVICES=0"),
              "ras_of_the_job", meanwhile=with_ras(0, True)),
    Situation("Another user's process that has the port of NCCL's RAS service on a shared node is not asked.",
              RAS_RUN.format("CUDA_VISIBLE_DEVICES=0"), "ras_of_another_user", meanwhile=with_ras(NOBODY, False)),
    Situation("A job without GPUs has no RAS service of NCCL, and none is asked.", RAS_RUN.format(""), "ras_without_gpus",
              meanwhile=with_ras(0, False)),
    Situation("Two `wlb run` that start in the same second train both, each with a run of its own.",
              "wlb run -- sh -c 'sleep 1; echo first $WLB_RUN_ID $WLB_ATTEMPT' &\n"
              "wlb run -- sh -c 'sleep 1; echo second $WLB_RUN_ID $WLB_ATTEMPT' &\nwait",
              "two_at_once", ONE_RUN, runs=SIDE_BY_SIDE, output=ran("first", "second"), faults=[]),
    Situation("Three at once, of which each fails once, are three runs.",
              "for i in 1 2 3; do wlb run -- sh -c \"[ \\$WLB_ATTEMPT != 1 ] || exit 9; echo run$i \\$WLB_RUN_ID\" & done; wait",
              "three_at_once", ONE_RUN, runs={name: ("complete", 2) for name in ("", ".2", ".3")},
              output=(r"(?m)^run1 ", r"(?m)^run2 ", r"(?m)^run3 ")),
    Situation("Equal commands that differ in their environment alone are runs of their own.",
              "for i in 1 2 3; do NAME=run$i wlb run -- sh -c 'sleep 1; echo $NAME $WLB_RUN_ID $WLB_ATTEMPT' & done; wait",
              "equal_commands", ONE_RUN, runs={name: ("complete", 1) for name in ("", ".2", ".3")},
              output=("tell them apart by `wlb run --name NAME`", *ran("run1", "run2", "run3")), faults=[]),
    Situation("Of two that work under one name the second is refused; one after the other they are runs of their own.",
              "wlb run --name eval -- sh -c 'touch begun-$SLURM_JOB_ID; sleep 3' & until [ -e begun-$SLURM_JOB_ID ]; do sleep 0.1; done\n"
              "wlb run --name eval -- true; echo code $?; wait; wlb run --name eval -- sh -c 'echo second $WLB_RUN_ID $WLB_ATTEMPT'",
              "equal_names", ONE_RUN, runs=SIDE_BY_SIDE,
              output=("--name 'eval': another `wlb run` of this job works under this name", "(?m)^code 2$", r"(?m)^second \d+\.2 1$")),
    Situation("So are those that keep their records in folders of their own, where neither counts the other.",
              "for i in 1 2 3; do WLB_SPOOL_DIR=$PWD/spool-$SLURM_JOB_ID-$i NAME=run$i wlb run -- "
              "sh -c 'sleep 1; echo $NAME $WLB_RUN_ID $WLB_ATTEMPT' & done; wait",
              "folders_of_their_own", ONE_RUN, runs={name: ("complete", 1) for name in ("", ".2", ".3")},
              output=ran("run1", "run2", "run3"), faults=[]),
    Situation("So are those that cannot count, since their file cannot be written.",
              "mkdir -p .wlb/$SLURM_JOB_ID.json\n"
              "for i in 1 2 3; do NAME=run$i wlb run -- sh -c 'sleep 1; echo $NAME $WLB_RUN_ID $WLB_ATTEMPT' & done; wait",
              "no_count", ONE_RUN, runs={name: ("complete", 1) for name in ("", ".2", ".3")},
              output=(r"\.json: cannot be opened: Is a directory", *ran("run1", "run2", "run3")), faults=[]),
    Situation("A second `wlb run` that starts while the first waits before its next attempt leaves it its run.",
              "wlb run -- sh -c '[ $WLB_ATTEMPT != 1 ] || exit 9; echo first $WLB_RUN_ID $WLB_ATTEMPT' &\n"
              "until grep -q 'attempt 1: ' $SLURM_JOB_ID.out; do sleep 0.1; done; sleep 3\n"
              "wlb run -- sh -c 'echo second $WLB_RUN_ID $WLB_ATTEMPT'; wait",
              "in_back_off", ONE_RUN, wlbd_conf="back_off_ms = 8000\n", runs={"": ("complete", 2), ".2": ("complete", 1)},
              output=(r"(?m)^first \d+ 2$", r"(?m)^second \d+\.2 1$")),
    Situation("So does one that starts just after wlbd was started again.",
              "wlb run -- sh -c 'echo first began; sleep 4; echo first $WLB_RUN_ID $WLB_ATTEMPT' &\n"
              "until [ -e go-$SLURM_JOB_ID ]; do sleep 0.01; done\n"
              "wlb run -- sh -c 'sleep 4; echo second $WLB_RUN_ID $WLB_ATTEMPT'; wait",
              "wlbd_started_again", ONE_RUN, meanwhile=restart_wlbd, runs=SIDE_BY_SIDE, output=ran("first", "second"), faults=[]),
    Situation("So does one that starts while wlbd is away, and fails once wlbd is back.",
              "wlb run -- sh -c 'echo first began; sleep 8; echo first $WLB_RUN_ID $WLB_ATTEMPT' &\n"
              "until [ -e go-$SLURM_JOB_ID ]; do sleep 0.1; done\n"
              "wlb run -- sh -c '[ $WLB_ATTEMPT != 1 ] || { sleep 3; exit 9; }; echo second $WLB_RUN_ID $WLB_ATTEMPT'; wait",
              "wlbd_away", ONE_RUN, meanwhile=begin_without_wlbd, runs={"": ("complete", 1), ".2": ("complete", 2)},
              output=(r"(?m)^first \d+ 1$", r"(?m)^second \d+\.2 2$")),
    Situation("Two `wlb run` that start in another order after a requeue each go on with their own run.",
              REQUEUED.format(spool=""), "requeued_in_another_order", (*ONE_RUN, "--requeue", "--open-mode=append"), meanwhile=requeue,
              runs={"": ("complete", 2), ".2": ("complete", 2)}, after=have_their_names),
    Situation("So do those that are named, whose words differ in each start.",
              REQUEUED.format(spool="").replace("wlb run", "wlb run --name run-$1").replace("' $1 &", "' $1 $RANDOM &"), "requeued_with_names",
              (*ONE_RUN, "--requeue", "--open-mode=append"), meanwhile=requeue,
              runs={"": ("complete", 2), ".2": ("complete", 2)}, after=have_their_names),
    Situation("So do those with folders of their own.",
              REQUEUED.format(spool="WLB_SPOOL_DIR=$PWD/spool-$SLURM_JOB_ID-$1 "), "requeued_with_folders_of_their_own",
              (*ONE_RUN, "--requeue", "--open-mode=append"), meanwhile=requeue,
              runs={"": ("complete", 2), ".2": ("complete", 2)}, after=have_their_names),
    Situation("So do those of a script that was submitted in a job that had been requeued, and has its count at first.",
              REQUEUED.format(spool=""), "requeued_with_another_count",
              (*ONE_RUN, "--requeue", "--open-mode=append", "--export=ALL,SLURM_RESTART_COUNT=5"), meanwhile=requeue,
              runs={"": ("complete", 2), ".2": ("complete", 2)}, after=have_their_names),
    Situation("A `wlb run` that was killed leaves a run that failed; the next one of the script has a run of its own.",
              "wlb run -- sh -c 'echo first began; sleep 60'\nwlb run -- sh -c 'sleep 1; echo second $WLB_RUN_ID $WLB_ATTEMPT'",
              "killed_launcher", (*ONE_RUN, "--no-requeue"), meanwhile=kill_launcher, runs={"": ("failed", 1), ".2": ("complete", 1)},
              output=(r"(?m)^second \d+\.2 1$",)),
    Situation("`srun wlb run` is refused before anything is started.",
              "srun -n4 wlb run -- echo trained; echo code $?; srun -n2 bash -c 'wlb run -- echo trained'; echo code $?",
              "started_by_srun", ("--wlb-layout=auto", "-n4"), after=no_attempts,
              output=(r"step \d+\.0 has 4 tasks, .* write `wlb run -- COMMAND` without srun", r"step \d+\.1 has 2 tasks",
                      r"(?s)code 2\n.*code 2\n"), not_output=(r"(?m)^trained",)),
    Situation("As the only task of a step `wlb run` works.",
              "srun -n1 wlb run -- echo trained; srun --overlap -n1 bash -c 'wlb run -- echo trained'",
              "the_only_task", ONE_RUN, runs=SIDE_BY_SIDE, output=(r"(?s)\ntrained\n.*\ntrained\n",)),
    Situation("A script that a task of a step has submitted has the step's variables, and is no step.",
              "echo '#!/bin/bash\nwlb run -- echo trained' > inner-$SLURM_JOB_ID.sh\n"
              "srun -n2 bash -c '[ $SLURM_PROCID = 0 ] || sbatch --wait --wlb-layout=auto -N1 -n1 -o $SLURM_JOB_ID.out --open-mode=append "
              "inner-$SLURM_JOB_ID.sh'", "submitted_in_a_step", ("--wlb-layout=auto", "-n2"), nodes=2,
              output=(r"(?m)^trained$",), not_output=("has 2 tasks",)),
    Situation("The runs of an array's tasks have the names that Slurm shows, 15_2 and 15_2.2.", "wlb run -- true; wlb run -- true",
              "an_array", options=("--wlb-layout=auto", "--array=0,2"), after=array_tasks),
    Situation("In a heterogeneous job wlb run uses component 0, says so, and refuses another one.",
              "wlb run -- true\nwlb run --srun-args=--het-group=1 -- true\necho refused: $?", "a_heterogeneous_job",
              options=("--wlb-layout=auto", "-N1", ":", "-N2"), after=components, runs={"": ("complete", 1)},
              output=(r"wlb: this job is heterogeneous: the run is on the nodes of its component 0, n\d\n", r"refused: 2\n",
                      r"wlb run: --srun-args '--het-group=1': wlb run trains on the nodes of component 0 of a heterogeneous job: ")),
    Situation("A complete run whose batch slurmstepd was killed says why it has a second attempt.",
              "wlb run -- true\n[ -e again ] || { touch again; sleep ${SLURM_JOB_ID}999; sleep 60; }", "a_killed_batch_slurmstepd",
              options=("--wlb-layout=auto", "--requeue"), meanwhile=kill_batch_stepd, runs={"": ("complete", 2)}),
    Situation("A run that is complete says which steps of it wait on a frozen batch node.",
              f"wlb run -- wlb-worker {' '.join(training.arguments(iterations=300))} --save ck-$SLURM_JOB_ID --load ck-$SLURM_JOB_ID "
              "--save-interval 10 --metrics-file m-$SLURM_JOB_ID.jsonl --log-interval 1", "a_frozen_batch_node",
              options=("--wlb-layout=auto", "--no-kill", "--requeue", "--open-mode=append"), nodes=2, meanwhile=freeze_batch_node,
              after=missing_steps),
    Situation("Two nodes that are lost within 0.2 s are both faults of the run.", LOSING, "two_nodes_at_once", options=LOSING_OPTIONS, nodes=4,
              meanwhile=kill_nodes(0, 0.2), after=lost_nodes("n3", "n4")),
    Situation("Two nodes that are lost 1.5 s apart are both faults of the run.", LOSING, "two_nodes_soon", options=LOSING_OPTIONS, nodes=4,
              meanwhile=kill_nodes(0, 1.5), after=lost_nodes("n3", "n4")),
    Situation("A node that is lost while the next attempt starts is a fault, too.", LOSING, "two_nodes_later", options=LOSING_OPTIONS, nodes=4,
              meanwhile=kill_nodes(0, 4), after=lost_nodes("n3", "n4")),
    Situation("Three nodes that are lost one after the other are three faults of the run.", LOSING, "three_nodes", options=LOSING_OPTIONS, nodes=4,
              meanwhile=kill_nodes(0, 0.7, 1.5), after=lost_nodes("n2", "n3", "n4")),
    # ---- what an attempt has consumed
    Situation("A here-document is given to each attempt.", f"""wlb run -- bash -s <<'END'
{FAILS_ONCE}
echo "read to its end in attempt $WLB_ATTEMPT"
END
""", "input_of_a_here_document", runs={"": ("complete", 2)}, output=("^read to its end in attempt 2$",)),
    Situation("A file is given to each attempt from where the script had read it.", f"""seq 9 > $SLURM_JOB_ID.list
{{ read first; wlb run -- bash -c 'echo "attempt $WLB_ATTEMPT:" $(cat); {FAILS_ONCE}'; }} < $SLURM_JOB_ID.list
""", "input_of_a_file", runs={"": ("complete", 2)},
              output=("^attempt 1: 2 3 4 5 6 7 8 9$", "^attempt 2: 2 3 4 5 6 7 8 9$")),
    Situation("A file that has been removed, as that of a long here-document is, is given to each attempt.",
              f"""seq 50000 > $SLURM_JOB_ID.gone; exec < $SLURM_JOB_ID.gone; rm $SLURM_JOB_ID.gone
wlb run -- bash -c 'echo "attempt $WLB_ATTEMPT:" $(wc -l); {FAILS_ONCE}'
""", "input_of_a_removed_file", runs={"": ("complete", 2)}, output=("^attempt 1: 50000$", "^attempt 2: 50000$")),
    Situation("A loop over the lines of a file starts a run for each.", """seq 3 > $SLURM_JOB_ID.list
while read -r line; do wlb run -- echo "line $line"; done < $SLURM_JOB_ID.list
""", "input_of_a_loop", runs={"": ("complete", 1), ".2": ("complete", 1), ".3": ("complete", 1)},
              output=("^line 1$", "^line 2$", "^line 3$")),
    Situation("What a pipe brings that ends is given to each attempt.",
              f"seq 100000 | wlb run -- bash -c 'echo \"attempt $WLB_ATTEMPT:\" $(wc -l); {FAILS_ONCE}'",
              "input_of_a_pipe", runs={"": ("complete", 2)}, output=("^attempt 1: 100000$", "^attempt 2: 100000$")),
    Situation("What a pipe brings that is too long to be kept, or slow, reaches the first attempt complete and in order.", """
seq 400000 | wlb run -- bash -c 'cmp - <(seq 400000) && echo long: the same'
{ seq 9; sleep 1.3; seq 10 20; } | wlb run -- bash -c 'cmp - <(seq 20) && echo slow: the same'
""", "input_of_long_pipes", runs={"": ("complete", 1), ".2": ("complete", 1)},
              output=("^long: the same$", "^slow: the same$")),
    Situation("No further attempt lacks what one before consumed of a pipe that does not end.",
              "wlb run -- bash -c 'read line; echo \"attempt $WLB_ATTEMPT: $line\"; exit 3' < <(echo first; sleep 60)",
              "input_of_a_pipe_that_goes_on", state="FAILED", runs={"": ("failed", 1)},
              output=("^attempt 1: first$", r"failed after 1 attempt: rank 0 on n\d ended with exit code 3, and there is no next "
                      r"attempt: 6 bytes of its standard input, a pipe, were consumed .* `wlb run ... < FILE`")),
    Situation("No further attempt lacks what one before consumed of a long pipe.",
              "head -c 3000000 /dev/zero | wlb run -- bash -c 'head -c 2000000 | wc -c; exit 3'",
              "input_of_a_long_pipe", state="FAILED", runs={"": ("failed", 1)},
              output=("^2000000$", r"no next attempt: \d{7} bytes of its standard input, a pipe, were consumed")),
    Situation("Words of srun that a task writes start no srun that lacks what the first consumed.", """
wlb run -- bash -c 'read line || exit 0; echo "srun: error: Unable to create step for job $SLURM_JOB_ID: Requested nodes are busy" >&2
exit 3' < <(echo first; sleep 60)""", "input_and_words_of_srun", state="FAILED", runs={"": ("failed", 1)},
              output=("6 bytes of its standard input, a pipe, were consumed",)),
    Situation("A pipe that stays open and brings nothing holds no run, and no restart.",
              f"wlb run -- bash -c '{FAILS_ONCE}' < <(sleep 60)", "input_of_an_idle_pipe", runs={"": ("complete", 2)}),
    Situation("A closed standard input is an empty one.", f"wlb run -- bash -c 'cat; {FAILS_ONCE}' <&-", "input_closed",
              runs={"": ("complete", 2)}),
    Situation("A pipe of the shell, which no rank can open, is refused before the run begins.",
              "wlb run -- cat <(echo text); echo code $?", "input_of_a_process_substitution",
              output=(r"/dev/fd/\d+: a pipe of the shell", "^code 2$"), not_output=("attempt 1",)),
    Situation("What the ranks of an attempt wrote to files of srun is there after the next.", f"""
wlb run --srun-args --output=$SLURM_JOB_ID-%t.log -- bash -c 'echo "written in attempt $WLB_ATTEMPT"; {FAILS_ONCE}'
cat $SLURM_JOB_ID-0.log""", "output_files", runs={"": ("complete", 2)},
              output=("^written in attempt 1$", "^written in attempt 2$")),
    Situation("Files of srun are truncated where the user says so.", f"""
wlb run --srun-args "--output=$SLURM_JOB_ID.log --open-mode=truncate" -- bash -c 'echo "written in attempt $WLB_ATTEMPT"; {FAILS_ONCE}'
cat $SLURM_JOB_ID.log""", "output_files_truncated", runs={"": ("complete", 2)}, output=("^written in attempt 2$",),
              not_output=("^written in attempt 1$",)),
    Situation("After a requeue, files of srun have what was written before it, and attempts are counted over the whole run.", """
wlb run --srun-args "-o $SLURM_JOB_ID.log" -- bash -c 'echo "written in attempt $WLB_ATTEMPT"; [ $WLB_ATTEMPT -gt 1 ] || sleep 60'
cat $SLURM_JOB_ID.log""", "requeued", options=("--wlb-layout=auto", "--no-kill", "--requeue"), meanwhile=requeue_once,
              runs={"": ("complete", 2)},
              output=("^written in attempt 1$", "^written in attempt 2$", "complete after 2 attempts")),
    # ---- commands that start the ranks themselves
    Situation("A command that would start all ranks in each task is refused before a step starts, with what to write.", """
for launcher in "mpirun -n 4" "env A=1 /usr/bin/mpiexec.hydra" "srun -n 4"; do
	wlb run -- $launcher touch $SLURM_JOB_ID.started; echo code $?
done
ls $SLURM_JOB_ID.started""", "launcher_in_each_task", nodes=2, state="FAILED",
              output=("^wlb run: mpirun: .* 2 tasks .* `wlb run -- PROGRAM ARGUMENTS`", "(?s)(^code 2$.*){3}", "cannot access"),
              not_output=("attempt 1",)),
    Situation("A launcher that is the only task of the job runs.", "wlb run -- env -u A srun --overlap echo started by srun",
              "launcher_alone", runs={"": ("complete", 1)}, output=("^started by srun$",)),
    # ---- times
    Situation("A run that is shorter than a second has times.", "wlb run -- true", "times", runs={"": ("complete", 1)},
              after=check_times),
    Situation("A run whose ranks fail at once has times.", "wlb run --max-restarts 0 -- bash -c 'exit 3'", "times_of_a_failed_run",
              state="FAILED", runs={"": ("failed", 1)}, after=check_times),
    Situation("A site's WaitTime ends no rank that works longer than the first.", f"wlb run -- {ONE_ENDS_FIRST}", "wait_time",
              nodes=2, slurm_conf="WaitTime=1", runs={"": ("complete", 1)}, faults=[]),
    Situation("srun's --wait, where the user gives it, is the reason of the attempt, and no rank is blamed.",
              f"wlb run --max-restarts=0 --srun-args --wait=1 -- {ONE_ENDS_FIRST}", "wait", nodes=2, state="FAILED",
              runs={"": ("failed", 1)}, output=("wlb: attempt 1: srun ended the tasks that were left 1 s after the first had ended",),
              faults=[("step_failed", None)], after=no_rank_is_blamed),
    Situation("SLURM_WAIT, where the user sets it, is kept.",
              f"export SLURM_WAIT=1\nwlb run --max-restarts=0 -- {ONE_ENDS_FIRST}", "slurm_wait", nodes=2, state="FAILED",
              runs={"": ("failed", 1)}, faults=[("step_failed", None)], after=no_rank_is_blamed),
    Situation("A step that the user cancels is no crash of its ranks.", f"wlb run -- {SLEEPS_ONCE}", "cancelled_step", nodes=2,
              meanwhile=cancel_step, runs={"": ("complete", 2)}, output=("wlb: attempt 1: Slurm cancelled the step",),
              faults=[("step_failed", None)], after=no_rank_is_blamed),
    Situation("A step whose ranks Slurm has to kill after a while, since they ignore SIGTERM, is no crash either.",
              'wlb run -- bash -c "((WLB_ATTEMPT == 2)) || { ((SLURM_PROCID)) && trap : TERM; while sleep 0.2; do :; done; }"',
              "cancelled_slowly", nodes=2, meanwhile=cancel_step, runs={"": ("complete", 2)}, faults=[("step_failed", None)],
              after=no_rank_is_blamed),
    Situation("A rank that calls MPI_Abort is the cause, although Slurm then cancels the step.",
              f"wlb run --max-restarts=0 -- {harness.mpi_check()} abort", "mpi_abort", nodes=2, options=("--wlb-layout=auto", "--no-kill", "--ntasks-per-node=1"),
              state="FAILED", runs={"": ("failed", 1)}, faults=[("rank_lost", "n2")]),
    Situation("A signal to srun is no crash of its ranks.", f"wlb run -- {SLEEPS_ONCE}", "ended_srun", nodes=2, meanwhile=end_srun,
              runs={"": ("complete", 2)}, output=("wlb: attempt 1: srun was told by a signal to end its tasks",),
              faults=[("step_failed", None)], after=no_rank_is_blamed),
    refused("More tasks than the job has CPUs are refused once.", "refused_cpus", "--tasks-per-node=9 -- true",
            "Unable to create step for job [0-9]+: More processors requested than permitted", "--cpus-per-task", nodes=2),
    refused("So is an option that srun does not know.", "refused_option", "--srun-args --frobnicate -- true",
            "unrecognized option .*--frobnicate", "--srun-args"),
    refused("So is a value that srun does not take.", "refused_value", "--srun-args --exclusive=foo -- true",
            "Invalid --exclusive specification", "--srun-args"),
    refused("So are GPUs that the job does not have.", "refused_gres", "--srun-args --gpus-per-node=9 -- true",
            "Unable to create step for job [0-9]+: Invalid generic resource .gres. specification", "sbatch --gpus-per-node"),
    refused("So is a node that the job does not have.", "refused_node", "--srun-args --nodelist=n4 -- true",
            "Unable to create step for job [0-9]+: Requested node configuration is not available", "--nodelist"),
    refused("So is an MPI plugin that is not installed.", "refused_mpi", "--srun-args --mpi=nosuch -- true", "Invalid MPI type 'nosuch'",
            "wlb doctor"),
    refused("So is a file for the output that cannot be made.", "refused_output", "--srun-args --output=/no/such/file -- true",
            "Could not open stdout file: No such file or directory", "--srun-args"),
    refused("So is a command that does not exist.", "refused_command", "-- /no/such/program",
            "execve.*: /no/such/program: No such file or directory", "full path", nodes=2),
    refused("So is one that may not be executed.", "refused_permission", "-- /etc/passwd", "execve.*: /etc/passwd: Permission denied",
            "chmod", nodes=2),
    Situation("A job that asks for GPUs alone runs a rank for each, which share its CPUs.",
              "wlb run -- bash -c 'echo a rank of $SLURM_NTASKS'", "gpus_alone", nodes=2,
              options=("--wlb-layout=auto", "--no-kill", "--gpus-per-node=4"), runs={"": ("complete", 1)}, faults=[],
              output=("wlb: the job has 1 CPU on a node, which the tasks of 4 GPUs share; .* --ntasks-per-node=4",), after=tasks_of_gpus),
    Situation("Where the partition gives CPUs with each GPU, they are enough.", "wlb run -- bash -c 'echo a rank of $SLURM_NTASKS'",
              "gpus_with_cpus", nodes=2, options=("--wlb-layout=auto", "--no-kill", "--gpus-per-node=4", "--cpus-per-gpu=2"),
              runs={"": ("complete", 1)}, faults=[], not_output=("share",), after=tasks_of_gpus),
    Situation("A run whose job's name is not UTF-8 is recorded, and its name is listed with U+FFFD.", "wlb run -- true",
              "latin1_name", options=(*AUTO, "-J", "caf\udce9"), runs={"": ("complete", 1)}, not_output=("coordinator",),
              after=is_named("caf\ufffd")),
    Situation("A name of bytes 1 to 255.", "wlb run -- true", "name_of_every_byte", options=(*AUTO, "-J", EVERY_BYTE[:-1]),
              runs={"": ("complete", 1)}, not_output=("coordinator",), after=is_shown),
    Situation("A name of cut and forbidden sequences.", "wlb run -- true", "name_of_cut_sequences", options=(*AUTO, "-J", CUT),
              runs={"": ("complete", 1)}, not_output=("coordinator",), after=is_named(stored(CUT))),
    Situation("A name too long for its place is cut between two characters.", "wlb run -- true", "long_name",
              options=(*AUTO, "-J", "\u00e9" * 130), runs={"": ("complete", 1)}, not_output=("coordinator",),
              after=is_named("\u00e9" * 127)),
    Situation("A name of control characters reaches no terminal and no log.", "wlb run -- true", "name_of_controls",
              options=(*AUTO, "-J", CONTROLS), runs={"": ("complete", 1)}, after=is_named(CONTROLS)),
    Situation("After a crash in a job of such a name the next attempt starts.", CRASH_ONCE, "latin1_name_and_crash",
              options=(*AUTO, "-J", "caf\udce9"), runs={"": ("complete", 2)}, not_output=("waiting for the coordinator",),
              after=is_named("caf\ufffd")),
    Situation("A model's path that is not UTF-8, and does not exist, is the reason of the failure.",
              r"wlb run -- wlb-worker train --model $'/no/caf\xe9.json' --data-path none --seq-length 64 --global-batch-size 1 --train-iters 1 --lr 1",
              "latin1_model", state="FAILED", runs={"": ("failed", 1)}, output=("/no/caf\ufffd.json",),
              not_output=("waiting for the coordinator", "no next attempt"), after=has_reason("/no/caf\ufffd.json")),
    Situation("The same where each rank finds it.",
              r"wlb run -- wlb-worker train --model $'/no/caf\xe9.json' --data-path none --seq-length 64 --global-batch-size 1 --train-iters 1 --lr 1",
              "latin1_model_of_ranks", options=("--wlb-layout=dp=1", "--no-kill", "--ntasks-per-node=1"), state="FAILED",
              runs={"": ("failed", 1)}, output=("/no/caf\ufffd.json",), after=has_reason("/no/caf\ufffd.json")),
    Situation("Datasets and checkpoints in a folder whose name is not UTF-8 are read and written there.", TRAIN, "latin1_folder",
              runs={"": ("complete", 1)}, not_output=("coordinator",), after=has_checkpoints),
    Situation("A spool folder whose name is not UTF-8 is used.", r"wlb run --spool-dir $'sp\xe9' -- true", "latin1_spool",
              runs={"": ("complete", 1)}, not_output=("coordinator",), after=is_shown),
    Situation("A work folder whose name is not UTF-8.", "mkdir -p $'w\\xe9'; cd $'w\\xe9'; " + CRASH_ONCE, "latin1_work_folder",
              runs={"": ("complete", 2)}, after=is_shown),
    Situation("A comment and settings that are not UTF-8.", r"export WLB_MODEL=$'/m\xe9.json' SLURM_CLUSTER_NAME=$'c\xe9'; wlb run -- true",
              "latin1_settings", options=(*AUTO, "--comment=caf\udce9"), runs={"": ("complete", 1)}, not_output=("coordinator",),
              after=is_shown),
    Situation("A coordinator that refuses a run is not unavailable: the run goes on, ends at once after a crash, and says why.",
              "export WLB_RUN_ID=999999; wlb run -- bash -c 'kill -9 $$'", "refused_run", state="FAILED",
              output=("the coordinator refuses this run, which continues without it: field 'run_id': '999999' must be",
                      "no next attempt: field 'run_id': '999999' must be"), not_output=("waiting for the coordinator",)),
    Situation("A line that looks like srun's and names a node that is not UTF-8 costs no attempt.",
              r"wlb run -- bash -c 'test -e again-$SLURM_JOB_ID && exit; touch again-$SLURM_JOB_ID; "
              r'printf "srun: error: caf\xe9: task 0: Exited with exit code 3\n" >&2; exit 3' + "'", "latin1_line_of_srun",
              runs={"": ("complete", 2)}, not_output=("waiting for the coordinator",), after=is_shown),
    Situation("Of two users who submit from one directory, each has the record of his run.", "wlb run -- true", "two_users",
              user=DAEMON, before=run_of_root, runs=COMPLETE, after=files_in(".wlb-{user}")),
    Situation("A FIFO in another's .wlb does not hold the run.", "wlb run -- true", "a_pipe_of_another", user=DAEMON,
              before=prepared((BIN, "mkdir .wlb; mkfifo $count")), runs=COMPLETE, after=files_in(".wlb-{user}")),
    Situation("A lock in another's .wlb does not hold the run.", "wlb run -- true", "a_lock_of_another", user=DAEMON,
              before=prepared((BIN, "mkdir .wlb; exec 9> $count; " + LOCK_9)), runs=COMPLETE,
              after=files_in(".wlb-{user}")),
    Situation("A directory in the place of a file of another's .wlb does not cost the record.", "wlb run -- true",
              "a_directory_of_another", user=DAEMON, before=prepared((BIN, "mkdir -p $count")), runs=COMPLETE,
              after=files_in(".wlb-{user}")),
    Situation("A .wlb that is a link of another leads the run nowhere.", "wlb run -- true", "a_link_of_another", user=DAEMON,
              before=prepared((BIN, "mkdir there; ln -s there .wlb")), runs=COMPLETE,
              after=files_in(".wlb-{user}")),
    Situation("A .wlb that is a file does not cost the record.", "wlb run -- true", "a_file", user=DAEMON,
              before=prepared((BIN, "touch .wlb")), runs=COMPLETE, after=files_in(".wlb-{user}")),
    Situation("A .wlb that is a FIFO does not hold the run.", "wlb run -- true", "a_pipe", user=DAEMON,
              before=prepared((BIN, "mkfifo .wlb")), runs=COMPLETE, after=files_in(".wlb-{user}")),
    Situation("A user's own .wlb to which others could write is used, and closed to them; what they have put there is named.",
              "wlb run -- true", "a_directory_that_was_open", user=DAEMON,
              before=prepared((DAEMON, "mkdir .wlb"), (BIN, "mkfifo $count")), runs=COMPLETE,
              output=(r"\.json: must be a regular file of user 1.*move it away",), after=files_in(".wlb")),
    Situation("Root's job in a directory of a user has its own folder there.", "wlb run -- true", "root_among_users", user=0,
              before=prepared((DAEMON, "mkdir .wlb; mkfifo $count")), runs=COMPLETE, after=files_in(".wlb-{user}")),
    Situation("Where others have both directories, the run is refused before its step, with the owners and the remedy.",
              "wlb run -- touch begun", "no_directory", user=DAEMON, before=BOTH_OF_ANOTHER, state="FAILED",
              output=(r"/\.wlb: belongs to bin \(2\); directory \S*/\.wlb-1: belongs to bin \(2\); .*WLB_SPOOL_DIR.*--spool-dir",),
              not_output=("attempt 1",), after=exit_code(2)),
    Situation("The remedy helps: a directory of the user's, by its name.", "mkdir -m 700 mine\nWLB_SPOOL_DIR=mine wlb run -- true",
              "a_named_directory", user=DAEMON, before=BOTH_OF_ANOTHER, runs=COMPLETE, after=files_in("mine")),
    Situation("A named directory that users share has a folder for each.", "wlb run --spool-dir common -- true", "a_shared_directory",
              user=DAEMON, before=prepared((BIN, "mkdir common")), runs=COMPLETE, after=files_in("common/.wlb-{user}")),
    Situation("A command without --wlb-layout needs no directory.", "wlb run -- true", "off_needs_none", options=(), user=DAEMON,
              before=BOTH_OF_ANOTHER, output=("neither recorded",)),
    Situation("Records that wait in a user's folder beside that of another are delivered after the job.", "wlb run -- true",
              "delivered_from_beside", user=DAEMON, before=without_wlbd(OF_ANOTHER), after=with_wlbd_again(files_in(".wlb-{user}"))),
    Situation("Who replaces the folder while the run works does not hold it.", "wlb run -- sh -c 'touch begun; sleep 2'",
              "a_folder_that_is_replaced", user=DAEMON, meanwhile=replaced, runs=COMPLETE),
    Situation("A lock that another process of the user keeps does not hold the run.",
              f"mkdir -pm 700 .wlb\nexec 9<> .wlb/$SLURM_JOB_ID.json\n{LOCK_9}\nwlb run -- true", "a_lock_of_the_user",
              runs=COMPLETE, output=(r"\.json: cannot be written: another process locks it",)),
    Situation("The mode of the folder that the user changes while the run works costs no record.",
              "wlb run -- sh -c 'chmod -R 777 .wlb; [ $WLB_ATTEMPT = 2 ]'", "a_folder_that_is_opened", runs={"": ("complete", 2)},
              after=files_in(".wlb", 0o777)),
    Situation("A complete run whose job starts again while wlbd is away goes on with that start: it is watched, and tried again.",
              REQUEUED_AFTER_ITS_END, "requeued_after_its_end", ONE_RUN, meanwhile=requeue_without_wlbd, runs={"": ("complete", 3)}),
    Situation("Where the user may not write to the submit directory, the run trains and says what is not recorded.",
              "wlb run -- echo trained", "submit_directory_of_another", user=DAEMON, options=("--wlb-layout=auto", "-o/dev/null"),
              before=lambda test, _job: test.cluster.work.chmod(0o755), runs=COMPLETE),
    Situation("A job that a rank has submitted is none of the processes that it has left, and runs on.",
              "rm -f evaluation-begun; wlb run -- bash -c 'env -u SLURM_WLB_LAYOUT sbatch -w $SLURMD_NODENAME -n1 -o evaluation.out --wrap "
              "\"touch evaluation-begun; sleep 4; echo evaluated\"; while ! [[ -e evaluation-begun ]]; do sleep 0.1; done'",
              "a_job_of_a_rank", options=("--wlb-layout=auto", "--no-kill", "-n1"), runs=COMPLETE, after=is_evaluated),
    Situation("What ranks have left in sessions of their own is gone before the next attempt, and after the run.", LEAVES_PROCESSES,
              "left_processes", nodes=2, runs={"": ("complete", 2)},
              output=("error: .*wlb: ended 2 processes that ranks had left on n1", "wlb: ended 2 processes that ranks had left on n2",
                      "that of the script works on"),
              not_output=("a process is left",), after=none_is_left),
)


def with_lines(text, lines):
    """A configuration file in which each of these lines replaces that of its key."""
    for line in lines.splitlines():
        text = re.sub(rf"^\s*{line.split('=')[0].strip()}\s*=.*\n", "", text, flags=re.MULTILINE) + line + "\n"
    return text


class Checks(ClusterTest):
    """Each row is a test of one of the classes below."""

    nodes = 4
    user = 0

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        training.make_input(cls.cluster.work)

    def setUp(self):
        self.slurm_conf = self.cluster.dir / "etc/slurm.conf"
        self.addCleanup(self.configure, self.slurm_conf.read_text(encoding="utf-8"))

    def configure(self, text):
        if text != self.slurm_conf.read_text(encoding="utf-8"):
            self.slurm_conf.write_text(text, encoding="utf-8")
            self.cluster.run("scontrol", "reconfigure")

    def configure_wlbd(self, text):
        (self.cluster.dir / "etc/wlbd.conf").write_text(text, encoding="utf-8")
        self.cluster.restart_wlbd()

    def check_runs(self, situation, job):
        wait_for(f"the ends of the runs of job {job}", lambda: self.cluster.sql(
            f"select name from runs where job_id = {job} and state in ('starting', 'running', 'restarting')") == [], 30)
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

    def check_reasons(self, job):
        """Each attempt that has ended and is not complete says why, and only a requeue makes one after a complete one."""
        for name, in self.cluster.sql(f"select name from runs where job_id = {job}"):
            story = self.cluster.show(name)
            for before, attempt in zip([None, *story["attempts"]], story["attempts"]):
                if attempt["state"] not in ("starting", "running", "complete"):
                    self.assertNotEqual(attempt["reason"], "", attempt)
                if before and before["state"] == "complete":
                    self.assertIn((attempt["attempt"], "begun_again"), [(event["attempt"], event["kind"]) for event in story["events"]])

    def submit(self, situation):
        self.user = situation.user or 0
        account = {"user": self.user, "group": self.user, "extra_groups": []} if self.user else {}
        hold = ("--hold",) if situation.before else ()
        job = self.cluster.sbatch(situation.script, *situation.options, *hold, nodes=situation.nodes, **account)
        if situation.before:
            situation.before(self, job)
            self.cluster.run("scontrol", "release", job)
        return job

    def check(self, situation):
        self.configure(with_lines(self.slurm_conf.read_text(encoding="utf-8"), situation.slurm_conf))
        if situation.wlbd_conf:
            path = self.cluster.dir / "etc/wlbd.conf"
            before = path.read_text(encoding="utf-8")
            self.addCleanup(self.configure_wlbd, before)
            self.configure_wlbd(with_lines(before, situation.wlbd_conf))
        job = self.submit(situation)
        if situation.meanwhile:
            situation.meanwhile(self, job)
        self.assertEqual(self.cluster.wait_job(job), situation.state, self.cluster.output(job))
        output = self.cluster.output(job)
        for pattern in situation.output:
            self.assertRegex(output, re.compile(pattern, re.MULTILINE))
        for pattern in situation.not_output:
            self.assertNotRegex(output, re.compile(pattern, re.MULTILINE))
        self.check_reasons(job)
        if situation.runs is not None:
            self.check_runs(situation, job)
        if situation.faults is not None:
            self.check_faults(situation, job)
        if situation.after:
            situation.after(self, job)


class Reports(Checks):
    """Every second row of root's; ctest runs the others as a test of its own, cluster_more_reports."""


class MoreReports(Checks):
    pass


class OtherUsers(Checks):
    for_others = True

    def setUp(self):
        super().setUp()
        self.cluster.work = pathlib.Path(tempfile.mkdtemp(dir=self.cluster.home))
        self.cluster.work.chmod(0o777)


def test_of(situation):
    def test(self):
        self.check(situation)

    test.__doc__ = situation.sentence
    return test


for number, row in enumerate(SITUATIONS):
    setattr((Reports, MoreReports)[number % 2] if row.user is None else OtherUsers, f"test_{row.name}", test_of(row))

if __name__ == "__main__":
    if len(sys.argv) == 1:
        sys.argv += ["Reports", "OtherUsers"]
    main()
