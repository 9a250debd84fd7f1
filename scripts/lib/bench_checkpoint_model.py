"""How long a checkpoint of a run on many nodes takes by a formula: nothing here is measured."""
import collections

PARAMETER_BYTES = 12  # master and both moments in float32
COPY_BYTES_S = 20e9  # from a GPU to pinned host memory
RANKS_OF_NODE = 8

Run = collections.namedtuple("Run", "name parameters ranks layout writers nodes")  # writers and nodes: those of before
Disks = collections.namedtuple("Disks", "process node total")  # bytes/s that each of them takes at most

RUNS = (Run("8B", 8.03e9, 1024, "tp=1,cp=4,dp=256", 1, 1), Run("70B", 70.6e9, 512, "tp=4,cp=2,pp=4,dp=16", 16, 4))
DISKS = (Disks(1e9, 2e9, 50e9), Disks(2e9, 5e9, 200e9))


def write_s(run, writers, nodes, disks):
    return PARAMETER_BYTES * run.parameters / min(writers * disks.process, nodes * disks.node, disks.total)


def rows():
    """run, checkpoint, disks, then before: writers, training stands still; and after: writers, until it is durable, copy."""
    for run in RUNS:
        for disks in DISKS:
            yield (f"{run.name}, {run.ranks:,} GPUs, {run.layout}", f"{1e-9 * PARAMETER_BYTES * run.parameters:,.0f} GB",
                   " / ".join(f"{1e-9 * speed:g}" for speed in disks), f"{run.writers} on {run.nodes}",
                   f"{write_s(run, run.writers, run.nodes, disks):.1f} s", f"{run.ranks:,} on {run.ranks // RANKS_OF_NODE}",
                   f"{write_s(run, run.ranks, run.ranks // RANKS_OF_NODE, disks):.1f} s",
                   f"{1e3 * PARAMETER_BYTES * run.parameters / run.ranks / COPY_BYTES_S:.0f} ms")
