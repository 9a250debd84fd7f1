#!/usr/bin/env python3
"""Reads and verifies a checkpoint of wlb-worker, docs/checkpoint-format.md, and lists its tensors: read_checkpoint.py STEP_DIRECTORY"""
import json
import pathlib
import sys

import numpy as np


def checksum(bits):
    """Of all elements of a shard, or bytes of an index, whose first one has the place 0."""
    total = 0
    for begin in range(0, len(bits), 1 << 20):
        x = bits[begin:begin + (1 << 20)].astype(np.uint64)
        x += np.arange(begin, begin + len(x), dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        x = (x ^ x >> np.uint64(30)) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ x >> np.uint64(27)) * np.uint64(0x94D049BB133111EB)
        total += int((x ^ x >> np.uint64(31)).sum(dtype=np.uint64))
    return f"{total % 2**64:016x}"


def read_index(path, expected):
    raw = path.read_bytes()
    if len(raw) != expected["bytes"] or checksum(np.frombuffer(raw, "<u1")) != expected["checksum"]:
        sys.exit(f"{path} is damaged: it has another size or checksum than the manifest says")
    return json.loads(raw)


def read_shard(path, expected):
    """The tensors of a shard, by name: their data in one dimension."""
    raw = path.read_bytes()
    if len(raw) != expected["bytes"]:
        sys.exit(f"{path} has {len(raw)} bytes: the manifest says {expected['bytes']}")
    start = 8 + int.from_bytes(raw[:8], "little")
    header = json.loads(raw[8:start])
    header.pop("__metadata__")
    data = memoryview(raw)[start:]
    size = max((int(entry["dtype"][1:]) // 8 for entry in header.values()), default=4)  # of F32 or F64
    if checksum(np.frombuffer(data, f"<u{size}")) != expected["checksum"]:
        sys.exit(f"{path} is damaged: its data have another checksum than the manifest says")
    return {name: np.frombuffer(data[slice(*entry["data_offsets"])], f"<f{size}") for name, entry in header.items()}


def read(directory):
    folder, whole = pathlib.Path(directory), {}
    manifest = json.loads((folder / "manifest.json").read_text())
    if (manifest["format"], manifest["version"]) != ("wlb-checkpoint", 3):
        sys.exit(f"{folder}: it is version {manifest['version']} of {manifest['format']}, not 3 of wlb-checkpoint")
    indexes = [read_index(folder / index["file"], index) for index in manifest.get("indexes", [])]
    for lists in indexes or [manifest]:
        shards = [read_shard(folder / shard["file"], shard) for shard in lists["shards"]]
        for name, tensor in lists["tensors"].items():
            for shard, row, rows, col, cols, *limits in tensor["blocks"]:
                out = whole.setdefault(name, np.empty(tensor["shape"], shards[shard][name].dtype))
                at = np.arange(*(limits or (0, rows * cols)))
                out.reshape(tensor["shape"][0], -1)[row + at // cols, col + at % cols] = shards[shard][name]
    return whole


if __name__ == "__main__":
    for name, values in read(sys.argv[1]).items():
        print(f"{name:60} {values.dtype} {list(values.shape)}")
