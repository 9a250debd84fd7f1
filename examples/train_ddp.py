#!/usr/bin/env python3
"""Trains with DistributedDataParallel, from the newest checkpoint. It finds its ranks as under torchrun: RANK, WORLD_SIZE, LOCAL_RANK,
MASTER_ADDR and MASTER_PORT are in the environment, and nothing here is of WLB."""
import argparse
import gc
import os

import torch
import torch.distributed as dist
from tiny_lm import TinyLM, batch
from torch.nn.parallel import DistributedDataParallel

parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=200)
parser.add_argument("--save-interval", type=int, default=10)
parser.add_argument("--checkpoint", default="checkpoint.pt")
arguments = parser.parse_args()

on_gpu = torch.cuda.is_available()
device = torch.device("cuda", int(os.environ["LOCAL_RANK"])) if on_gpu else torch.device("cpu")
dist.init_process_group("nccl" if on_gpu else "gloo")
rank, world_size = dist.get_rank(), dist.get_world_size()

model = DistributedDataParallel(TinyLM().to(device))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
first_step = 1
if os.path.exists(arguments.checkpoint):
    saved = torch.load(arguments.checkpoint, map_location=device)
    model.module.load_state_dict(saved["model"])
    optimizer.load_state_dict(saved["optimizer"])
    first_step = saved["step"] + 1

for step in range(first_step, arguments.steps + 1):
    loss = model(batch(step, rank, world_size).to(device))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    mean = loss.detach() / world_size
    dist.all_reduce(mean)
    if rank == 0:
        print(f"step {step} loss {mean.item():.4f}", flush=True)
    if rank == 0 and step % arguments.save_interval == 0:
        state = {"model": model.module.state_dict(), "optimizer": optimizer.state_dict(), "step": step}
        torch.save(state, arguments.checkpoint + ".new")
        os.replace(arguments.checkpoint + ".new", arguments.checkpoint)  # a rank that dies leaves no half checkpoint
dist.barrier()
del model, optimizer, loss, mean  # else threads of the group outlive it, and one that holds a tensor at Python's end aborts
gc.collect()
dist.destroy_process_group()
