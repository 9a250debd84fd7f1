"""The kinds of fault: the faults that are injected into a run, and the end that the run must have.

A run has four nodes of two ranks each; n1 has the job's script, `wlb run` and srun. {node}, {second} are two of the others,
{leader} and {rank} the local ranks 0 and 1 of {node}.
"""
import dataclasses
import random

NODES = 4
RANKS_PER_NODE = 2
BATCH_NODE = "n1"


@dataclasses.dataclass(frozen=True)
class Kind:
    name: str
    script: str  # the faults, injected once the run is under way: see inject.py
    causes: tuple = ()  # one of these is the cause of the first attempt's end: kind, node, rank; () when nothing may be
    reason: str = ""  # what the reason of that attempt must match
    attempts: tuple = (1, 1)  # least and most
    requeues: tuple = (0, 0)
    dead: str = ""  # nodes that were really lost: reasons may name them, and the run ends without them
    returned: str = ""  # those of them that are there again some seconds later: the run may end on them
    evicted: str = ""  # nodes that live, without which the run may end
    long: bool = False  # the run lasts longer than its faults
    covering: str = ""  # the trainer with which continuous integration runs it
    trainers: tuple = ("ours", "foreign")  # with which it can be
    link_mbit: int = 0  # of the nodes' own network; 0: they have none
    beside: str = ""  # nodes and ranks that a reason may name beside those of the cause
    stopped: str = ""  # what the reason of an attempt that ended without a fault matches; "": there is none
    spares: int = 0  # nodes that the run keeps for later attempts


def harmless(name, script, **more):
    """A fault that ends no attempt."""
    return Kind(name, script, **{"long": True, **more})


def lost_rank(name, script, rank, node="{node}", **more):
    return Kind(name, script, (f"rank_lost {node} {rank}",), rf"\brank {rank} on {node}\b", **{"attempts": (2, 2), **more})


def lost_node(name, script, node="{node}", **more):
    return Kind(name, script, (f"node_lost {node} -",), rf"\bnode {node}\b", **{
        "dead": node, "attempts": (2, 2), "requeues": (1, 1) if node == BATCH_NODE else (0, 0), **more})


def requeued(name, script, causes, reason, **more):
    return Kind(name, script, causes, reason, attempts=(2, 2), requeues=(1, 1), **more)


def lost_step(name, script, reason, **more):
    return Kind(name, script, ("step_failed - -", "step_failed n1 -"), reason, attempts=(2, 2), **more)


LAUNCHER = (("launcher_lost n1 -",), r"\bwlb run\b")
SCRIPT = (("script_lost n1 -", "script_lost - -"), r"\bscript\b")
NODE = (("node_lost {node} -",), r"\bnode {node}\b")

KINDS = (
    lost_rank("rank", "kill rank {rank}", "{rank}", covering="foreign"),
    lost_rank("rank crashes", "crash rank {rank}", "{rank}"),
    lost_rank("rank exits with 1", "exit rank {rank}", "{rank}"),
    lost_rank("local rank 0", "kill rank {leader}", "{leader}", covering="ours"),
    lost_rank("rank 0", "kill rank 0", "0", "n1"),
    Kind("two ranks of a node", "kill rank {leader} {rank}", ("rank_lost {node} {leader}", "rank_lost {node} {rank}"),
         r"\brank ({leader}|{rank}) on {node}\b", attempts=(2, 2), covering="foreign"),
    # A stop of one rank is a hang from 5 s on (docs/verdicts.md).
    harmless("local rank 0 stopped", "freeze rank {leader}; sleep 4; thaw rank {leader}"),
    # Only wlb-worker reports what its ranks wait for.
    Kind("rank hangs", "freeze rank {rank}", ("hang {node} {rank}",), r"\brank {rank} on {node} hangs\b", attempts=(2, 2),
         evicted="{node}", trainers=("ours",)),

    # Whose link it is a check of the links between the nodes finds. All nodes exchange messages with {node}; n3 and n4 do in
    # every layout of eight ranks.
    Kind("link of a node cut", "cut link {node}", ("hang {node} -",), r"^{node} does not reach ", attempts=(2, 2), evicted="{node}",
         trainers=("ours",), link_mbit=200, beside="n1 n2 n3 n4"),
    Kind("link between two nodes cut", "cut link n3 n4", ("hang n4 -",), "^n4 does not reach n3: ", attempts=(2, 2), evicted="n4",
         trainers=("ours",), link_mbit=200, beside="n3"),

    # Slurm creates no step for some seconds after slurmctld was started, and the check of the links is one.
    Kind("link cut and slurmctld killed", "cut link n3 n4; kill slurmctld; sleep 7; start slurmctld", ("hang n4 -",),
         "^n4 does not reach n3: ", attempts=(2, 2), evicted="n4", trainers=("ours",), link_mbit=200, beside="n3", long=True),

    harmless("agent killed", "kill agent {node}; sleep 4"),
    harmless("agent stopped", "freeze agent {node}; sleep 12; thaw agent {node}"),
    lost_rank("agent then its local rank 0", "kill agent {node}; sleep 2; kill rank {leader}", "{leader}", long=True),
    lost_node("agent then its node", "kill agent {node}; sleep 2; kill node {node}", long=True),

    lost_node("node", "kill node {node}", covering="ours"),
    lost_node("batch node", "kill node n1", "n1", covering="foreign"),
    lost_node("two nodes", "kill node {node}; sleep 1.5; kill node {second}", attempts=(2, 3),
              dead="{node} {second}", covering="ours"),
    lost_rank("rank then node", "kill rank {rank}; sleep 1.5; kill node {second}", "{rank}", attempts=(2, 3),
              dead="{second}"),
    lost_rank("local rank 0 then node", "kill rank {leader}; sleep 1.5; kill node {second}", "{leader}", attempts=(2, 3),
              dead="{second}"),

    harmless("wlbd killed", "kill wlbd; sleep 4; start wlbd"),
    harmless("wlbd stopped", "freeze wlbd; sleep 6; thaw wlbd"),
    # The clients pause for longer than a connection that closes has time to come back.
    harmless("wlbd stopped for 9 s", "freeze wlbd; sleep 9; thaw wlbd"),
    harmless("wlbd stopped for 15 s", "freeze wlbd; sleep 15; thaw wlbd"),
    lost_node("node and wlbd", "kill node {node}; kill wlbd; sleep 4; start wlbd"),
    lost_node("wlbd then node", "kill wlbd; sleep 1; kill node {node}; sleep 4; start wlbd"),
    lost_rank("wlbd then local rank 0", "kill wlbd; sleep 1; kill rank {leader}; sleep 4; start wlbd", "{leader}"),

    harmless("database away", "stop database; sleep 6; start database"),
    harmless("database away at the end", "stop database; wait end; sleep 15; start database", long=False),
    lost_node("database away and node", "stop database; kill node {node}; sleep 5; start database", covering="foreign"),

    harmless("slurmctld killed", "kill slurmctld; sleep 5; start slurmctld"),
    harmless("slurmctld stopped", "freeze slurmctld; sleep 6; thaw slurmctld", covering="foreign"),
    lost_rank("slurmctld killed and rank", "kill slurmctld; kill rank {rank}; sleep 5; start slurmctld", "{rank}", long=True),
    # Longer than three attempts last that cannot start.
    lost_rank("slurmctld away for 90 s and rank", "kill slurmctld; kill rank {rank}; sleep 90; start slurmctld", "{rank}", long=True),
    lost_rank("slurmctld killed and local rank 0",
              "kill slurmctld; kill rank {leader}; sleep 5; start slurmctld", "{leader}", long=True),
    lost_node("slurmctld killed and node", "kill slurmctld; kill node {node}; sleep 5; start slurmctld", long=True),
    lost_node("slurmctld killed and batch node", "kill slurmctld; kill node n1; sleep 5; start slurmctld", "n1", long=True),
    lost_rank("slurmctld stopped and rank", "freeze slurmctld; kill rank {rank}; sleep 6; thaw slurmctld", "{rank}"),
    lost_rank("slurmctld stopped and local rank 0",
              "freeze slurmctld; kill rank {leader}; sleep 6; thaw slurmctld", "{leader}"),
    lost_node("slurmctld stopped and node", "freeze slurmctld; kill node {node}; sleep 6; thaw slurmctld"),
    lost_node("slurmctld stopped and batch node", "freeze slurmctld; kill node n1; sleep 6; thaw slurmctld", "n1"),

    lost_step("srun killed", "kill srun", r"\bsrun\b", covering="foreign"),
    lost_step("srun killed with its helper", "kill srun srun-helper", r"\bsrun\b"),
    Kind("slurmstepd killed", "kill stepd {node}",
         ("step_failed {node} -", "rank_lost {node} {leader}", "rank_lost {node} {rank}"), r"\b{node}\b", attempts=(2, 2)),
    harmless("slurmstepd stopped", "freeze stepd {node}; sleep 6; thaw stepd {node}"),
    # Slurm may find out only when the script has ended in order: then nothing was lost.
    Kind("batch slurmstepd killed", "kill batch-stepd", (*SCRIPT[0], ""), r"\bscript\b|^$", attempts=(1, 2),
         requeues=(0, 1)),
    harmless("batch slurmstepd stopped", "freeze batch-stepd; sleep 6; thaw batch-stepd"),
    harmless("slurmd killed", "kill slurmd-{node}; sleep 3; start slurmd-{node}"),
    harmless("slurmd stopped", "freeze slurmd-{node}; sleep 6; thaw slurmd-{node}"),
    lost_rank("slurmd stopped then rank", "freeze slurmd-{node}; sleep 1; kill rank {rank}; sleep 6; thaw slurmd-{node}", "{rank}",
              evicted="{node}", covering="foreign"),
    harmless("batch slurmd killed", "kill slurmd-n1; sleep 3; start slurmd-n1"),
    harmless("munged stopped", "freeze munged; sleep 6; thaw munged"),

    harmless("node frozen for 8 s", "freeze node {node}; sleep 8; thaw node {node}"),
    lost_node("node frozen", "freeze node {node}"),
    lost_node("batch node frozen", "freeze node n1", "n1"),

    requeued("wlb run killed", "kill launcher", *LAUNCHER),
    requeued("wlb run and wlbd killed", "kill wlbd; kill launcher; sleep 4; start wlbd", *LAUNCHER),
    requeued("wlb run and node killed", "kill launcher; kill node {node}", *NODE, dead="{node}"),
    # The node is lost while Slurm ends the job: nothing of the run is left on it that could report.
    requeued("wlb run then node", "kill launcher; sleep 4; kill node {node}", (*LAUNCHER[0], *NODE[0]),
             rf"{LAUNCHER[1]}|{NODE[1]}", dead="{node}"),
    # The job asks for the lost node again.
    Kind("node, then script killed", "kill node {node}; wait attempt 2; sleep 2; kill script", *NODE, attempts=(3, 3), requeues=(1, 1),
         dead="{node}", long=True, covering="foreign"),
    requeued("script killed", "kill script", *SCRIPT, covering="foreign"),
    requeued("script and wlbd killed", "kill wlbd; kill script; sleep 4; start wlbd", *SCRIPT),
    requeued("script and node killed", "kill script; kill node {node}", *NODE, dead="{node}"),
    requeued("script then node", "kill script; sleep 4; kill node {node}", (*SCRIPT[0], *NODE[0]),
             rf"{SCRIPT[1]}|{NODE[1]}", dead="{node}"),
)


@dataclasses.dataclass(frozen=True)
class Places:
    """The nodes of a fault, which replace the words in braces, and the step at which it is injected."""

    node: str = "n3"
    second: str = "n2"
    step: int = 18

    @classmethod
    def draw(cls, seed):
        """Draws nodes and step; the same seed gives the same."""
        draw = random.Random(seed)
        node, second = draw.sample(range(2, NODES + 1), 2)
        return cls(f"n{node}", f"n{second}", draw.randrange(14, 34))

    def fill(self, text):
        leader = (int(self.node[1:]) - 1) * RANKS_PER_NODE
        for word, value in (("node", self.node), ("second", self.second), ("leader", leader), ("rank", leader + 1)):
            text = text.replace(f"{{{word}}}", str(value))
        return text


def fill(kind, places):
    """Returns the kind with the words in braces replaced."""
    return dataclasses.replace(kind, script=places.fill(kind.script), reason=places.fill(kind.reason),
                               causes=tuple(map(places.fill, kind.causes)),
                               dead=places.fill(kind.dead), evicted=places.fill(kind.evicted))
