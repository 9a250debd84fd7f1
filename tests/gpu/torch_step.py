#!/usr/bin/env python3
"""Times PyTorch on the step that the test steps_1b times: a Llama of 1.1 G parameters, 16,384 tokens of packed
documents, AdamW, compiled by torch.compile, with the faster of flex_attention and variable-length attention.

    torch_step.py PREFIX     # a dataset in Megatron-LM's format, for the lengths of its documents

Parameters and optimizer states are float32, the computation bfloat16 (autocast), as usual where master weights are
kept. Prints lines "name <tab> number <tab> what", the fastest attention's last. Without PyTorch or a GPU it says so in
one line and exits 77."""
import random
import struct
import sys
import time

HIDDEN, FEED_FORWARD, LAYERS, HEADS, KV_HEADS, VOCABULARY, LONGEST, TOKENS = 2048, 8192, 16, 32, 8, 32000, 4096, 16384
HEAD_DIM = HIDDEN // HEADS
WARM_UP, STEPS = 5, 20

try:
    import torch
    import torch.nn.functional as F
    from torch import nn
    from torch.nn.attention.flex_attention import create_block_mask, flex_attention
except ImportError as reason:
    print(f"PyTorch is not on this machine: {reason}")
    sys.exit(77)
if not torch.cuda.is_available():
    print("PyTorch sees no GPU")
    sys.exit(77)


def lengths_of(prefix):
    """Lengths of TOKENS tokens of documents, drawn from the dataset and cut at LONGEST, as the loader cuts them."""
    with open(prefix + ".idx", "rb") as file:
        header = file.read(34)
        count = struct.unpack("<Q", header[18:26])[0]
        all_lengths = struct.unpack(f"<{count}i", file.read(4 * count))
    draw, found, left = random.Random(1), [], TOKENS
    while left > 0:
        found.append(min(draw.choice(all_lengths), LONGEST, left))
        left -= found[-1]
    return found


class Rotary(nn.Module):
    def __init__(self, positions):
        super().__init__()
        frequencies = 1.0 / 10000.0 ** (torch.arange(0, HEAD_DIM, 2, device="cuda").float() / HEAD_DIM)
        angles = positions.float()[:, None] * frequencies[None, :]
        self.register_buffer("cos", angles.cos()[:, None, :])
        self.register_buffer("sin", angles.sin()[:, None, :])

    def forward(self, x):
        first, second = x.float().chunk(2, dim=-1)
        return torch.cat((first * self.cos - second * self.sin, second * self.cos + first * self.sin), -1).to(x.dtype)


class Layer(nn.Module):
    def __init__(self, attend):
        super().__init__()
        self.attend = attend
        self.norms = nn.ParameterList(nn.Parameter(torch.ones(HIDDEN)) for _ in range(2))
        self.qkv = nn.Linear(HIDDEN, (HEADS + 2 * KV_HEADS) * HEAD_DIM, bias=False)
        self.output = nn.Linear(HIDDEN, HIDDEN, bias=False)
        self.gate_up = nn.Linear(HIDDEN, 2 * FEED_FORWARD, bias=False)
        self.down = nn.Linear(FEED_FORWARD, HIDDEN, bias=False)

    def forward(self, x, rotary):
        qkv = self.qkv(F.rms_norm(x, (HIDDEN,), self.norms[0].to(x.dtype))).view(TOKENS, -1, HEAD_DIM)
        q, k, v = qkv.split((HEADS, KV_HEADS, KV_HEADS), dim=1)
        x = x + self.output(self.attend(rotary(q), rotary(k), v).reshape(TOKENS, HIDDEN))
        gate, up = self.gate_up(F.rms_norm(x, (HIDDEN,), self.norms[1].to(x.dtype))).chunk(2, dim=-1)
        return x + self.down(F.silu(gate) * up)


class Llama(nn.Module):
    def __init__(self, attend, positions):
        super().__init__()
        self.rotary = Rotary(positions)
        self.embedding = nn.Embedding(VOCABULARY, HIDDEN)
        self.layers = nn.ModuleList(Layer(attend) for _ in range(LAYERS))
        self.norm = nn.Parameter(torch.ones(HIDDEN))
        self.head = nn.Linear(HIDDEN, VOCABULARY, bias=False)

    def forward(self, tokens, targets):
        x = self.embedding(tokens).to(torch.bfloat16)
        for layer in self.layers:
            x = layer(x, self.rotary)
        logits = self.head(F.rms_norm(x, (HIDDEN,), self.norm.to(x.dtype)))
        return F.cross_entropy(logits.float(), targets)


def flex(lengths):
    document = torch.repeat_interleave(torch.arange(len(lengths), device="cuda"), torch.tensor(lengths, device="cuda"))
    mask = create_block_mask(lambda b, h, i, j: (i >= j) & (document[i] == document[j]), None, None, TOKENS, TOKENS,
                             device="cuda")

    def attend(q, k, v):
        heads_first = (x.transpose(0, 1)[None] for x in (q, k, v))
        return flex_attention(*heads_first, block_mask=mask, enable_gqa=True)[0].transpose(0, 1)
    return attend


def variable_length(lengths):
    from torch.nn.attention.varlen import varlen_attn
    starts = torch.tensor([0] + lengths, device="cuda").cumsum(0).to(torch.int32)
    longest = max(lengths)

    def attend(q, k, v):
        k, v = (x.repeat_interleave(HEADS // KV_HEADS, dim=1) for x in (k, v))
        return varlen_attn(q.contiguous(), k, v, starts, starts, longest, longest, window_size=(-1, 0))
    return attend


def measure(attend, lengths):
    """Returns seconds of a step and bytes of memory at most."""
    torch.manual_seed(1)
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    positions = torch.cat([torch.arange(n, device="cuda") for n in lengths])
    with torch.device("cuda"):
        model = Llama(attend, positions)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, weight_decay=0.1, fused=True)
    compiled = torch.compile(model)
    tokens = torch.randint(0, 257, (TOKENS + 1,), device="cuda")
    for step in range(WARM_UP + STEPS):
        if step == WARM_UP:
            torch.cuda.synchronize()
            began_s = time.monotonic()
        with torch.autocast("cuda", dtype=torch.bfloat16):
            loss = compiled(tokens[:-1], tokens[1:])
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
    torch.cuda.synchronize()
    return (time.monotonic() - began_s) / STEPS, torch.cuda.max_memory_allocated()


def main():
    torch.set_float32_matmul_precision("high")
    lengths, found = lengths_of(sys.argv[1]), {}
    for name, make in (("flex_attention", flex), ("varlen_attn", variable_length)):
        try:
            found[name] = measure(make(lengths), lengths)
            print(f"# {name}: {found[name][0]:.4f} s a step, {1e-9 * found[name][1]:.1f} GB", flush=True)
        except Exception as reason:  # pylint: disable=broad-except # the other attention may work
            print(f"# {name}: {str(reason).splitlines()[0] if str(reason) else repr(reason)}", flush=True)
        torch._dynamo.reset()
    if not found:
        sys.exit(1)
    best = min(found, key=found.get)
    seconds, memory = found[best]
    print(f"step of 1.1 G parameters\t{TOKENS / seconds:.0f}\ttokens/s, {seconds:.4f} s a step of {len(lengths)} documents, "
          f"{1e-9 * memory:.1f} GB; torch {torch.__version__}, torch.compile, {best}")


main()
