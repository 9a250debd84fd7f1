#!/usr/bin/env python3
"""Trains with Lightning, from the newest checkpoint. Lightning finds the ranks in Slurm's variables, and nothing here is of WLB."""
import argparse
import os

import lightning
import torch
from lightning.pytorch.callbacks import ModelCheckpoint, TQDMProgressBar
from tiny_lm import BATCH, TinyLM, batch

parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=200)
parser.add_argument("--save-interval", type=int, default=10)
parser.add_argument("--checkpoint", default="checkpoint")
arguments = parser.parse_args()


class Module(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.model = TinyLM()

    def training_step(self, tokens):
        loss = self.model(tokens)
        self.log("loss", loss, prog_bar=True, sync_dist=True)
        return loss

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), lr=1e-2)


nodes, tasks = int(os.environ["SLURM_NNODES"]), int(os.environ["SLURM_NTASKS_PER_NODE"])
rows = torch.cat([batch(step) for step in range(1, arguments.steps + 1)])
loader = torch.utils.data.DataLoader(rows, batch_size=BATCH // (nodes * tasks))
trainer = lightning.Trainer(
    num_nodes=nodes, devices=tasks, strategy="ddp", max_steps=arguments.steps, logger=False, enable_model_summary=False,
    callbacks=[TQDMProgressBar(refresh_rate=1),
               ModelCheckpoint(arguments.checkpoint, save_last=True, every_n_train_steps=arguments.save_interval)])
trainer.fit(Module(), loader, ckpt_path="last")
