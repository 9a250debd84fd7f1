"""Injects faults into the private cluster of a test: kills and stops its processes."""
import contextlib
import os
import pathlib
import re
import signal
import time

import exit_process
from harness import Failed

SIGNALS = {"kill": signal.SIGKILL, "crash": signal.SIGSEGV, "freeze": signal.SIGSTOP, "thaw": signal.SIGCONT}
UNDONE_BY = {"kill": "start", "freeze": "thaw", "stop": "start"}
ORDERS = {"requeue": ("scontrol", "requeue"), "suspend": ("scontrol", "suspend"), "resume": ("scontrol", "resume"),
          "signal": ("scancel", "--signal=USR1")}
WAIT_S = 60
WAIT_UNDER_FAULT_S = 3


def read_environment(pid):
    """NAME -> value; {} when the process is gone."""
    try:
        words = pathlib.Path(f"/proc/{pid}/environ").read_bytes().decode(errors="replace").split("\0")
    except OSError:
        return {}
    return dict(word.split("=", 1) for word in words if "=" in word)


def read_command(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
    except OSError:
        return ""


def read_parent(pid):
    text = pathlib.Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace")
    return int(text.rpartition(")")[2].split()[1])


def program(pid):
    """The name of its program's file; "" when the process is gone. Debian's Slurm has names such as slurmstepd-wlm."""
    try:
        return os.path.basename(os.readlink(f"/proc/{pid}/exe")).removesuffix("-wlm")
    except OSError:
        return ""


def stepds(cluster, node="n*"):
    """pid -> title of the slurmstepds, and the log of their slurmd, which tells the node: the title overwrites their
    environment."""
    logs = {str(path) for path in cluster.dir.glob(f"log/slurmd-{node}.log")}
    found = {}
    for folder in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            if (folder / "comm").read_text(encoding="ascii", errors="replace") != "slurmstepd\n":
                continue
            for log in logs & {os.readlink(file) for file in (folder / "fd").iterdir()}:
                found[int(folder.name)] = f"{read_command(folder.name)} {os.path.basename(log)}"
        except OSError:  # it has just ended
            continue
    return found


class Injector:
    """Injects the faults of a script into the cluster and the processes of a job; undoes those that must not outlast the case.

        kill | crash | exit | freeze | thaw rank R... | agent NODE | launcher | script | srun | srun-helper | stepd NODE | batch-stepd
        kill | freeze | thaw | start node NODE | munged | slurmctld | wlbd | slurmd-NODE
        stop | start database, cut link NODE [NODE]
        requeue | suspend | resume | signal job: what an administrator or the user has Slurm do; the signal is SIGUSR1
        sleep SECONDS, wait end | step N | ranks | attempt N | trained N: steps of the newest attempt

    A rank is R, or NODE:LOCAL, which is that of the attempt under way. `try` before a command: what it is done to may be missing,
    since an earlier fault has ended it; has_missed then says so.
    """

    def __init__(self, cluster, job, wait, has_ended):
        """wait(WHAT...) is called for the command `wait`; has_ended() tells whether the job has ended."""
        self.cluster, self.job, self.wait, self.has_ended = cluster, job, wait, has_ended
        self.began = None  # time.time() of the first fault
        self.to_undo = {}  # target -> the command that undoes its fault
        self.frozen = {}  # target -> pids
        self.hit_ranks = set()  # numbers of the ranks that were given as NODE:LOCAL
        self.is_suspended = False  # the job
        self.has_missed = False

    def inject(self, script):
        for line in script.split("; "):
            may_miss = line.startswith("try ")
            verb, target, *rest = line.removeprefix("try ").split()
            if verb == "sleep":
                time.sleep(float(target))
            elif verb == "wait":
                self.wait(target, *rest)
            elif target == "link":
                self.cut_link(*rest)
            elif target == "job":
                self.order(verb, may_miss)
            elif target in ("node", "database") or self.is_service(target):
                self.act_on_service(verb, target, *rest)
            else:
                self.act_on_processes(verb, target, *rest, may_miss=may_miss)

    def undo(self):
        if self.is_suspended:
            self.order("resume", may_miss=True)
        while self.to_undo:
            _, words = self.to_undo.popitem()
            self.cluster.verb(*words)
        for pids in self.frozen.values():
            self.signal("thaw", pids)

    def is_service(self, name):
        return name in ("munged", "slurmctld", "wlbd") or name.startswith("slurmd-")

    def act_on_service(self, verb, target, *rest):
        if target == "slurmctld" and verb == "kill":
            self.cluster.wait_saved(self.job)
        thing = (target, *rest)
        self.began = self.began or time.time()
        if verb in UNDONE_BY:
            self.to_undo[thing] = self.cluster_words(UNDONE_BY[verb], *thing)
        self.cluster.verb(*self.cluster_words(verb, *thing))
        if verb not in UNDONE_BY:
            self.to_undo.pop(thing, None)

    def cut_link(self, node, *peer):
        """Cuts a node's link on the data network, or what it and another send each other there."""
        self.began = self.began or time.time()
        self.to_undo["link", node] = ("restore-link", node[1:])
        self.cluster.verb("cut-link", ",".join(name[1:] for name in (node, *peer)), "--network", "data")

    def order(self, verb, may_miss):
        """Has Slurm do something with the job. A job that was ended while it was suspended is not resumed."""
        command = (*ORDERS[verb], self.job)
        if verb == "resume":
            self.cluster.run(*command, check=False)
        else:
            self.wait_done(lambda: self.cluster.run(*command), may_miss)
            self.began = self.began or time.time()
        self.is_suspended = verb == "suspend"

    def cluster_words(self, verb, target, *rest):
        if target == "database":
            return (f"{verb}-db",)
        if target == "node":
            return ("restore-node" if verb == "start" else f"{verb}-node", *rest)
        return (f"{verb}-service", target)

    def act_on_processes(self, verb, target, *rest, may_miss=False):
        thing = (target, *rest)
        pids = self.frozen.pop(thing, []) if verb == "thaw" else self.wait_done(lambda: self.find(*thing), may_miss) or []
        self.began = self.began or time.time()
        self.signal(verb, pids)
        if verb == "freeze":
            self.frozen[thing] = pids

    def signal(self, verb, pids):
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):  # it was ended for another fault
                if verb == "exit":
                    exit_process.end(pid, 1)
                else:
                    os.kill(pid, SIGNALS[verb])

    def wait_done(self, act, may_miss):
        """Returns what act() does once what it is done to has begun; None if the job has ended before, or if it may be missing. A
        fault that is to be undone does not last much longer for one that is missing."""
        is_under_fault = may_miss and bool(self.to_undo or self.frozen or self.is_suspended)
        until = time.monotonic() + (WAIT_UNDER_FAULT_S if is_under_fault else WAIT_S)
        while True:
            try:
                return act()
            except Failed:
                is_late = time.monotonic() > until
                if (is_late and may_miss) or (not is_under_fault and self.has_ended()):  # under a fault Slurm may not answer
                    self.has_missed = self.has_missed or may_miss
                    return None
                if is_late:
                    raise
            time.sleep(0.1)

    def find(self, target, *rest):
        """Returns the pids of a target, at least one."""
        if target == "rank":
            return [self.rank(number) for number in rest]
        if target in ("stepd", "batch-stepd"):
            title = re.compile(rf"\[{self.job}\.{'batch' if target == 'batch-stepd' else '[0-9]+'}\]")
            pids = [pid for pid, words in stepds(self.cluster, *rest).items() if title.search(words)]
        elif target == "agent":
            pids = [pid for pid in self.cluster.processes("wlb-agent")
                    if read_environment(pid).get("SLURMD_NODENAME") in rest]
        else:
            found = {pid: each for pid in self.job_processes() for each in (target, *rest) if self.is_target(pid, each)}
            pids = list(found) if set(found.values()) == {target, *rest} else []
        if not pids:
            raise Failed(f"job {self.job} has no process '{' '.join((target, *rest))}'")
        return pids

    def job_processes(self):
        return [pid for pid in self.cluster.processes() if read_environment(pid).get("SLURM_JOB_ID") == str(self.job)]

    def is_target(self, pid, target):
        name = program(pid)
        if target == "launcher":
            return name == "wlb"
        if target == "srun":
            return name == "srun" and program(read_parent(pid)) == "wlb"
        if target == "srun-helper":
            return name == "srun" and program(read_parent(pid)) == "srun"
        return target == "script" and "/slurm_script" in read_command(pid)

    def has_rank(self, number):
        try:
            return self.rank(str(number)) is not None
        except Failed:
            return False

    def rank(self, word):
        """word: R or NODE:LOCAL."""
        node, _, local = word.rpartition(":")
        wanted = {"SLURMD_NODENAME": node, "SLURM_LOCALID": local} if node else {"PMIX_RANK": word}
        for pid in self.job_processes():
            found = read_environment(pid)
            if found.items() >= wanted.items() and "PMIX_RANK" in found and program(read_parent(pid)) == "slurmstepd":
                if node:
                    self.hit_ranks.add(found["PMIX_RANK"])
                return pid
        raise Failed(f"job {self.job} has no process of rank {word}")
