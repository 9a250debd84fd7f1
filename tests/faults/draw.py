"""Draws the cases of a campaign from a seed: a fault or two, when they come, the trainer, its layout and options, and the network.

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
WIDE_LAYOUTS = ("tp=2,pp=2", "cp=2,pp=2", "tp=2,cp=2")  # not on 6 ranks: for runs that keep all their nodes
LINK_MBIT = 200
GROW = "--wlb-grow=4"
GROWN = r" (?:is usable again|can be replaced): saved (?:step \d+ )?and stopped$"
OPTIONS = ((), (), (), (GROW,), ("--wlb-spares=1",))
MOMENTS = ("step", "step", "save", "start", "last step")
SERVICES = ("wlbd", "database", "slurmctld", "munged")


@dataclasses.dataclass(frozen=True)
class Fault:
    name: str
    target: str  # what no other fault of the case may have
    begin: str  # a command of inject.py
    end: str = ""  # the command that ends it some seconds later; it must not outlast the run where there is none
    lasts_s: tuple = (3, 6)
    ends_first: bool = False  # lasts_s is a bound that no other end may lengthen
    causes: tuple = ()  # of the end of an attempt, "" where it is stopped without a fault; (): it ends none
    may_end_none: bool = False
    causes_after_ranks: tuple = ()  # where it comes after the ranks have ended
    reason: str = ""
    dead: str = ""
    returned: str = ""
    evicted: str = ""
    beside: str = ""
    requeues: int = 0
    trainers: tuple = ("ours", "foreign")
    needs_steps: bool = False  # it must come to an attempt that has trained for some steps
    asks_slurm: bool = False  # slurmctld must answer when it begins
    partners: tuple = ()  # the targets of other faults that may come with it; (): any


@dataclasses.dataclass(frozen=True)
class Setting:
    trainer: str
    options: tuple  # of sbatch
    link_mbit: int  # 0: the nodes have no network of their own

    @property
    def spares(self):
        return int("--wlb-spares=1" in self.options)

    @property
    def nodes(self):
        """How many the first attempt has: n1 and those after it."""
        return NODES - self.spares


def faults_of_rank(node, local_rank):
    leader = (int(node[1:]) - 1) * RANKS_PER_NODE
    rank, ranks = leader + local_rank, range(leader, leader + RANKS_PER_NODE)
    place = f"{node}:{local_rank}"  # a later attempt may have another rank there
    lost = {"causes": (f"rank_lost {node} {rank}",), "reason": rf"\brank {rank} on {node}\b"}
    yield Fault("rank killed", node, f"kill rank {place}", **lost)
    yield Fault("rank crashed", node, f"crash rank {place}", **lost)
    yield Fault("rank exits with 1", node, f"exit rank {place}", **lost)
    yield Fault("two ranks of a node killed", node, f"kill rank {node}:0 {node}:1",
                causes=tuple(f"rank_lost {node} {each}" for each in ranks), reason=rf"\brank (?:{'|'.join(map(str, ranks))}) on {node}\b")
    # One that is stopped for 5 s is said to hang (docs/verdicts.md).
    yield Fault("rank stopped for a while", node, f"freeze rank {place}", f"thaw rank {place}", lasts_s=(3, 4.5), ends_first=True)
    # Nothing is known of the times of calls before some steps; the reports of wlb-worker alone have them.
    yield Fault("rank hangs", node, f"freeze rank {place}", causes=(f"hang {node} {rank}",),
                reason=rf"\brank {rank} on {node} hangs\b", evicted=node, trainers=("ours",), needs_steps=True)


def faults_of_node(node):
    # After its ranks have ended, nothing is left that knows whose slurmstepd has not told srun.
    lost = {"causes": (f"node_lost {node} -",), "causes_after_ranks": ("step_failed - -",), "reason": rf"\bnode {node}\b", "dead": node,
            "requeues": 1 if node == BATCH_NODE else 0}
    yield Fault("node killed", node, f"kill node {node}", **lost)
    yield Fault("node frozen", node, f"freeze node {node}", **lost)
    # It returns when slurmctld, which must see it, is there again after any other fault.
    yield Fault("node killed and back", node, f"kill node {node}", f"start node {node}", (7, 10), returned=node, **lost)
    yield Fault("agent killed", node, f"kill agent {node}")
    yield Fault("agent stopped", node, f"freeze agent {node}", f"thaw agent {node}")
    # An attempt that begins meanwhile, for another fault, cannot use the node.
    yield Fault("slurmd killed", node, f"kill slurmd-{node}", f"start slurmd-{node}", (2, 4), evicted=node)
    yield Fault("slurmd stopped", node, f"freeze slurmd-{node}", f"thaw slurmd-{node}", evicted=node)
    ranks = range((int(node[1:]) - 1) * RANKS_PER_NODE, int(node[1:]) * RANKS_PER_NODE)
    yield Fault("slurmstepd killed", node, f"kill stepd {node}", reason=rf"\b{node}\b|^no node has a slurmstepd\b",
                causes=(f"step_failed {node} -", *(f"rank_lost {node} {rank}" for rank in ranks)),
                causes_after_ranks=("step_failed - -",))
    yield Fault("slurmstepd stopped", node, f"freeze stepd {node}", f"thaw stepd {node}")


def faults_of_services():
    yield Fault("wlbd killed", "wlbd", "kill wlbd", "start wlbd")
    yield Fault("wlbd stopped", "wlbd", "freeze wlbd", "thaw wlbd")
    yield Fault("database away", "database", "stop database", "start database")
    yield Fault("slurmctld killed", "slurmctld", "kill slurmctld", "start slurmctld")
    yield Fault("slurmctld stopped", "slurmctld", "freeze slurmctld", "thaw slurmctld")
    yield Fault("munged stopped", "munged", "freeze munged", "thaw munged")


def faults_of_job():
    srun = {"causes": ("step_failed - -", "step_failed n1 -"), "reason": r"\bsrun\b"}
    yield Fault("srun killed", "srun", "kill srun", **srun)
    yield Fault("srun and its helper killed", "srun", "kill srun srun-helper", **srun)
    yield Fault("wlb run killed", "job", "kill launcher", causes=LAUNCHER[0], reason=LAUNCHER[1], requeues=1)
    yield Fault("script killed", "job", "kill script", causes=SCRIPT[0], reason=SCRIPT[1], requeues=1)
    # Slurm may find out only when the script has ended in order: then nothing was lost.
    yield Fault("batch slurmstepd killed", "batch-stepd", "kill batch-stepd", causes=SCRIPT[0], reason=SCRIPT[1], may_end_none=True,
                requeues=1)
    yield Fault("batch slurmstepd stopped", "batch-stepd", "freeze batch-stepd", "thaw batch-stepd")


def orders_of_job():
    """What an administrator or the user has Slurm do."""
    yield Fault("job queued again", "order", "requeue job", causes=("",), reason=r"^cancelled by signal TERM$|^job \d+ was (requeued|queued again)$",
                requeues=1, asks_slurm=True)
    yield Fault("job asked to stop", "order", "signal job", causes=("",), reason=r"^SIGUSR1: saved (?:step \d+ )?and stopped$", requeues=1,
                trainers=("ours",), needs_steps=True, asks_slurm=True)
    # Of a stopped slurmd Slurm does not say in which order it suspends and resumes; resumption continues a rank that hangs; a
    # suspended job that is requeued is held.
    yield Fault("job suspended", "suspension", "suspend job", "resume job", partners=("wlbd", "database", "srun"))


def faults_of_links(node):
    """Of MPI's network. They last: an attempt that began meanwhile, for another fault, would not start."""
    more = {"trainers": ("ours",), "needs_steps": True, "partners": SERVICES}
    yield Fault("link of a node cut", "link", f"cut link {node}", causes=(f"hang {node} -",), reason=rf"^{node} does not reach ",
                evicted=node, beside="n1 n2 n3 n4", **more)
    # n3 and n4 exchange messages in every layout of eight ranks.
    yield Fault("link between two nodes cut", "link", "cut link n3 n4", causes=("hang n4 -",), reason="^n4 does not reach n3: ",
                evicted="n4", beside="n3", **more)


def groups(draw, setting):
    """The faults that there can be, at a node and a rank that are drawn. Each group is drawn as often as any other."""
    node = f"n{draw.randrange(1, setting.nodes + 1)}"
    found = [faults_of_rank(node, draw.randrange(RANKS_PER_NODE)), faults_of_node(node), faults_of_services(),
             (*faults_of_job(), *orders_of_job()), faults_of_links(node) if setting.link_mbit else ()]
    return [[fault for fault in group if setting.trainer in fault.trainers] for group in found]


def draw_fault(draw, setting, may_come):
    possible = [[fault for fault in group if may_come(fault)] for group in groups(draw, setting)]
    return draw.choice(draw.choice([group for group in possible if group]))


def may_follow(second, first, moment, in_restart):
    """Whether a fault can come after another: within WITHIN_S, or in the restart."""
    if second.target == first.target or (second.asks_slurm and first.target in ("slurmctld", "munged")):
        return False
    if any(one.partners and other.target not in one.partners for one, other in ((first, second), (second, first))):
        return False
    return in_restart or not second.needs_steps or (moment in ("step", "save") and not first.causes)


def draw_second(draw, setting, first, moment):
    """Returns the second fault or None, and whether it comes in the restart after the first."""
    if draw.random() < 0.5:
        return None, False
    # Where the first fault ends an attempt, the second may come while the next one starts.
    in_restart = bool(first.causes) and not first.requeues and draw.random() < 0.4
    return draw_fault(draw, setting, lambda fault: may_follow(fault, first, moment, in_restart)), in_restart


@dataclasses.dataclass(frozen=True)
class Drawn:
    kind: Kind
    faults: tuple  # their names
    setting: Setting
    layout: str

    def arguments(self):
        """Of CaseRunner.run_case."""
        return self.kind, self.setting.trainer, Places(step=0), self.layout, self.setting.link_mbit, self.setting.options


def waits(moment, trainer, draw):
    """The commands that wait for the moment of the first fault."""
    if moment == "start":
        return ["wait ranks", f"sleep {draw.uniform(0, 1):.2f}"]
    step = {"step": draw.randrange(*STEPS), "save": SAVES_AT[trainer], "last step": LAST_STEP[trainer] - 1}[moment]
    return [f"wait step {step}"]


def script_of(first, second, in_restart, moment, trainer, draw):
    """Returns the script of inject.py, and what it is in words."""
    lines, words = [*waits(moment, trainer, draw), first.begin], f"{first.name} at {moment}"
    ends = [(draw.uniform(*first.lasts_s), first)] if first.end else []
    if second is not None:
        after_s = draw.uniform(0, WITHIN_S)
        lines += ["wait attempt 2"] if in_restart else []
        lines += [f"wait trained {STEPS[0]}"] if in_restart and second.needs_steps else []
        lines += [f"sleep {after_s:.2f}", f"try {second.begin}"]
        words += f", {second.name} " + (f"{after_s:.1f} s into the restart" if in_restart else f"{after_s:.1f} s later")
        ends = [(max(at_s - after_s, 0.0), fault) for at_s, fault in ends]  # from now on
        ends += [(draw.uniform(*second.lasts_s), second)] if second.end else []
    # What starts a service again takes some time itself.
    first_s = min((at_s for at_s, _ in ends), default=0.0)
    ends = [(first_s if fault.ends_first else at_s, not fault.ends_first, fault.end) for at_s, fault in ends]
    passed_s = 0.0
    for at_s, _, end in sorted(ends):
        lines += [f"sleep {at_s - passed_s:.2f}", end]
        passed_s = at_s
    return "; ".join(lines), words


def joined(texts):
    return " ".join(text for text in texts if text)


def expected(both, in_restart, moment, setting):
    """What a case with these faults may end as: fields of Kind."""
    ending = [fault for fault in both if fault.causes]
    firsts = ending[:1] if in_restart else ending  # which may end the first attempt
    after_ranks = [cause for fault in firsts if moment == "last step" for cause in fault.causes_after_ranks]
    causes = (*(cause for fault in firsts for cause in fault.causes), *after_ranks)
    # At the last step a fault may find the job ended.
    is_sure = moment != "last step" and any(not fault.may_end_none for fault in firsts)
    stops = [fault.reason for fault in ending if "" in fault.causes]
    growths = 2 * sum(bool(fault.returned or fault.evicted) for fault in both) if GROW in setting.options and ending else 0
    return {"causes": causes if is_sure or not causes else (*causes, ""),
            "reason": "|".join([*(f"(?:{fault.reason})" for fault in firsts), *([] if is_sure else ["^"])]),
            "attempts": (2 if is_sure else 1, 1 + len(ending) + growths),
            "requeues": (0, sum(fault.requeues for fault in both) + growths),
            "dead": joined(fault.dead for fault in both), "returned": joined(fault.returned for fault in both),
            "evicted": joined(fault.evicted for fault in both),
            "beside": joined(text for fault in ending for text in (fault.beside, *fault.causes)),
            "stopped": "|".join([*stops, *([GROWN] if growths else [])]),
            "spares": setting.spares, "long": moment != "last step"}


def draw_setting(draw):
    trainer = draw.choice(("ours", "ours", "foreign"))
    link_mbit, options = LINK_MBIT if draw.random() < 0.25 else 0, draw.choice(OPTIONS)
    # A program that SIGUSR1 ends cannot be stopped to grow. Which links are slow shows only where no node takes another's place.
    if link_mbit or (trainer == "foreign" and GROW in options):
        options = ()
    return Setting(trainer, options, link_mbit)


def draw_layout(draw, setting, both):
    keeps_nodes = not setting.spares and not any(fault.dead or fault.evicted for fault in both)
    return draw.choice(LAYOUTS + WIDE_LAYOUTS if keeps_nodes else LAYOUTS) if setting.trainer == "ours" else "auto"


def draw_case(seed, number):
    """The same seed and number give the same case."""
    draw = random.Random(f"{seed} {number}")
    setting, moment = draw_setting(draw), draw.choice(MOMENTS)
    first = draw_fault(draw, setting, lambda fault: moment in ("step", "save") or not fault.needs_steps)
    second, in_restart = draw_second(draw, setting, first, moment)
    script, words = script_of(first, second, in_restart, moment, setting.trainer, draw)
    both = [fault for fault in (first, second) if fault is not None]
    kind = Kind(f"{seed}.{number} {words}", script, **expected(both, in_restart, moment, setting))
    return Drawn(kind, tuple(fault.name for fault in both), setting, draw_layout(draw, setting, both))
