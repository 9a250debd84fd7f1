#!/usr/bin/env python3
"""Trains a Llama with PyTorch on CPUs, each rank on a core of its own, and saves by torch.distributed.checkpoint's async_save: what
scripts/bench checkpoint measures beside wlb-worker. Parameters and AdamW's moments are sharded over the ranks, as wlb-worker's are, by
fully_shard. Prints the lines of wlb-worker. Started by torchrun.
Usage: dcp_trainer.py MODEL STEPS WINDOW WINDOWS INTERVAL [FOLDER]
  MODEL: config.json; WINDOWS: windows of WINDOW tokens of a step, of all ranks; INTERVAL: steps between saves, to FOLDER"""
import json
import os
import pathlib
import sys
import time

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.distributed.checkpoint import async_save
from torch.distributed.checkpoint.state_dict import get_state_dict
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard


class Layer(nn.Module):
    def __init__(self, config):
        super().__init__()
        width, inner = config["hidden_size"], config["intermediate_size"]
        self.heads = config["num_attention_heads"]
        self.attention_norm, self.mlp_norm = nn.RMSNorm(width), nn.RMSNorm(width)
        self.q, self.k, self.v, self.o = (nn.Linear(width, width, bias=False) for _ in range(4))
        self.gate, self.up, self.down = (nn.Linear(*sizes, bias=False) for sizes in ((width, inner), (width, inner), (inner, width)))

    def forward(self, x):
        normed = self.attention_norm(x)
        q, k, v = (weight(normed).unflatten(-1, (self.heads, -1)).transpose(1, 2) for weight in (self.q, self.k, self.v))
        x = x + self.o(F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2))
        normed = self.mlp_norm(x)
        return x + self.down(F.silu(self.gate(normed)) * self.up(normed))


class Model(nn.Module):
    """forward() returns the loss; the head is the embedding. Positions are left out."""

    def __init__(self, config):
        super().__init__()
        self.embedding = nn.Embedding(config["vocab_size"], config["hidden_size"])
        nn.init.normal_(self.embedding.weight, std=0.02)
        self.layers = nn.Sequential(*(Layer(config) for _ in range(config["num_hidden_layers"])))
        self.norm = nn.RMSNorm(config["hidden_size"])

    def forward(self, tokens):
        logits = F.linear(self.norm(self.layers(self.embedding(tokens[:, :-1]))), self.embedding.weight)
        return F.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten())


class Saver:
    """Saves one checkpoint at a time: a new one waits for the one before."""

    def __init__(self, folder, model, optimizer):
        self.folder, self.model, self.optimizer = pathlib.Path(folder), model, optimizer
        self.group = dist.new_group(backend="gloo")  # the thread's collectives must not mix with those of training
        self.prints, self.saving = dist.get_rank() == 0, None

    def wait(self):
        if self.saving is not None:
            self.saving.result()

    def save(self, step):
        began_s = time.monotonic()
        self.wait()
        path = self.folder / f"step_{step:08}"
        weights, moments = get_state_dict(self.model, self.optimizer)
        self.saving = async_save({"model": weights, "optimizer": moments}, checkpoint_id=path, process_group=self.group)
        stalled_s = time.monotonic() - began_s
        self.saving.add_done_callback(lambda saved: self.report(step, path, time.monotonic() - began_s, stalled_s))

    def report(self, step, path, seconds, stalled_s):
        if self.prints:
            size = sum(file.stat().st_size for file in path.iterdir())
            print(f"step {step} | checkpoint {path} | {1e-6 * size:.1f} MB | {seconds:.2f} s | stalled {stalled_s:.3f} s", flush=True)


def main(config, steps, window, windows, interval, folder=None):
    dist.init_process_group("gloo")
    rank, ranks = dist.get_rank(), dist.get_world_size()
    os.sched_setaffinity(0, {sorted(os.sched_getaffinity(0))[rank]})
    torch.manual_seed(1)
    config = json.loads(pathlib.Path(config).read_text(encoding="utf-8"))
    model = Model(config)
    mesh = init_device_mesh("cpu", (ranks,))
    for layer in model.layers:
        fully_shard(layer, mesh=mesh)
    fully_shard(model, mesh=mesh)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    saver = Saver(folder, model, optimizer) if folder else None
    for step in range(1, steps + 1):
        loss = model(torch.randint(config["vocab_size"], (windows // ranks, window + 1)))
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        if rank == 0:
            print(f"step {step}/{steps} | loss {loss.item():.4f}", flush=True)
        if saver and (step % interval == 0 or step == steps):
            saver.save(step)
    if saver:
        saver.wait()
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:6]), *sys.argv[6:])
