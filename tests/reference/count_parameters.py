#!/usr/bin/env python3
"""Has Transformers count the parameters of the models of published.json, without memory for them, and compares. Of models with
experts also those that compute a token, and PyTorch the operations of a token's forward pass through the layers.

    ENV/bin/python tests/reference/count_parameters.py           compares: not part of a test run
    ENV/bin/python tests/reference/count_parameters.py --force   writes the counts into published.json

ENV is that of make_fixture.py. tests/unit/data/test_published_models.c reads what is committed.
"""
import json
import pathlib
import sys

import torch
from torch.utils.flop_counter import FlopCounterMode
from transformers import CONFIG_MAPPING, AutoModelForCausalLM

FILE = pathlib.Path(__file__).parent / "published.json"


def make(config, **changed):
    """The model, whose tensors have no memory."""
    kind = CONFIG_MAPPING[config["model_type"]]
    fields = {name: value for name, value in config.items() if name not in ("rope_scaling", "auto_map", "quantization_config")}
    with torch.device("meta"):
        return AutoModelForCausalLM.from_config(kind.from_dict({**fields, **changed}), experts_implementation="batched_mm")


def layer_flops(config, **changed):
    """The counter sees one layer compute one token, by the experts of a token alone."""
    model = make(config, num_hidden_layers=1, layer_types=None, **changed)
    with FlopCounterMode(display=False) as counter, torch.device("meta"):
        model(input_ids=torch.zeros(1, 1, dtype=torch.int64), attention_mask=torch.zeros(1, 1, 1, 1), use_cache=False)
    (flops,) = [sum(counts.values()) for name, counts in counter.get_flop_counts().items() if name.endswith(".layers.0")]
    return flops


def token_flops(config):
    """Layers with experts take as many as each other, and so do the first ones of DeepSeek, which have none."""
    dense = config.get("first_k_dense_replace", 0)
    flops = (config["num_hidden_layers"] - dense) * layer_flops(config, first_k_dense_replace=0)
    return flops + (dense * layer_flops(config, first_k_dense_replace=1) if dense > 0 else 0)


def count(config):
    model = make(config)
    counts = {"parameters": sum(weight.numel() for weight in model.parameters())}  # tied ones once
    of_experts = sum(weight.numel() for name, weight in model.named_parameters() if ".experts." in name)
    if of_experts > 0:
        experts = next(count for name in ("num_local_experts", "n_routed_experts", "num_experts")
                       if (count := getattr(model.config, name, None)) is not None)
        idle = of_experts * (experts - model.config.num_experts_per_tok) // experts
        counts |= {"active_parameters": counts["parameters"] - idle, "token_flops": token_flops(config)}
    return counts


def main():
    models = json.loads(FILE.read_text(encoding="utf-8"))
    for model in models:
        if model["verdict"] == "refused":
            continue
        counts = count(model["config"])
        written = {name: model.get(name) for name in counts}
        if sys.argv[1:] == ["--force"]:
            model |= counts
        elif written != counts:
            sys.exit(f"count_parameters.py: {model['name']}: {written} is written, Transformers has {counts}")
    if sys.argv[1:] == ["--force"]:
        lines = (json.dumps({name: value for name, value in sorted(model.items(), key=lambda item: item[0] == "config")})
                 for model in models)
        FILE.write_text("[\n" + ",\n".join(lines) + "\n]\n", encoding="utf-8")


if __name__ == "__main__":
    main()
