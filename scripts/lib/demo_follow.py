#!/usr/bin/env python3
"""Follows a run to its end with a progress bar, and runs a command once it has reached a step."""
import argparse
import json
import shlex
import subprocess
import sys
import time

BAR_COLUMNS = 30
# A run this small takes about two minutes; a machine ten times slower still finishes in this time.
DEADLINE_S = 1200
FINAL = ("complete", "failed", "out_of_nodes", "cancelled")


def show(run):
    """Returns the run from `wlb show --json`; None while it is not recorded yet."""
    done = subprocess.run(["wlb", "show", run, "--json"], capture_output=True, text=True, timeout=30, check=False)
    return json.loads(done.stdout) if done.returncode == 0 else None


def progress_line(run):
    done, total = run.get("last_step") or 0, run.get("train_iters") or 0
    filled = BAR_COLUMNS * done // total if total else 0
    steps = run.get("steps") or []
    recent = steps[-10:]
    speed = sum(s["tokens_per_s"] for s in recent) / len(recent) if recent else 0.0
    left_s = (total - done) * sum(s["step_time_s"] for s in recent) / len(recent) if recent else None
    loss = run.get("last_loss")
    return "[%s%s] step %d/%s  loss %s  %s tokens/s  %s left  %s" % (
        "#" * filled, "." * (BAR_COLUMNS - filled), done, total or "?",
        "%.4f" % loss if loss is not None else "-", "%6.0f" % speed,
        "%3.0f s" % left_s if left_s is not None else "  ?", run["state"])


def print_progress(run, last, tty):
    """One line that rewrites itself on a terminal; elsewhere a line every 10 steps or change of state."""
    line = progress_line(run)
    key = ((run.get("last_step") or 0) // 10, run["state"])
    if tty:
        print("\r\033[K" + line, end="", flush=True)
    elif key != last:
        print(line, flush=True)
    return key


def follow(args):
    deadline, killed, last = time.monotonic() + DEADLINE_S, False, None
    tty = sys.stdout.isatty()
    while time.monotonic() < deadline:
        run = show(args.run)
        if run is not None:
            last = print_progress(run, last, tty)
            if run["state"] in FINAL:
                print()
                return run["state"]
            if not killed and run["state"] == "running" and (run.get("last_step") or 0) >= args.kill_after_step:
                print("\n-- power off: %s" % args.kill, flush=True)
                subprocess.run(shlex.split(args.kill), check=True, timeout=60)
                killed = True
        time.sleep(0.5)
    print("\ndemo: the run did not end within %d s" % DEADLINE_S, file=sys.stderr)
    return "timeout"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--run", required=True)
    parser.add_argument("--log", required=True, help="the job's output file, shown when the run fails")
    parser.add_argument("--kill-after-step", type=int, required=True)
    parser.add_argument("--kill", required=True, help="command to run once at that step")
    args = parser.parse_args()
    state = follow(args)
    if state != "complete":
        print("demo: the run ended as '%s'; its output (%s):" % (state, args.log), file=sys.stderr)
        subprocess.run(["tail", "-n", "40", args.log], check=False)
        sys.exit(1)


if __name__ == "__main__":
    main()
