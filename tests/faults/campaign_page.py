"""The results of a campaign as a page: what was found of each fault that came alone, and what failed."""
import datetime
import statistics

import table
from bench_host import machine
from case import CLEAN_S


def described(case):
    network = f", {case.setting.link_mbit} Mbit/s" if case.setting.link_mbit else ""
    return f"{case.kind.name} ({case.setting.trainer}, {layout_of(case)}{network}): {case.kind.script}"


def layout_of(case):
    return ", ".join((case.layout, *case.setting.options))


def middle_and_most(values):
    values = [value for value in values if value is not None]
    return f"{statistics.median(values):.1f} / {max(values):.1f} s" if values else "-"


def single(cases, results):
    """A row for each fault that ends an attempt and came alone, at any moment."""
    groups = {}
    for case in cases:
        if case.kind.name in results and case.kind.causes and len(case.faults) == 1:
            groups.setdefault(case.faults[0], []).append(results[case.kind.name])
    for name, group in sorted(groups.items()):
        hit = [result for result in group if result.attempts > 1]
        yield (name, len(group), f"{sum(not result.is_untrue for result in group)}",
               middle_and_most([result.found_s for result in hit]), middle_and_most([result.resumed_s for result in hit]))


def time_lost(results):
    """The time that the runs held their nodes, which a step advanced or which was lost; of runs whose steps are recorded."""
    told = [result.time_lost for result in results if result.time_lost.get("ettr") is not None]
    held_s = sum(each["held_s"] for each in told)
    seconds = {}
    for each in told:
        for cause in each["causes"]:
            seconds[cause["cause"]] = seconds.get(cause["cause"], 0) + cause["seconds"]
    if told:
        yield ("ETTR, mean of the runs", len(told), f"{statistics.mean(each['ettr'] for each in told):.3f}")
    for name, lost_s in sorted(seconds.items(), key=lambda item: -item[1]):
        yield (f"lost: {name}", f"{lost_s:.0f} s", f"{lost_s / held_s:.1%}")


PARTS = ("detect", "decide", "start", "load", "repeated")  # of a restart: causes of time_lost


def restarts(results):
    """What a restart took, part by part, in runs with none, with one in the same job, and with one for which the job was queued again."""
    for name, attempts, requeues in (("no restart", 1, 0), ("one, in the same job", 2, 0), ("one, the job was queued again", 2, 1)):
        told = [result.time_lost["causes"] for result in results if (result.attempts, result.requeues) == (attempts, requeues)
                and result.time_lost.get("ettr") is not None]
        lost = [[cause["seconds"] for each in told for cause in each if cause["cause"] == part] for part in PARTS]
        yield (name, len(told), *(middle_and_most(seconds) for seconds in lost))


def rows(cells):
    return "\n".join("| " + " | ".join(str(cell).replace("|", "\\|") for cell in row) + " |" for row in cells)


def page(seed, cases, told, failed_before):
    """`told`: a result of each case that has run, and the commit of which it is; `failed_before`: of runs of a case before that."""
    results, commits = [result for result, _ in told], ", ".join(dict.fromkeys(commit for _, commit in told))
    by_name = {result.kind: result for result in results}
    passed, untrue = sum(result.passed for result in results), sum(result.is_untrue for result in results)
    others = sum(not result.passed and not result.is_untrue for result in results)
    pairs = sum(len(case.faults) > 1 for case in cases if case.kind.name in by_name)
    problems = "".join(f"- {result.kind}: {text}\n" for result in results for text in result.problems)
    return f"""# A campaign of random faults

Made by `tests/faults/campaign --seed {seed} --count {len(cases)}`: one fault, or two within 2 s or with the second in the restart
after the first, at a step, during a save, at the start or at the last step, in a run of four nodes with two ranks each on a private
cluster on one host. A case has passed when the run completed by itself, each step was trained and recorded once with the loss of the
run without faults (1e-9, float64), cause and reason are what was done, and no process, job or record was left {CLEAN_S} s later.
`tests/faults/campaign --seed {seed} --only I` repeats case {seed}.I.

{datetime.date.today()}, {machine()}, Slurm {table.slurm()}, commit {commits}.

| | |
|---|---|
| cases | {len(results)} |
| passed | {passed} |
| failed by another cause, reason or name than what was done | {untrue} |
| failed otherwise | {others} |
| second faults that found nothing, since the first had ended it | {sum(result.missed for result in results)} of {pairs} |

## Faults that came alone and end an attempt
*found* and *training again* are from the fault until wlbd knew of it, and until the first step of the next attempt: median / longest.

| fault | cases | named as what it was | found | training again |
|---|---|---|---|---|
{rows(single(cases, by_name))}

## Time
Runs are short, so that each fault is a large part of them. What the causes are is in docs/api.md (`time_lost`).

| | | |
|---|---|---|
{rows(time_lost(results))}

Of runs of wlb-worker, by how they were started again; median / longest. Start and load are those of all attempts of the run.

| restart | runs | {" | ".join(PARTS)} |
|---|---|{"---|" * len(PARTS)}
{rows(restarts(results))}

## Cases
| case | trainer | layout, options | network | found | training again | attempts | took | |
|---|---|---|---|---|---|---|---|---|
{rows(case_row(case, by_name[case.kind.name]) for case in cases if case.kind.name in by_name)}

{"What failed:" if problems else ""}
{problems}
{again(failed_before)}"""


def again(failed_before):
    if not failed_before:
        return ""
    lines = "".join(f"- {result.kind}, at {commit}: {'; '.join(result.problems)}\n" for result, commit in failed_before)
    return f"""## Cases that failed and were run again
The table has the newest run of each case. These had failed before, at the commit that is named:

{lines}"""


def case_row(case, result):
    setting = case.setting
    return (case.kind.name, setting.trainer, layout_of(case), f"{setting.link_mbit} Mbit/s" if setting.link_mbit else "-",
            "-" if result.found_s is None else f"{result.found_s:.1f} s",
            "-" if result.resumed_s is None else f"{result.resumed_s:.1f} s", result.attempts, f"{result.took_s:.0f} s",
            ("passed" if result.passed else "**failed**") + (", second fault found nothing" if result.missed else ""))
