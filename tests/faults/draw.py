"""Draws the cases of a campaign from a seed: a fault or two, when they come, the trainer, its layout and the network.

The faults are those of kinds.py, one by one, so that any two can come together. What a case may end as follows from its
faults: the cause of the first attempt's end is that of one of them, and only what they name may be named.
"""
import dataclasses
import random

from kinds import BATCH_NODE, LAUNCHER, NODES, RANKS_PER_NODE, SCRIPT, Kind, Places

WITHIN_S = 2  # of two faults
SAVES_AT = {"ours": 24, "foreign": 20}  # steps that are saved at once, after which a fault can come during the save
LAST_STEP = {"ours": 72, "foreign": 100}
STEPS = (14, 34)  # of a fault at any time
LAYOUTS = ("auto", "auto", "tp=2", "cp=2", "pp=2")  # each can be on 8, 6 and 4 ranks
LINK_MBIT = 200
MOMENTS = ("step", "step", "save", "start", "last step")


@dataclasses.dataclass(frozen=True)
class Fault:
    name: str
    target: str  # what no other fault of the case may have
    begin: str  # a command of inject.py
    end: str = ""  # the command that ends it some seconds later; it must not outlast the run where there is none
    lasts_s: tuple = (3, 6)
    causes: tuple = ()  # of the end of an attempt; (): it ends none
    causes_after_ranks: tuple = ()  # where it comes after the ranks have ended
    reason: str = ""
    dead: str = ""
    evicted: str = ""
    requeues: int = 0
    trainers: tuple = ("ours", "foreign")
    moments: tuple = MOMENTS


def faults_of_rank(node, local_rank):
    rank = (int(node[1:]) - 1) * RANKS_PER_NODE + local_rank
    place = f"{node}:{local_rank}"  # a later attempt may have another rank there
    lost = {"causes": (f"rank_lost {node} {rank}",), "reason": rf"\brank {rank} on {node}\b"}
    yield Fault("rank killed", node, f"kill rank {place}", **lost)
    yield Fault("rank crashed", node, f"crash rank {place}", **lost)
    # One that is stopped for 5 s is said to hang (docs/verdicts.md).
    yield Fault("rank stopped for a while", node, f"freeze rank {place}", f"thaw rank {place}", lasts_s=(3, 4.5))
    # Nothing is known of the times of calls before some steps; the reports of wlb-worker alone have them.
    yield Fault("rank hangs", node, f"freeze rank {place}", causes=(f"hang {node} {rank}",),
                reason=rf"\brank {rank} on {node} hangs\b", evicted=node, trainers=("ours",), moments=("step", "save"))


def faults_of_node(node):
    lost = {"causes": (f"node_lost {node} -",), "reason": rf"\bnode {node}\b", "dead": node,
            "requeues": 1 if node == BATCH_NODE else 0}
    yield Fault("node killed", node, f"kill node {node}", **lost)
    yield Fault("node frozen", node, f"freeze node {node}", **lost)
    yield Fault("agent killed", node, f"kill agent {node}")
    yield Fault("agent stopped", node, f"freeze agent {node}", f"thaw agent {node}")
    # An attempt that begins meanwhile, for another fault, cannot use the node.
    yield Fault("slurmd killed", node, f"kill slurmd-{node}", f"start slurmd-{node}", (2, 4), evicted=node)
    yield Fault("slurmd stopped", node, f"freeze slurmd-{node}", f"thaw slurmd-{node}", evicted=node)
    ranks = range((int(node[1:]) - 1) * RANKS_PER_NODE, int(node[1:]) * RANKS_PER_NODE)
    # After its ranks have ended, nothing is left that knows whose slurmstepd has not told srun.
    yield Fault("slurmstepd killed", node, f"kill stepd {node}", reason=rf"\b{node}\b|^no node has a slurmstepd\b",
                causes=(f"step_failed {node} -", *(f"rank_lost {node} {rank}" for rank in ranks)),
                causes_after_ranks=("step_failed - -",))


def faults_of_services():
    yield Fault("wlbd killed", "wlbd", "kill wlbd", "start wlbd")
    yield Fault("wlbd stopped", "wlbd", "freeze wlbd", "thaw wlbd")
    yield Fault("database away", "database", "stop database", "start database")
    yield Fault("slurmctld killed", "slurmctld", "kill slurmctld", "start slurmctld")
    yield Fault("slurmctld stopped", "slurmctld", "freeze slurmctld", "thaw slurmctld")
    yield Fault("munged stopped", "munged", "freeze munged", "thaw munged")


def faults_of_job():
    yield Fault("srun killed", "srun", "kill srun", causes=("step_failed - -", "step_failed n1 -"), reason=r"\bsrun\b")
    yield Fault("wlb run killed", "job", "kill launcher", causes=LAUNCHER[0], reason=LAUNCHER[1], requeues=1)
    yield Fault("script killed", "job", "kill script", causes=SCRIPT[0], reason=SCRIPT[1], requeues=1)


def faults(draw):
    """All faults, at a node and a rank that are drawn."""
    node = f"n{draw.randrange(1, NODES + 1)}"
    return [*faults_of_rank(node, draw.randrange(RANKS_PER_NODE)), *faults_of_node(node), *faults_of_services(), *faults_of_job()]


def draw_fault(draw, trainer, others=()):
    targets = {fault.target for fault in others}
    return draw.choice([fault for fault in faults(draw) if trainer in fault.trainers and fault.target not in targets])


@dataclasses.dataclass(frozen=True)
class Drawn:
    kind: Kind
    trainer: str
    layout: str
    link_mbit: int  # 0: the nodes have no network of their own

    def arguments(self):
        """Of CaseRunner.run_case."""
        return self.kind, self.trainer, Places(step=0), self.layout, self.link_mbit


def waits(moment, trainer, draw):
    """The commands that wait for the moment of the first fault."""
    if moment == "start":
        return ["wait ranks", f"sleep {draw.uniform(0, 1):.2f}"]
    step = {"step": draw.randrange(*STEPS), "save": SAVES_AT[trainer], "last step": LAST_STEP[trainer] - 1}[moment]
    return [f"wait step {step}"]


def script_of(first, second, moment, trainer, draw):
    """Returns the script of inject.py, and what it is in words."""
    lines, words = [*waits(moment, trainer, draw), first.begin], f"{first.name} at {moment}"
    ends = [(draw.uniform(*first.lasts_s), first.end)] if first.end else []
    if second is not None:
        # Where the first fault ends an attempt, the second may come while the next one starts.
        in_restart = bool(first.causes) and not first.requeues and draw.random() < 0.4
        after_s = draw.uniform(0, WITHIN_S)
        lines += (["wait attempt 2"] if in_restart else []) + [f"sleep {after_s:.2f}", f"try {second.begin}"]
        words += f", {second.name} " + (f"{after_s:.1f} s into the restart" if in_restart else f"{after_s:.1f} s later")
        ends += [(draw.uniform(*second.lasts_s), second.end)] if second.end else []
    passed_s = 0.0
    for at_s, end in sorted(ends):
        lines += [f"sleep {at_s - passed_s:.2f}", end]
        passed_s = at_s
    return "; ".join(lines), words


def draw_case(seed, number):
    """The same seed and number give the same case."""
    draw = random.Random(f"{seed} {number}")
    trainer, moment = draw.choice(("ours", "ours", "foreign")), draw.choice(MOMENTS)
    first = draw_fault(draw, trainer)
    while moment not in first.moments:
        first = draw_fault(draw, trainer)
    second = draw_fault(draw, trainer, (first,)) if draw.random() < 0.5 else None
    while second is not None and set(second.moments) != set(MOMENTS):
        second = draw_fault(draw, trainer, (first,))
    script, words = script_of(first, second, moment, trainer, draw)
    both = [fault for fault in (first, second) if fault is not None]
    ending = [fault for fault in both if fault.causes]
    causes = tuple(cause for fault in ending for cause in fault.causes)
    if moment == "last step":
        causes += tuple(cause for fault in ending for cause in fault.causes_after_ranks)
    is_sure = bool(ending) and moment != "last step"  # at the last step a fault may find the job ended
    kind = Kind(f"{seed}.{number} {words}", script, causes if is_sure or not causes else (*causes, ""),
                "|".join([*(f"(?:{fault.reason})" for fault in ending), *([] if is_sure else ["^"])]),
                attempts=(2 if is_sure else 1, 1 + len(ending)), requeues=(0, sum(fault.requeues for fault in both)),
                dead=" ".join(fault.dead for fault in both if fault.dead),
                evicted=" ".join(fault.evicted for fault in both if fault.evicted), long=moment != "last step")
    layout = draw.choice(LAYOUTS) if trainer == "ours" else "auto"
    return Drawn(kind, trainer, layout, LINK_MBIT if draw.random() < 0.25 else 0)
