"""Makes the datasets on which wlb-worker is measured."""
import array
import math
import random
import struct

# Of libwlb's generator of document lengths (wlb_lengths in wlb.h).
QUANTILES = ((0.0, 20), (0.1, 646), (0.5, 3227), (0.9, 5784), (0.95, 6110), (0.99, 26070), (0.999, 119836),
             (1.0, 124913))


def write_dataset(prefix, documents):
    """Megatron-LM's indexed dataset (common/index_format.h), uint16."""
    lengths = array.array("i", map(len, documents))
    starts = array.array("q", [0])
    for length in lengths:
        starts.append(starts[-1] + 2 * length)
    with open(f"{prefix}.bin", "wb") as file:
        for document in documents:
            array.array("H", document).tofile(file)
    with open(f"{prefix}.idx", "wb") as file:
        file.write(b"MMIDIDX\0\0" + struct.pack("<QBQQ", 1, 8, len(lengths), len(lengths) + 1))
        lengths.tofile(file)
        starts[:-1].tofile(file)
        array.array("q", range(len(lengths) + 1)).tofile(file)


def skewed_length(draw, shrink):
    """The logarithm of the length is linear between two quantiles; it is then divided by `shrink`."""
    at = draw.random()
    for (low, short), (high, long) in zip(QUANTILES, QUANTILES[1:]):
        if at < high:
            share = (at - low) / (high - low)
            return max(2, round(math.exp(math.log(short) + share * math.log(long / short)) / shrink))


def skewed_documents(count, shrink, seed=1, vocabulary=256):
    draw = random.Random(seed)
    return [draw.choices(range(vocabulary), k=skewed_length(draw, shrink) + 1) for _ in range(count)]
