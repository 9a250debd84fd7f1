#!/usr/bin/env python3
"""Trains with Hugging Face Accelerate, from the newest checkpoint. Nothing here is of WLB."""
import argparse
import os
import shutil

import torch
from accelerate import Accelerator
from tiny_lm import TinyLM, batch

parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=200)
parser.add_argument("--save-interval", type=int, default=10)
parser.add_argument("--checkpoint", default="checkpoint")
arguments = parser.parse_args()

accelerator = Accelerator(cpu=not torch.cuda.is_available())
model = TinyLM()
model, optimizer = accelerator.prepare(model, torch.optim.AdamW(model.parameters(), lr=1e-2))
first_step = 1
if os.path.isdir(arguments.checkpoint):
    saved = max(int(name) for name in os.listdir(arguments.checkpoint) if name.isdigit())
    accelerator.load_state(os.path.join(arguments.checkpoint, str(saved)))
    first_step = saved + 1


def save(step):
    """A folder for each checkpoint, named once it is whole."""
    path = os.path.join(arguments.checkpoint + ".new", str(step))
    accelerator.save_state(path)
    accelerator.wait_for_everyone()
    if accelerator.is_main_process:
        os.makedirs(arguments.checkpoint, exist_ok=True)
        target = os.path.join(arguments.checkpoint, str(step))
        shutil.rmtree(target, ignore_errors=True)
        os.replace(path, target)


for step in range(first_step, arguments.steps + 1):
    loss = model(batch(step, accelerator.process_index, accelerator.num_processes).to(accelerator.device))
    optimizer.zero_grad()
    accelerator.backward(loss)
    optimizer.step()
    mean = accelerator.gather(loss.detach()).mean().item()
    if accelerator.is_main_process:
        print(f"step {step} loss {mean:.4f}", flush=True)
    if step % arguments.save_interval == 0:
        save(step)
accelerator.wait_for_everyone()
# Else threads of the group outlive it, and one that holds a tensor at Python's end aborts.
model, optimizer, loss = accelerator.free_memory(model, optimizer, loss)
accelerator.end_training()
