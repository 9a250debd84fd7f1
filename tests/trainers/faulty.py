#!/usr/bin/env python3
"""Runs a training script at the pace of a larger model, with a fault in one rank of the first attempt. The script stays as it is.

    faulty.py SCRIPT ARGUMENT...

TEST_PACE_S: how many seconds longer a step takes. TEST_FAULT: loop, error, or nothing; TEST_FAULT_RANK and TEST_FAULT_STEP: where.
"""
import os
import runpy
import sys
import time

from torch.optim.optimizer import register_optimizer_step_pre_hook

FAULT = os.environ.get("TEST_FAULT", "") if os.environ.get("WLB_ATTEMPT") == "1" else ""
PACE_S = float(os.environ.get("TEST_PACE_S", "0"))
STEP = int(os.environ.get("TEST_FAULT_STEP", "0"))
steps = 0


def endless_loop():
    turns = 0
    while True:
        turns += 1


def before_step(*_):
    global steps
    steps += 1
    time.sleep(PACE_S)
    if steps != STEP or os.environ["RANK"] != os.environ["TEST_FAULT_RANK"]:
        return
    if FAULT == "loop":
        endless_loop()
    if FAULT == "error":
        raise RuntimeError(f"planted error of rank {os.environ['RANK']}")


if __name__ == "__main__":
    register_optimizer_step_pre_hook(before_step)
    del sys.argv[0]
    sys.path[0] = os.path.dirname(os.path.abspath(sys.argv[0]))
    runpy.run_path(sys.argv[0], run_name="__main__")
