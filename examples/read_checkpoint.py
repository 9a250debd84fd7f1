#!/usr/bin/env python3
"""Reads and verifies a checkpoint of wlb-worker, docs/checkpoint-format.md, and lists its tensors: read_checkpoint.py STEP_DIRECTORY"""
import json
import pathlib
import sys

import numpy as np

TYPES = {"F32": ("<f4", "<u4"), "F64": ("<f8", "<u8")}


def checksum(bits):
    """Of all elements of a shard, whose first one has the place 0."""
    total = 0
    for begin in range(0, len(bits), 1 << 20):
        x = bits[begin:begin + (1 << 20)].astype(np.uint64)
        x += np.arange(begin, begin + len(x), dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        x = (x ^ x >> np.uint64(30)) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ x >> np.uint64(27)) * np.uint64(0x94D049BB133111EB)
        total += int((x ^ x >> np.uint64(31)).sum(dtype=np.uint64))
    return f"{total % 2**64:016x}"


def read_shard(path, expected):
    """The tensors of a shard, by name: their data in one dimension."""
    raw = path.read_bytes()
    start = 8 + int.from_bytes(raw[:8], "little")
    header = json.loads(raw[8:start])
    header.pop("__metadata__")
    if len(raw) != expected["bytes"]:
        sys.exit(f"{path} has {len(raw)} bytes: the manifest says {expected['bytes']}")
    if not header:  # of a rank that keeps nothing
        return {}
    floats, bits = TYPES[next(iter(header.values()))["dtype"]]
    if checksum(np.frombuffer(raw, bits, offset=start)) != expected["checksum"]:
        sys.exit(f"{path} is damaged: its data have another checksum than the manifest says")
    data = np.frombuffer(raw, floats, offset=start)
    places = {name: [place // data.itemsize for place in entry["data_offsets"]] for name, entry in header.items()}
    return {name: data[begin:end] for name, (begin, end) in places.items()}


def read(directory):
    folder = pathlib.Path(directory)
    manifest = json.loads((folder / "manifest.json").read_text())
    if (manifest["format"], manifest["version"]) != ("wlb-checkpoint", 3):
        sys.exit(f"{folder}: it is version {manifest['version']} of {manifest['format']}, not 3 of wlb-checkpoint")
    shards = [read_shard(folder / shard["file"], shard) for shard in manifest["shards"]]
    whole = {}
    for name, tensor in manifest["tensors"].items():
        out = np.empty(tensor["shape"], shards[tensor["blocks"][0][0]][name].dtype)
        table = out.reshape(tensor["shape"][0], -1)  # a view
        for shard, row, rows, col, cols, *limits in tensor["blocks"]:
            begin, end = limits or (0, rows * cols)
            at = np.arange(begin, end)
            table[row + at // cols, col + at % cols] = shards[shard][name]
        whole[name] = out
    return whole


if __name__ == "__main__":
    for name, values in read(sys.argv[1]).items():
        print(f"{name:60} {values.dtype} {list(values.shape)}")
