#!/usr/bin/env python3
"""Has Transformers count the parameters of the models of published.json, without memory for them, and compares.

    ENV/bin/python tests/reference/count_parameters.py           compares: not part of a test run
    ENV/bin/python tests/reference/count_parameters.py --force   writes the counts into published.json

ENV is that of make_fixture.py. tests/unit/data/test_published_models.c reads what is committed.
"""
import json
import pathlib
import sys

import torch
from transformers import CONFIG_MAPPING, AutoModelForCausalLM

FILE = pathlib.Path(__file__).parent / "published.json"


def count(config):
    kind = CONFIG_MAPPING[config["model_type"]]
    with torch.device("meta"):
        fields = {name: value for name, value in config.items() if name not in ("rope_scaling", "auto_map")}
        model = AutoModelForCausalLM.from_config(kind.from_dict(fields))
    return sum(weight.numel() for weight in model.parameters())  # tied ones once


def main():
    models = json.loads(FILE.read_text(encoding="utf-8"))
    for model in models:
        if model["verdict"] == "refused":
            continue
        counted = count(model["config"])
        if sys.argv[1:] == ["--force"]:
            model["parameters"] = counted
        elif model["parameters"] != counted:
            sys.exit(f"count_parameters.py: {model['name']}: {model['parameters']} is written, Transformers has {counted}")
    if sys.argv[1:] == ["--force"]:
        lines = (json.dumps({name: value for name, value in sorted(model.items(), key=lambda item: item[0] == "config")})
                 for model in models)
        FILE.write_text("[\n" + ",\n".join(lines) + "\n]\n", encoding="utf-8")


if __name__ == "__main__":
    main()
