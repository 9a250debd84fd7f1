#!/usr/bin/env python3
"""Times PyTorch on what wlb-gpu-speed times: attention of one document and of packed ones, by the best of its kernels,
and matrix products, in bfloat16. Prints lines of the same form: "name <tab> TFLOP/s <tab> which kernel". Without PyTorch
or a GPU it says so in one line and exits 77."""
import sys

HEADS, KV_HEADS, HEAD_DIM, TOKENS, WIDTH, FEED_FORWARD = 32, 8, 128, 16384, 2048, 8192
RUNS = 10

try:
    import torch
    import torch.nn.functional as F
    from torch.nn.attention import SDPBackend, sdpa_kernel
    from torch.nn.attention.flex_attention import create_block_mask, flex_attention
except ImportError as reason:
    print(f"PyTorch is not on this machine: {reason}")
    sys.exit(77)
if not torch.cuda.is_available():
    print("PyTorch sees no GPU")
    sys.exit(77)


def seconds(run):
    for _ in range(3):
        run()
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    begin.record()
    for _ in range(RUNS):
        run()
    end.record()
    torch.cuda.synchronize()
    return 1e-3 * begin.elapsed_time(end) / RUNS


def random(*shape):
    return torch.rand(shape, device="cuda", dtype=torch.bfloat16) * 2 - 1


def report(name, flops, found):
    """found: kernel -> seconds; the fastest is printed."""
    if found:
        kernel = min(found, key=found.get)
        print(f"{name}\t{1e-12 * flops / found[kernel]:.1f}\t{kernel}", flush=True)


def attempt(found, kernel, run):
    try:
        found[kernel] = seconds(run)
    except (RuntimeError, torch.cuda.OutOfMemoryError) as reason:
        print(f"# {kernel}: {str(reason).splitlines()[0]}", flush=True)


def attention(name, lengths):
    tokens = sum(lengths)
    q = random(1, HEADS, tokens, HEAD_DIM).requires_grad_()
    k, v = (random(1, KV_HEADS, tokens, HEAD_DIM).requires_grad_() for _ in range(2))
    d_out = random(1, HEADS, tokens, HEAD_DIM)
    flops = 4 * HEADS * HEAD_DIM * sum(n * (n + 1) / 2 for n in lengths)
    calls = {}
    if len(lengths) == 1:
        def sdpa(backend):
            with sdpa_kernel(backend):
                return F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)

        for backend in (SDPBackend.FLASH_ATTENTION, SDPBackend.CUDNN_ATTENTION):
            calls[backend.name] = lambda backend=backend: sdpa(backend)
    document = torch.repeat_interleave(torch.arange(len(lengths), device="cuda"),
                                       torch.tensor(lengths, device="cuda"))
    mask = create_block_mask(lambda b, h, i, j: (i >= j) & (document[i] == document[j]), None, None, tokens, tokens,
                             device="cuda")
    compiled = torch.compile(flex_attention)
    calls["flex_attention"] = lambda: compiled(q, k, v, block_mask=mask, enable_gqa=True)
    forward, backward = {}, {}
    for kernel, call in calls.items():
        attempt(forward, kernel, call)
        if kernel not in forward:
            continue
        out = call()
        attempt(backward, kernel, lambda out=out: torch.autograd.grad(out, (q, k, v), d_out, retain_graph=True))
    report(f"attention_forward {name}", flops, forward)
    report(f"attention_backward {name}", 2.5 * flops, backward)


def products():
    for name, depth, columns in (("qkv", WIDTH, WIDTH + WIDTH // 2), ("attention_output", WIDTH, WIDTH),
                                 ("gate_up", WIDTH, 2 * FEED_FORWARD), ("down", FEED_FORWARD, WIDTH)):
        x, w, d_y = random(TOKENS, depth), random(columns, depth), random(TOKENS, columns)
        flops = 2 * TOKENS * depth * columns
        report(f"linear {name}", flops, {"matmul": seconds(lambda: x @ w.T)})
        report(f"linear_d_x {name}", flops, {"matmul": seconds(lambda: d_y @ w)})
        report(f"linear_d_w {name}", flops, {"matmul": seconds(lambda: d_y.T @ x)})


def packed():
    lengths, left = [], TOKENS
    while left > 0:
        lengths.append(left // 2 if left > 1 else 1)
        left -= lengths[-1]
    return lengths


products()
for length in (4096, 16384, 32768, 131072):
    attention(f"one document of {length}", [length])
attention("packed, each half the one before", packed())
