#!/usr/bin/env python3
"""Trains a small GPT of megatron-core 0.16.1, from the newest checkpoint, and prints what Megatron-LM prints. Nothing here is of WLB.

Without a GPU it trains on gloo, with two stand-ins for what megatron-core asks CUDA for; pipelines, its own optimizer and its own
DistributedDataParallel need CUDA there."""
import argparse
import contextlib
import datetime
import os
import time

import torch
import torch.distributed as dist
from megatron.core import parallel_state
from megatron.core.models.gpt.gpt_layer_specs import get_gpt_layer_local_spec
from megatron.core.models.gpt.gpt_model import GPTModel
from megatron.core.tensor_parallel.random import CudaRNGStatesTracker, model_parallel_cuda_manual_seed
from megatron.core.transformer.transformer_config import TransformerConfig
from tiny_lm import BATCH, LENGTH, VOCABULARY, batch

parser = argparse.ArgumentParser()
parser.add_argument("--tensor-model-parallel-size", type=int, default=1)
parser.add_argument("--train-iters", type=int, default=200)
parser.add_argument("--save-interval", type=int, default=10)
parser.add_argument("--save", default="checkpoint")
arguments = parser.parse_args()
NEWEST = os.path.join(arguments.save, "latest_checkpointed_iteration.txt")


def start():
    """Returns the device."""
    if torch.cuda.is_available():
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
        dist.init_process_group("nccl")
    else:
        torch.cuda.current_device = lambda: "cpu"
        CudaRNGStatesTracker.fork = lambda *_: contextlib.nullcontext()
        dist.init_process_group("gloo")
    parallel_state.initialize_model_parallel(arguments.tensor_model_parallel_size)
    if torch.cuda.is_available():
        model_parallel_cuda_manual_seed(1)
    return torch.device(torch.cuda.current_device())


def build():
    torch.manual_seed(1)
    config = TransformerConfig(
        num_layers=2, hidden_size=64, num_attention_heads=4, use_cpu_initialization=True, hidden_dropout=0, attention_dropout=0,
        tensor_model_parallel_size=arguments.tensor_model_parallel_size, gradient_accumulation_fusion=False)
    return GPTModel(config, get_gpt_layer_local_spec(), VOCABULARY, LENGTH)


def path_of(iteration):
    return os.path.join(arguments.save, f"iter_{iteration:07d}", f"tp{parallel_state.get_tensor_model_parallel_rank()}.pt")


def load(model, optimizer):
    """Returns the iteration of the newest checkpoint, 0 where there is none."""
    if not os.path.exists(NEWEST):
        return 0
    with open(NEWEST, encoding="ascii") as file:
        iteration = int(file.read())
    saved = torch.load(path_of(iteration), weights_only=False)
    model.load_state_dict(saved["model"])
    optimizer.load_state_dict(saved["optimizer"])
    return iteration


def save(model, optimizer, iteration):
    """The file that names the newest checkpoint is replaced once all ranks have saved theirs."""
    if parallel_state.get_data_parallel_rank() == 0:
        os.makedirs(os.path.dirname(path_of(iteration)), exist_ok=True)
        torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, path_of(iteration))
    dist.barrier()
    if dist.get_rank() == 0:
        with open(NEWEST + ".new", "w", encoding="ascii") as file:
            file.write(str(iteration))
        os.replace(NEWEST + ".new", NEWEST)


def train_step(model, optimizer, iteration, device):
    """Returns the mean loss of the batch and the norm of the gradient."""
    group, ranks = parallel_state.get_data_parallel_group(), parallel_state.get_data_parallel_world_size()
    tokens = batch(iteration, parallel_state.get_data_parallel_rank(), ranks).to(device)
    position = torch.arange(LENGTH - 1, device=device).expand(len(tokens), -1)
    later = torch.ones(LENGTH - 1, LENGTH - 1, dtype=torch.bool, device=device).triu(1)[None, None]
    loss = model(tokens[:, :-1], position, later, labels=tokens[:, 1:].contiguous()).mean()
    optimizer.zero_grad()
    loss.backward()
    for parameter in model.parameters():
        dist.all_reduce(parameter.grad, group=group)
        parameter.grad /= ranks
    norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    mean = loss.detach() / ranks
    dist.all_reduce(mean, group=group)
    return mean.item(), norm.item()


device = start()
model = build().to(device)
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
for iteration in range(load(model, optimizer) + 1, arguments.train_iters + 1):
    began = time.monotonic()
    loss, norm = train_step(model, optimizer, iteration, device)
    if dist.get_rank() == dist.get_world_size() - 1:
        print(f" [{datetime.datetime.now()}] iteration {iteration:8d}/{arguments.train_iters:8d} | consumed samples: "
              f"{iteration * BATCH:12d} | elapsed time per iteration (ms): {1000 * (time.monotonic() - began):.1f} | learning rate: "
              f"3.000000E-03 | global batch size: {BATCH:5d} | lm loss: {loss:.6E} | loss scale: 1.0 | grad norm: {norm:.3f} | number of "
              "skipped iterations:   0 | number of nan iterations:   0 |", flush=True)
    if iteration % arguments.save_interval == 0:
        save(model, optimizer, iteration)
dist.barrier()  # a rank that ends while torch's threads still hold tensors can abort
dist.destroy_process_group()
