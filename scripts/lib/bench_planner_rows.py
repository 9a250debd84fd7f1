"""Rows of the published table, each with what wlb-planner-bench predicted for it."""
import collections
import json
import os
import statistics
import subprocess
import sys

TABLE = os.path.join(os.path.dirname(__file__), "..", "..", "tests", "bench", "planner", "published.json")
CASES = os.path.join(os.path.dirname(TABLE), "memory.json")
PUBLISHED = os.path.join(os.path.dirname(__file__), "..", "..", "libwlb", "published", "steps.json")
PARTS = ("computation", "again", "tp", "cp", "ep", "pp", "dp", "optimizer", "bubble", "unequal")
COLUMNS = ("layout", "micro_batch", "interleave", "recompute", "fits", "allocated_gib", "reserved_gib", "limit_gib", "published_s",
           "predicted_s", *PARTS)
# Of rows of one series.
DIFFERS = ("name", "layout", "batch_windows", "step_s", "tokens_per_s", "tokens_per_s_per_gpu", "tflops_per_gpu")


class Row:
    """A published measurement. `why` says why the planner cannot express it, and is None where it can."""

    def __init__(self, source, told, has_experts, line):
        fields = line.split("\t")
        if fields[:2] != [source["title"], told["name"]]:
            sys.exit(f"wlb-planner-bench printed {fields[:2]} for {source['title']}, {told['name']}")
        self.source, self.told, self.has_experts = source, told, has_experts
        self.tp, self.cp, self.pp, self.dp = told["layout"]
        self.gpus = self.tp * self.cp * self.pp * self.dp
        self.why = None if fields[2] == "-" else fields[2]
        if self.why is None:
            self.predicted = dict(zip(COLUMNS, fields[3:], strict=True))
            self.published_s = float(self.predicted["published_s"])
            self.predicted_s = float(self.predicted["predicted_s"])
            self.gib = {name: float(self.predicted[f"{name}_gib"]) for name in ("allocated", "reserved", "limit")}
            self.fits = self.predicted["fits"] == "1"
            if self.published_s > 0:
                self.error = 100 * (self.predicted_s / self.published_s - 1)

    def field(self, name):
        """A row has what its source has, unless it says otherwise."""
        return self.told.get(name, self.source.get(name))

    def series(self):
        """What rows have in common that differ in the number of replicas alone, with the same work on each."""
        told = {name: value for name, value in self.told.items() if name not in DIFFERS}
        windows = self.told["batch_windows"] / self.dp
        return json.dumps([self.source["title"], self.tp, self.cp, self.pp, windows, told], sort_keys=True)


class Errors:
    """Statistics of the errors of rows, in percent of the published time."""

    def __init__(self, rows):
        self.errors = [row.error for row in rows]
        self.count = len(self.errors)
        self.mean = sum(abs(error) for error in self.errors) / self.count
        self.bias = sum(self.errors) / self.count
        self.worst = max(self.errors, key=abs)
        self.told = [row for row in rows if row.kind != "unknown"]  # an interval
        self.covered = sum(row.lower <= row.published_s / row.predicted_s <= row.upper for row in self.told)
        self.half_width = statistics.median(50 * (row.upper - row.lower) for row in self.told) if self.told else None

    def nine_of_ten(self):
        return sorted(abs(error) for error in self.errors)[-(-9 * self.count // 10) - 1]


def read_table(build, path, check):
    with open(path, encoding="utf-8") as file:
        table = json.load(file)
    command = [os.path.join(build, "tests", "wlb-planner-bench"), path]
    lines = iter(subprocess.run(command, capture_output=True, text=True, check=check).stdout.splitlines())
    experts = {name for name, shape in table["models"].items() if "num_experts" in shape}
    return [Row(source, told, told["model"] in experts, next(lines)) for source in table["sources"] for told in source["rows"]]


def read_rows(build):
    """All rows, in the order of the table."""
    return read_table(build, TABLE, True)


def read_cases(build):
    """Runs of which it is known whether they ran; the bench fails where one is wrong."""
    return read_table(build, CASES, False)


def write_published(rows):
    """Writes the file from which wlb plan tells how far predictions near its own were off."""
    lines = []
    for source in grouped(rows, lambda row: row.source["title"]).values():
        lists = {"steps": [], "fp8_steps": [], "expert_steps": []}
        for row in source:
            if row.why is None:
                kind = "expert_steps" if row.has_experts else "fp8_steps" if "fp8" in row.field("precision") else "steps"
                lists[kind].append(json.dumps([
                    row.field("machine"), row.field("preset"), row.told["window_tokens"], row.gpus,
                    round(row.predicted_s / row.published_s, 4)]))
        head = json.dumps({"title": source[0].source["title"], "sets_constants": source[0].source.get("sets_constants", False)})
        told = [f'"{name}": [\n\t' + ",\n\t".join(steps) + "]" for name, steps in lists.items() if steps or name == "steps"]
        lines.append(head[:-1] + ", " + ", ".join(told) + "}")
    with open(PUBLISHED, "w", encoding="utf-8") as file:
        file.write('{"made_by": "scripts/bench planner", "sources": [\n' + ",\n".join(lines) + "]}\n")


def read_near(build, rows):
    """Sets kind, number of steps and interval of each row that is predicted, without the steps of its source."""
    command = [os.path.join(build, "tests", "wlb-planner-bench"), "--near", TABLE]
    lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    for row, line in zip(rows, lines, strict=True):
        if row.why is None:
            row.kind, steps, lower, upper = line.split("\t")[2:]
            row.near, row.lower, row.upper = int(steps), float(lower), float(upper)


def read_searches(build):
    """Step times of published plans that are admissible, each with that of the fastest plan that the search finds."""
    command = [os.path.join(build, "tests", "wlb-planner-bench"), "--search", TABLE]
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # fails where one is missed
    fields = [line.split("\t") for line in done.stdout.splitlines()]
    return [(float(line[2]), float(line[3])) for line in fields if len(line) == 4]


def grouped(rows, key):
    """Rows by what key returns for them, in the order in which it first did; rows for which it returns None are left out."""
    groups = collections.OrderedDict()
    for row in rows:
        if (value := key(row)) is not None:
            groups.setdefault(value, []).append(row)
    return groups
