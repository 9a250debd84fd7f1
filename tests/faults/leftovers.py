"""What a run leaves behind on its cluster, and whether `wlb show` tells people what it tells programs."""
import collections
import pathlib
import re

from harness import Failed
from inject import program, read_command, read_environment, read_parent, stepds


def state_of(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace").rpartition(")")[2].split()[0]
    except OSError:
        return "X"


def processes(cluster, of_slurm=True):
    """What runs on the cluster beside its daemons, a text each; without slurmstepds if so wished: one whose step is over
    waits up to a minute for those of nodes that are gone."""
    cluster.scontrol.close()  # it is the test's
    daemons = {int(path.read_text(encoding="ascii").split()[0]) for path in cluster.dir.glob("run/*.pid")}
    managers = stepds(cluster)
    found = dict(managers) if of_slurm else {}
    for folder in pathlib.Path("/proc").glob("[0-9]*"):
        pid = int(folder.name)
        if pid not in managers and belongs(pid, folder, cluster) and not is_daemon(pid, daemons):
            found[pid] = read_command(pid)
    return [f"{command[:100]} ({place(pid)}, state {state_of(pid)})" for pid, command in found.items()
            if state_of(pid) not in "ZX"]


def belongs(pid, folder, cluster):
    marks = (str(cluster.dir), str(cluster.work))
    try:
        folders = [str(path.readlink()) for path in (folder / "cwd", folder / "exe")]
    except OSError:
        return False
    environment = read_environment(pid)
    return any(mark in text for mark in marks for text in [*folders, *environment.values(), read_command(pid)])


def is_daemon(pid, daemons):
    """A daemon, or what PostgreSQL, slurmctld or slurmd have started to serve them."""
    try:
        return pid in daemons or (read_parent(pid) in daemons and program(pid) in ("postgres", "slurmctld", "slurmd"))
    except OSError:
        return True


def place(pid):
    environment = read_environment(pid)
    return f"job {environment.get('SLURM_JOB_ID', '?')} on {environment.get('SLURMD_NODENAME', '?')}"


def of_slurm(cluster):
    """Jobs, steps and reservations."""
    found = [f"job {line}" for line in lines(cluster, "squeue", "-h", "-o", "%i %T %r")]
    found += [f"step {line}" for line in lines(cluster, "squeue", "-h", "-s", "-o", "%i")]
    return found + [f"reservation {line}" for line in lines(cluster, "scontrol", "-o", "show", "reservation")
                    if not line.startswith("No reservations")]


def of_spool(cluster):
    return [f"records in {path.relative_to(cluster.work)}" for path in cluster.work.glob(".wlb/**/*.jsonl")]


def of_database(cluster, run):
    return [f"attempt {number} is {state} in the database" for number, state in cluster.sql(
        "SELECT number, a.state FROM attempts a JOIN runs r ON r.id = run_id "
        f"WHERE r.name = '{run}' AND a.state IN ('starting', 'running')")]


def ill_nodes(cluster, dead=()):
    """Nodes that Slurm would not use, although they are alive."""
    found = []
    for line in lines(cluster, "sinfo", "-h", "-N", "-o", "%N %t %E"):
        node, state, reason = line.split(maxsplit=2)
        if node not in dead and not re.fullmatch("(idle|mix|alloc)", state):
            found.append(f"{node} is {state} ({reason})")
    return found


def lines(cluster, *command):
    """Of what a command prints; the failure as a line, so that it counts as something left."""
    try:
        return cluster.run(*command, timeout_s=20).stdout.splitlines()
    except Failed as error:
        return [str(error)]


def folded_faults(faults):
    """Lost ranks that are one line of `wlb show`: several of an attempt that another fault ended."""
    of_attempt = collections.defaultdict(list)
    for fault in faults:
        of_attempt[fault["attempt"]].append(fault)
    folded = []
    for group in of_attempt.values():
        after = [fault for fault in group if fault["kind"] == "rank_lost" and fault["cause"] is False and fault["rank"] is not None]
        if len(after) > 1 and any(fault["cause"] for fault in group):
            folded += after
    return folded


def disagreements(text, run):
    """What `wlb show` does not say as `wlb show --json` does."""
    squeezed = re.sub(r" +", " ", text)
    wanted = [f"Run {run['run_id']}: {run['state']}"]
    for attempt in run["attempts"]:
        wanted.append(f" {attempt['attempt']} {attempt['state']} ")
        wanted.append(attempt["reason"] or "")
    folded = folded_faults(run["faults"])
    for attempt in {fault["attempt"] for fault in folded}:
        wanted.append(f"{sum(fault['attempt'] == attempt for fault in folded)} more ranks ended after it: ")
    for fault in run["faults"]:
        if fault in folded:
            continue
        rank = "-" if fault["rank"] is None else fault["rank"]
        wanted.append(f" {fault['kind']} {fault['node'] or '-'} {rank} ")
        wanted.append(fault["detail"] or "")
    return [f"wlb show does not say '{words}'" for words in wanted if re.sub(r" +", " ", words) not in squeezed]
