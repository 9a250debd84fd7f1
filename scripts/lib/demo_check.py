#!/usr/bin/env python3
"""Exit 0 only when the run completed, its loss fell, and every step is in the database exactly once."""
import argparse
import json
import subprocess
import sys


def check(run):
    """Every rule the run breaks, in words."""
    broken = []
    losses = [s["loss"] for s in run["steps"]]
    steps = [s["step"] for s in run["steps"]]
    if run["state"] != "complete":
        broken.append("state is %s, not complete" % run["state"])
    if steps != list(range(1, run["train_iters"] + 1)):
        broken.append("steps recorded are not 1 .. %d, each once: %d of them" % (run["train_iters"], len(steps)))
    if len(losses) < 20 or not sum(losses[-10:]) / 10 < 0.8 * losses[0]:
        broken.append("the loss did not fall: first %s, last %s" % (losses[:1], losses[-1:]))
    if len(run["attempts"]) < 2:
        broken.append("there was no restart: %d attempt" % len(run["attempts"]))
    if len(run["attempts"][-1]["nodes"]) != 3:
        broken.append("the last attempt ran on %s, not on three nodes" % run["attempts"][-1]["nodes"])
    if not any(f["kind"] == "node_lost" and f["node"] == "n3" for f in run["faults"]):
        broken.append("the loss of n3 is not among the faults")
    return broken + check_layouts(run["attempts"])


def check_layouts(attempts):
    """Every rule that auto's layouts break: none is data parallelism alone, the loss of the node changes the layout, and each
    has its reason."""
    broken = []
    splits = [tuple(attempt["layout"][key] for key in ("tp", "cp", "pp")) for attempt in attempts]
    if (1, 1, 1) in splits:
        broken.append("an attempt has data parallelism alone: tp, cp and pp are %s" % splits)
    if attempts[0]["layout"] == attempts[-1]["layout"]:
        broken.append("the loss of a node did not change the layout: %s" % attempts[0]["layout"])
    if not all(attempt["plan"] and attempt["plan"]["reason"] for attempt in attempts):
        broken.append("an attempt has no plan, so nothing says why it has its layout")
    return broken


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--run", required=True)
    args = parser.parse_args()
    shown = subprocess.run(["wlb", "show", args.run, "--json"], capture_output=True, text=True, timeout=30, check=True)
    run = json.loads(shown.stdout)
    broken = check(run)
    for rule in broken:
        print("demo: " + rule, file=sys.stderr)
    if broken:
        sys.exit(1)
    print("run %s: complete, loss %.4f -> %.4f, %d steps each recorded once, %d attempts, %d of %d steps repeated" % (
        run["run_id"], run["first_loss"], run["last_loss"], len(run["steps"]), len(run["attempts"]),
        run["steps_repeated"], run["train_iters"]))


if __name__ == "__main__":
    main()
