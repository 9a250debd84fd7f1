#!/usr/bin/env python3
"""Asks Transformers and PyTorch what a small model of each family computes, and writes it beside this script: for each
name of MODELS a folder as save_pretrained() makes them, and in expected/ what the model gave.

    python3 -m venv ENV && ENV/bin/pip install torch transformers && ENV/bin/python tests/reference/make_fixture.py --force

--force: what is committed is overwritten; nothing is done without it.

Not part of a test run: tests/unit/worker/test_pytorch_reference.c reads what is committed. Made with torch 2.15.0 and
transformers 5.23.0 (untied, tied) and 5.24.0 (the others).
"""
import importlib
import inspect
import pathlib
import re
import sys
import types

import torch
import transformers
from safetensors.torch import save_file
from transformers import modeling_rope_utils

# Inputs of each document; it has one token more, the last target.
LENGTHS = (7, 1, 12, 5)

# Grouped queries; heads x head_dim other than hidden_size; angles that turn fast, so that positions matter.
SIZES = {"hidden_size": 16, "intermediate_size": 24, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 8,
         "num_hidden_layers": 2, "vocab_size": 67, "max_position_embeddings": 64, "rms_norm_eps": 1e-5,
         "attn_implementation": "eager", "bos_token_id": None, "eos_token_id": None, "pad_token_id": None}


def rope(kind="default", **fields):
    return {"rope_type": kind, "rope_theta": 300.0, **fields}


# The name of the classes in Transformers, and what differs from SIZES: windows are shorter than the documents, of all
# layers and of some. The order decides the weights.
MODELS = {
    "untied": ("Llama", {"num_hidden_layers": 3, "tie_word_embeddings": False}),
    "tied": ("Llama", {"tie_word_embeddings": True}),
    "llama3": ("Llama", {"rope_parameters": rope("llama3", factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0,
                                                 original_max_position_embeddings=16)}),
    "linear": ("Llama", {"rope_parameters": rope("linear", factor=4.0)}),
    "yarn": ("Llama", {"rope_parameters": rope("yarn", factor=4.0, original_max_position_embeddings=16)}),
    "mistral": ("Mistral", {"sliding_window": 4}),
    "qwen2": ("Qwen2", {"tie_word_embeddings": True}),
    "qwen3": ("Qwen3", {"use_sliding_window": True, "sliding_window": 5, "max_window_layers": 1}),
    "olmo2": ("Olmo2", {}),
    "phi3": ("Phi3", {"rope_parameters": rope(partial_rotary_factor=0.75)}),
    "smollm3": ("SmolLM3", {"num_hidden_layers": 3, "no_rope_layer_interval": 2, "tie_word_embeddings": True}),
    # Caps that bend, and scores that are not divided by the root of head_dim.
    "gemma2": ("Gemma2", {"query_pre_attn_scalar": 5, "attn_logit_softcapping": 2.5, "final_logit_softcapping": 4.0,
                          "sliding_window": 4}),
    "gemma3": ("Gemma3Text", {"num_hidden_layers": 3, "query_pre_attn_scalar": 12, "sliding_window": 5, "sliding_window_pattern": 2,
                          "rope_parameters": {"full_attention": rope("linear", factor=4.0), "sliding_attention": {**rope(), "rope_theta": 40.0}}}),
}


def in_float64(module):
    """A module of Transformers with float64 for float32: norms, softmax and angles are computed in float32 else, whatever
    the type of the model."""
    source = re.sub(r"torch\.float(32)?\b", "torch.float64", inspect.getsource(module))
    wide = types.ModuleType(f"{module.__name__}_float64")
    wide.__package__ = module.__package__
    wide.__file__ = module.__file__
    sys.modules[wide.__name__] = wide
    exec(compile(source.replace(".float()", ".double()"), wide.__name__, "exec"), wide.__dict__)
    return wide


def class_of(family):
    return family.removesuffix("Text") + "ForCausalLM"


def wide_model(config):
    """The model of a configuration in float64, without its weights."""
    module = importlib.import_module(type(config).__module__.replace("configuration_", "modeling_"))
    # Transformers has one table of functions that make frequencies, to which all modules refer.
    table = modeling_rope_utils.ROPE_INIT_FUNCTIONS
    narrow = dict(table)
    table.update(in_float64(modeling_rope_utils).ROPE_INIT_FUNCTIONS)
    wide = getattr(in_float64(module), class_of(type(config).__name__.removesuffix("Config")))(config).double()
    table.update(narrow)
    return wide


def set_weights(model, generator):
    """So large that every part has a say in the loss."""
    with torch.no_grad():
        for name, weight in model.named_parameters():
            weight.normal_(0.0, 0.3, generator=generator)
            if "norm" in name and "Gemma" not in type(model).__name__:  # there it is added to the weight
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


def compare(name, untouched, given):
    """Prints the greatest difference of the unchanged Transformers, which must be that of float32."""
    greatest = 0.0
    for part, value in given.items():
        difference = ((untouched[part].double() - value).abs().max() / value.abs().max()).item()
        assert difference < 1e-5, f"{part} of the unchanged Transformers differs by {difference}"
        greatest = max(greatest, difference)
    print(f"{name}: the unchanged Transformers, in float32, differs by {greatest:.1e}")


def make(folder, generator):
    class_name, differences = MODELS[folder.name]
    config = {**SIZES, "rope_parameters": rope(), **differences}
    config_class = getattr(transformers, f"{class_name}Config")
    model = getattr(transformers, class_of(class_name))(config_class(**config))
    set_weights(model, generator)
    documents = [torch.randint(67, (length + 1,), generator=generator) for length in LENGTHS]
    wide = wide_model(config_class(**config))
    wide.load_state_dict(model.state_dict())
    given, untouched = reference_values(wide, documents), reference_values(model, documents)
    compare(folder.name, untouched, given)
    model.save_pretrained(folder)
    (folder / "generation_config.json").unlink(missing_ok=True)
    (folder / "expected").mkdir(exist_ok=True)
    given["tokens"] = torch.cat(documents).double()
    save_file({name: value.contiguous() for name, value in given.items()}, folder / "expected" / "model.safetensors")


def main():
    if sys.argv[1:] != ["--force"]:
        sys.exit(f"make_fixture.py: it overwrites {', '.join(sorted(MODELS))} in {pathlib.Path(__file__).parent}; --force does that")
    generator = torch.Generator().manual_seed(1)
    for name in MODELS:
        make(pathlib.Path(__file__).parent / name, generator)


if __name__ == "__main__":
    main()
