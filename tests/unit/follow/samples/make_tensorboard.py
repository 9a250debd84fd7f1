#!/usr/bin/env python3
"""Writes samples/tensorboard with torch's SummaryWriter and TensorBoard's messages: make_tensorboard.py FOLDER.

Needs torch and tensorboard; the samples were made with torch 2.15.0 and tensorboard 2.21.0.
"""
import os
import sys

import torch
from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.compat.proto.summary_pb2 import Summary
from tensorboard.compat.proto.tensor_pb2 import TensorProto
from tensorboard.compat.proto.tensor_shape_pb2 import TensorShapeProto
from tensorboard.summary.writer.record_writer import RecordWriter
from torch.utils.tensorboard import SummaryWriter

BEGIN_S = 1790000000.5
DT_FLOAT, DT_DOUBLE, DT_INT32, DT_INT64 = 1, 2, 3, 9


def write_torch(folder):
    writer = SummaryWriter(folder, filename_suffix=".torch")
    for step in range(1, 4):
        writer.add_scalar("train/loss", 4.0 / step, step, walltime=BEGIN_S + step)
        writer.add_scalar("learning-rate", float("nan") if step == 3 else 1e-3, step, walltime=BEGIN_S + step)
    writer.add_text("note", "x" * 500, 3)
    writer.add_histogram("weights", torch.arange(100.0), 3)
    writer.add_scalar("without_step", 1.5)
    writer.add_scalars("both", {"a": 1.0, "b": 2.0}, 2)
    writer.add_hparams({"lr": 0.1}, {"hparam/loss": 10.0}, run_name="hp")
    writer.close()


def write_tensors(folder):
    writer = SummaryWriter(folder, filename_suffix=".tensors")
    for step in range(1, 3):
        writer.add_scalar("loss", 4.0 / step, step, new_style=True, walltime=BEGIN_S + step)
        writer.add_scalar("double", 0.1, step, new_style=True, double_precision=True, walltime=BEGIN_S + step)
    writer.close()


def write_content(folder):
    """Tensors as TensorFlow 2 writes them: the number as bytes, and a shape without dimensions."""
    os.makedirs(folder)
    tensors = [("f", TensorProto(dtype=DT_FLOAT, tensor_content=b"\0\0\x20\x40", tensor_shape=TensorShapeProto())),
               ("d", TensorProto(dtype=DT_DOUBLE, tensor_content=b"\0\0\0\0\0\0\x04\xc0", tensor_shape=TensorShapeProto())),
               ("i", TensorProto(dtype=DT_INT32, int_val=[-7])),
               ("l", TensorProto(dtype=DT_INT64, int64_val=[1 << 40])),
               ("list", TensorProto(dtype=DT_FLOAT, float_val=[1, 2],
                                    tensor_shape=TensorShapeProto(dim=[TensorShapeProto.Dim(size=2)])))]
    with open(os.path.join(folder, "events.out.tfevents.1790000000.n1.7.v2"), "wb") as file:
        writer = RecordWriter(file)
        writer.write(Event(wall_time=BEGIN_S, file_version="brain.Event:2").SerializeToString())
        values = [Summary.Value(tag=tag, tensor=tensor) for tag, tensor in tensors]
        writer.write(Event(wall_time=BEGIN_S, step=5, summary=Summary(value=values)).SerializeToString())
        writer.write(Event(wall_time=BEGIN_S, step=6, graph_def=b"x" * 100).SerializeToString())
        after = Summary(value=[Summary.Value(tag="after", simple_value=3)])
        writer.write(Event(wall_time=BEGIN_S, step=7, summary=after).SerializeToString())
        writer.flush()


def main():
    folder = sys.argv[1]
    write_torch(os.path.join(folder, "torch"))
    write_tensors(os.path.join(folder, "tensors"))
    write_content(os.path.join(folder, "content", "validation"))
    for place, _, names in os.walk(folder):  # names without host, process and time
        for name in names:
            os.rename(os.path.join(place, name), os.path.join(place, "events.out.tfevents.1790000000.n1.7." + name.rpartition(".")[2]))


main()
