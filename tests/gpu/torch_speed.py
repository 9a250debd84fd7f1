#!/usr/bin/env python3
"""Times PyTorch on what wlb-gpu-speed times: attention of one document and of several, by the best of its kernels, and
matrix products, in bfloat16. Prints lines of the same form: "name <tab> TFLOP/s <tab> which kernel", and a line that
begins with # for each that failed. Without PyTorch or a GPU it says so in one line and exits 77."""
import inspect
import sys
import time

HEADS, KV_HEADS, HEAD_DIM, SMALL_HEAD_DIM, TOKENS, WIDTH, FEED_FORWARD = 32, 8, 128, 64, 16384, 2048, 8192
MOST_RUNS, MEASURE_S = 10, 0.3
LIMIT_S, COMPILE_LIMIT_S = 90, 60  # what has not begun by then, or what compiles, is left out
MOST_WHOLE_MASK = 32768  # tokens of which a mask of all pairs fits the memory

try:
    import torch
    import torch._functorch.config
    import torch.nn.functional as F
    from torch.nn.attention import SDPBackend, sdpa_kernel
    from torch.nn.attention.flex_attention import create_block_mask, flex_attention
except ImportError as reason:
    print(f"PyTorch is not on this machine: {reason}")
    sys.exit(77)
if not torch.cuda.is_available():
    print("PyTorch sees no GPU")
    sys.exit(77)
torch._functorch.config.donated_buffer = False  # a backward pass is repeated on the buffers of one forward pass
BEGAN_S, REPORTED = time.monotonic(), []


def seconds_of(run, times):
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    begin.record()
    for _ in range(times):
        run()
    end.record()
    torch.cuda.synchronize()
    return 1e-3 * begin.elapsed_time(end) / times


def seconds(run):
    run()  # it may compile
    once_s = seconds_of(run, 1)
    return seconds_of(run, max(1, min(MOST_RUNS, int(MEASURE_S / once_s))))


def random(*shape):
    return torch.rand(shape, device="cuda", dtype=torch.bfloat16) * 2 - 1


def report(name, flops, found):
    """found: kernel -> seconds; the fastest is printed."""
    if found:
        kernel = min(found, key=found.get)
        REPORTED.append(name)
        print(f"{name}\t{1e-12 * flops / found[kernel]:.1f}\t{kernel}", flush=True)


def attempt(name, run, limit_s=LIMIT_S):
    """Runs what may fail, or may be too late, without an end of the program."""
    if time.monotonic() - BEGAN_S > limit_s:
        print(f"# {name}: left out, after {limit_s} s", flush=True)
        return
    try:
        run()
    except Exception as reason:  # pylint: disable=broad-except # the others may work
        print(f"# {name}: {str(reason).splitlines()[0] if str(reason) else repr(reason)}", flush=True)


def operands(batch, tokens, head_dim, heads_first):
    """q, k and v, and the gradient of the output."""
    shapes = ((heads, tokens) if heads_first else (tokens, heads) for heads in (HEADS, KV_HEADS, KV_HEADS, HEADS))
    q, k, v, d_out = (random(*batch, *shape, head_dim) for shape in shapes)
    return [x.requires_grad_() for x in (q, k, v)], d_out


def sdpa(backend, lengths, head_dim):
    """Documents of equal length are a batch."""
    inputs, d_out = operands((len(lengths),), lengths[0], head_dim, heads_first=True)

    def call():
        with sdpa_kernel(backend):
            return F.scaled_dot_product_attention(*inputs, is_causal=True, enable_gqa=True)
    return call, inputs, d_out


def flex(lengths, head_dim):
    tokens = sum(lengths)
    inputs, d_out = operands((1,), tokens, head_dim, heads_first=True)
    document = torch.repeat_interleave(torch.arange(len(lengths), device="cuda"),
                                       torch.tensor(lengths, device="cuda"))
    make_mask = create_block_mask if tokens <= MOST_WHOLE_MASK else torch.compile(create_block_mask)
    mask = make_mask(lambda b, h, i, j: (i >= j) & (document[i] == document[j]), None, None, tokens, tokens,
                     device="cuda")
    compiled = torch.compile(flex_attention, dynamic=False)
    return lambda: compiled(*inputs, block_mask=mask, enable_gqa=True), inputs, d_out


def variable_length(lengths, head_dim):
    """Where the function takes no groups of heads, k and v are repeated, as its user must."""
    from torch.nn.attention.varlen import varlen_attn
    inputs, d_out = operands((), sum(lengths), head_dim, heads_first=False)
    starts = torch.tensor([0] + lengths, device="cuda").cumsum(0).to(torch.int32)
    longest = max(lengths)
    groups = {"enable_gqa": True} if "enable_gqa" in inspect.signature(varlen_attn).parameters else {}

    def call():
        q, k, v = inputs
        if not groups:
            k, v = (x.repeat_interleave(HEADS // KV_HEADS, dim=1) for x in (k, v))
        return varlen_attn(q, k, v, starts, starts, longest, longest, window_size=(-1, 0), **groups)
    return call, inputs, d_out


def attention(name, lengths, head_dim=HEAD_DIM):
    flops = 4 * HEADS * head_dim * sum(n * (n + 1) / 2 for n in lengths)
    kernels = {"varlen_attn": lambda: variable_length(lengths, head_dim),
               "flex_attention": lambda: flex(lengths, head_dim)}
    if min(lengths) == max(lengths):
        for backend in (SDPBackend.FLASH_ATTENTION, SDPBackend.CUDNN_ATTENTION):
            kernels[backend.name] = lambda backend=backend: sdpa(backend, lengths, head_dim)
    forward, backward = {}, {}

    def both_passes(kernel, make):
        call, inputs, d_out = make()
        forward[kernel] = seconds(call)
        out = call()
        backward[kernel] = seconds(lambda: torch.autograd.grad(out, inputs, d_out, retain_graph=True))

    for kernel, make in kernels.items():
        attempt(f"{name}, {kernel}", lambda kernel=kernel, make=make: both_passes(kernel, make),
                COMPILE_LIMIT_S if kernel == "flex_attention" else LIMIT_S)
        torch._dynamo.reset()
        torch.cuda.empty_cache()
    report(f"attention_forward {name}", flops, forward)
    report(f"attention_backward {name}", 2.5 * flops, backward)


def products():
    for name, depth, columns in (("qkv", WIDTH, WIDTH + WIDTH // 2), ("attention_output", WIDTH, WIDTH),
                                 ("gate_up", WIDTH, 2 * FEED_FORWARD), ("down", FEED_FORWARD, WIDTH)):
        x, w, d_y = random(TOKENS, depth), random(columns, depth), random(TOKENS, columns)
        flops = 2 * TOKENS * depth * columns
        for call, run in (("linear", lambda x=x, w=w: x @ w.T), ("linear_d_x", lambda d_y=d_y, w=w: d_y @ w),
                          ("linear_d_w", lambda d_y=d_y, x=x: d_y.T @ x)):
            what = f"{call} {name}"
            attempt(what, lambda what=what, run=run: report(what, flops, {"matmul": seconds(run)}))


def packed():
    lengths, left = [], TOKENS
    while left > 0:
        lengths.append(left // 2 if left > 1 else 1)
        left -= lengths[-1]
    return lengths


products()
attention("packed, each half the one before", packed())
attention(f"four documents of {TOKENS // 4}", 4 * [TOKENS // 4])
attention(f"four documents of {TOKENS // 4}, heads of {SMALL_HEAD_DIM}", 4 * [TOKENS // 4], SMALL_HEAD_DIM)
for document_length in (131072, 4096, 16384, 32768):  # most telling first
    attention(f"one document of {document_length}", [document_length])
sys.exit(0 if REPORTED else 1)
