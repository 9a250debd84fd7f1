#!/usr/bin/env python3
"""Asks Transformers and PyTorch what a small Llama computes, and writes it beside this script: tests/reference/untied and
tests/reference/tied, each a folder as save_pretrained() makes them, and in expected/ what the model gave.

    python3 -m venv ENV && ENV/bin/pip install torch transformers && ENV/bin/python tests/reference/make_fixture.py --force

--force: what is committed is overwritten; nothing is done without it.

Not part of a test run: tests/unit/worker/test_pytorch_reference.c reads what is committed. Made with torch 2.15.0 and
transformers 5.23.0.
"""
import inspect
import pathlib
import re
import sys
import types

import torch
from safetensors.torch import save_file
from transformers.models.llama import modeling_llama
from transformers.models.llama.configuration_llama import LlamaConfig

# Inputs of each document; it has one token more, the last target.
LENGTHS = (7, 1, 12, 5)
MODELS = {"untied": {"num_hidden_layers": 3, "tie_word_embeddings": False},
          "tied": {"num_hidden_layers": 2, "tie_word_embeddings": True}}


def config(**differences):
    """Grouped queries; heads x head_dim other than hidden_size; angles that turn fast, so that positions matter."""
    return LlamaConfig(hidden_size=16, intermediate_size=24, num_attention_heads=4, num_key_value_heads=2, head_dim=8,
                       vocab_size=67, max_position_embeddings=64, rms_norm_eps=1e-5,
                       rope_parameters={"rope_type": "default", "rope_theta": 300.0},
                       attn_implementation="eager", bos_token_id=None, eos_token_id=None, **differences)


def in_float64():
    """Transformers' own source with float64 for float32: norms, softmax and angles are computed in float32 else,
    whatever the type of the model."""
    source = re.sub(r"torch\.float(32)?\b", "torch.float64", inspect.getsource(modeling_llama))
    module = types.ModuleType("transformers.models.llama.modeling_llama_float64")
    module.__package__ = modeling_llama.__package__
    module.__file__ = modeling_llama.__file__
    sys.modules[module.__name__] = module
    exec(compile(source.replace(".float()", ".double()"), module.__name__, "exec"), module.__dict__)
    return module


def set_weights(model, generator):
    """So large that every part has a say in the loss."""
    with torch.no_grad():
        for name, weight in model.named_parameters():
            weight.normal_(0.0, 0.3, generator=generator)
            if "norm" in name:
                weight.add_(1.0)


def reference_values(model, documents):
    """Returns the logits of every token, the summed loss and its gradients; each document is computed alone."""
    logits, loss = [], 0.0
    for document in documents:
        logits.append(model(input_ids=document[None, :-1], use_cache=False).logits[0])
        loss = loss + torch.nn.functional.cross_entropy(logits[-1], document[1:], reduction="sum")
    loss.backward()
    given = {name: weight.grad for name, weight in model.named_parameters()}
    return {**given, "logits": torch.cat(logits).detach(), "loss": loss.detach()[None]}


def make(folder, module, differences, generator):
    model = modeling_llama.LlamaForCausalLM(config(**differences))
    set_weights(model, generator)
    documents = [torch.randint(67, (length + 1,), generator=generator) for length in LENGTHS]
    wide = module.LlamaForCausalLM(config(**differences)).double()
    wide.load_state_dict(model.state_dict())
    given, untouched = reference_values(wide, documents), reference_values(model, documents)
    for name, value in given.items():
        difference = ((untouched[name].double() - value).abs().max() / value.abs().max()).item()
        assert difference < 1e-5, f"{name} of the unchanged Transformers differs by {difference}"
    model.save_pretrained(folder)
    (folder / "generation_config.json").unlink(missing_ok=True)
    (folder / "expected").mkdir(exist_ok=True)
    given["tokens"] = torch.cat(documents).double()
    save_file({name: value.contiguous() for name, value in given.items()}, folder / "expected" / "model.safetensors")


def main():
    if sys.argv[1:] != ["--force"]:
        sys.exit(f"make_fixture.py: it overwrites {', '.join(sorted(MODELS))} in {pathlib.Path(__file__).parent}; --force does that")
    generator = torch.Generator().manual_seed(1)
    module = in_float64()
    for name, differences in MODELS.items():
        make(pathlib.Path(__file__).parent / name, module, differences, generator)


if __name__ == "__main__":
    main()
