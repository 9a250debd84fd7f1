#!/usr/bin/env python3
"""Measures what single ranks do with a checkpoint of 16,384 shards, with indexes and with one list: for bench_checkpoint.py.
Usage: bench_checkpoint_ranks.py BUILD_DIR prints the section alone"""
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile

from bench_host import commit_of

LAYOUT, OTHER = "tp=8,pp=4,dp=512", "tp=4,pp=8,dp=256"
READERS = (0, 5000, 8191)  # ranks of either layout
ROUNDS = 3
INDEXES, LIST = ("index", "commit"), ("commit-list",)

SECTION = """## Of 16,384 ranks
[A program](../../tests/bench/checkpoint/many_shards.c) writes the shards of `{layout}`, of a model of 80 layers with small
matrices, into memory, and then does what single ranks do with the files, each in a process of its own. With indexes each 1,024 shards have
one of {index:.1f} MB, and the manifest has {manifest:.1f} MB; *one list* is a manifest of {list:.1f} MB with all shards and blocks, as all
checkpoints had them before. Medians of {rounds} rounds, of resumes those of ranks {readers}: seconds of a processor, since no
disk is waited for, the most memory of the process, and how many shards it opened. Commit {commit}.

| work | of | one list | memory | opened | indexes | memory | opened |
|---|---|---|---|---|---|---|---|
{rows}
"""


class Work:
    """Seconds of a processor, bytes and opened shards of each time."""

    def __init__(self):
        self.results = []

    def add(self, output):
        self.results.append([float(word) for word in output.split()])

    def cells(self):
        if not self.results:
            return "-", "-", "-"
        seconds, peak, opened = (statistics.median(column) for column in zip(*self.results))
        return f"{seconds:.2f} s", f"{1e-6 * peak:.0f} MB", f"{opened:,.0f}"


class ManyShards:
    def __init__(self, build):
        self.program = build / "tests/wlb-many-shards"
        self.works = {}
        self.bytes = {}
        with tempfile.TemporaryDirectory(prefix="wlb-bench-", dir="/dev/shm") as name:
            self.folder = pathlib.Path(name, "checkpoints")
            self.partial, self.final = self.folder / ".step_00000001.bench.partial", self.folder / "step_00000001"
            self.run(LAYOUT, "write")
            for _ in range(ROUNDS):
                self.measure(LIST)
                self.measure(INDEXES)

    def run(self, layout, work, *rank):
        command = [self.program, layout, work, self.folder, *map(str, rank)]
        return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout

    def measure(self, commits):
        note = lambda kind, *words: self.works.setdefault((commits, kind), Work()).add(self.run(*words))  # noqa: E731
        if commits == INDEXES:
            self.run(LAYOUT, "indexes")
        for work in commits:
            note(work.split("-")[0], LAYOUT, work)
        note("find", LAYOUT, "find")
        for rank in READERS:
            note("read", LAYOUT, "read", rank)
            note("other", OTHER, "read", rank)
        self.bytes[commits] = {name: (self.final / name).stat().st_size for name in ("manifest.json", "index.json")
                               if (self.final / name).exists()}
        self.final.rename(self.partial)
        for file in self.partial.rglob("*.json"):
            file.unlink()

    def rows(self):
        for kind, work, of in (("index", "headers of 1,024 shards into an index", "the first of 1,024 ranks"),
                               ("commit", "the commit", "rank 0"), ("find", "the check before a resume", "rank 0"),
                               ("read", "a resume with the same layout", "each rank"), ("other", f"a resume with `{OTHER}`", "each rank")):
            yield work, of, *(cell for commits in (LIST, INDEXES) for cell in self.works.get((commits, kind), Work()).cells())

    def section(self, commit):
        rows = "\n".join("| " + " | ".join(row) + " |" for row in self.rows())
        mb = {name: 1e-6 * value for name, value in self.bytes[INDEXES].items()}
        return SECTION.format(layout=LAYOUT, index=mb["index.json"], manifest=mb["manifest.json"],
                              list=1e-6 * self.bytes[LIST]["manifest.json"], rounds=ROUNDS, commit=commit, rows=rows,
                              readers=", ".join(f"{rank:,}" for rank in READERS))


if __name__ == "__main__":
    built = pathlib.Path(sys.argv[1]).resolve()
    if not shutil.which(built / "tests/wlb-many-shards"):
        sys.exit(f"bench_checkpoint_ranks.py: {built}: has no tests/wlb-many-shards; build it first")
    print(ManyShards(built).section(commit_of(built)), end="")
