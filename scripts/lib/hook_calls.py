#!/usr/bin/env python3
"""Takes the time of the calls of the hook (python/hook) in a rank of `wlb run`, with the torch of this Python. Appends a line of JSON to
FILE: for each kind of call its seconds as the hook is, and where each call is written, which the hook bounds otherwise.
Usage: hook_calls.py CALLS FILE"""
import json
import os
import sys
import time

import torch
import torch.distributed.checkpoint.state_dict_saver as saver
from torch.utils.tensorboard import SummaryWriter

UNBOUNDED = 1 << 62


def nothing(*_args, **_kwargs):
    """In the place of a function of torch: what is left is the hook."""


def note_of(function):
    return function.__closure__[function.__code__.co_freevars.index("note")].cell_contents


def seconds(function, arguments, calls, **named):
    begin_s = time.process_time()
    for _ in range(calls):
        function(*arguments, **named)
    return (time.process_time() - begin_s) / calls


def own_seconds(hook, function, arguments, calls, **named):
    """Of the wrapper around a function of torch, without the function."""
    wrapped = hook["_wrap"](nothing, note_of(function))
    return seconds(wrapped, arguments, calls, **named) - seconds(nothing, arguments, calls, **named)


def measure(hook, calls):
    parameter = torch.nn.Parameter(torch.zeros(4))
    parameter.grad = torch.ones(4)
    optimizer = torch.optim.Adam([parameter])
    optimizer.step()
    return {
        "step of an optimizer": seconds(hook["_after_step"], (optimizer, (), {}), calls),
        "SummaryWriter.add_scalar": own_seconds(hook, SummaryWriter.add_scalar, (None, "train/loss", torch.tensor(2.5), 7), calls),
        "torch.save": own_seconds(hook, torch.save, ({}, "checkpoint.pt"), calls),
        "DCP's save": own_seconds(hook, saver.save, ({},), calls, checkpoint_id="checkpoint"),
    }


def main(calls, path):
    hook = torch.save.__globals__
    if "_hook" not in hook:
        sys.exit("hook_calls.py: torch is not hooked: run it by `wlb run`")
    found = {"bounded": measure(hook, int(calls))}
    hook["LINES_MOST"] = hook["BYTES_MOST"] = UNBOUNDED
    found["written"] = measure(hook, int(calls))
    os.ftruncate(hook["_hook"].descriptor, 0)
    if not hook["_hook"].is_on:
        sys.exit("hook_calls.py: the hook has turned itself off")
    with open(path, "a", encoding="ascii") as file:
        file.write(json.dumps(found) + "\n")


main(*sys.argv[1:])
