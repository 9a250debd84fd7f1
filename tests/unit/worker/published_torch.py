#!/usr/bin/env python3
"""A published model, trained by wlb-worker and by PyTorch, and what Transformers makes of its export.

Usage: published_torch.py BIN_DIR [UNITTEST-OPTION...], by a Python that has torch and transformers.
"""
import json
import pathlib
import sys
import unittest

import torch
import transformers

BIN = pathlib.Path(sys.argv[1]).resolve()
HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parents[1] / "reference"), str(HERE.parents[2] / "examples")]
import make_fixture  # noqa: E402
import published_test  # noqa: E402
import read_checkpoint  # noqa: E402

STEPS, LENGTH = 10, 32
DOCUMENT = [(11 * k * k + 3 * k) % 67 for k in range(LENGTH + 1)]


# Of these some tokens count in the loss, of the last none: 59 inputs, all of one step.
MASKED_DOCUMENTS = [[(11 * k * k + 3 * k + i) % 67 for k in range(length)] for i, length in enumerate((20, 33, 9))]
MASKS = [[int((5 * k + i) % 7 < 3 and i < 2) for k in range(len(document))] for i, document in enumerate(MASKED_DOCUMENTS)]


def load_in_float64(folder):
    model = make_fixture.wide_model(transformers.AutoConfig.from_pretrained(folder, attn_implementation="eager"))
    model.load_state_dict(transformers.AutoModelForCausalLM.from_pretrained(folder).state_dict())
    return model


def masked_by_torch(folder):
    """The loss of the tokens that count, the sum divided by their number in the batch, and the gradient of each tensor."""
    model, loss = load_in_float64(folder), 0.0
    for document, mask in zip(MASKED_DOCUMENTS, MASKS, strict=True):
        targets = torch.tensor([token if counts else -100 for token, counts in zip(document[1:], mask[1:], strict=True)])
        logits = model(input_ids=torch.tensor([document[:-1]]), use_cache=False).logits[0]
        loss = loss + torch.nn.functional.cross_entropy(logits, targets, ignore_index=-100, reduction="sum")
    loss = loss / sum(sum(mask[1:]) for mask in MASKS)
    loss.backward()
    return loss.item(), {name: weight.grad for name, weight in model.named_parameters()}


def train_by_torch(folder):
    """The losses of the steps, and the weights after them: AdamW on one document, all in float64."""
    model = load_in_float64(folder)
    matrices = [p for p in model.parameters() if p.dim() > 1]
    norms = [p for p in model.parameters() if p.dim() == 1]
    optimizer = torch.optim.AdamW([{"params": matrices, "weight_decay": 0.1}, {"params": norms, "weight_decay": 0.0}],
                                  lr=1e-2, betas=(0.9, 0.95), eps=1e-8)
    tokens, losses = torch.tensor([DOCUMENT]), []
    for _ in range(STEPS):
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(input_ids=tokens[:, :-1], use_cache=False).logits[0], tokens[0, 1:])
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        losses.append(loss.item())
    return losses, model


class PublishedTorch(published_test.PublishedCase):
    def setUp(self):
        super().setUp()
        published_test.write_dataset(self.dir / "data", [DOCUMENT])

    def train_here(self, folder, name, steps, *words, layout=published_test.LAYOUTS[0]):
        done = self.train(folder, "--seq-length", LENGTH, "--global-batch-size", 1, "--dtype", "float64", "--train-iters", steps,
                          "--lr", "1e-2", "--lr-decay-style", "constant", "--weight-decay", "0.1", "--adam-beta2", "0.95",
                          "--metrics-file", name, *words, layout=layout)
        return self.losses(done, name)

    def check_export(self, folder, reference, loss, *words):
        """Transformers loads it, and has the logits of the reference and the loss of wlb-worker."""
        out = self.dir / f"{folder.name}-out-{len(words)}"
        self.export(0, self.dir / folder.name, out, "--dtype", "fp32", *words)
        model, tokens = transformers.AutoModelForCausalLM.from_pretrained(out), torch.tensor([DOCUMENT])
        self.assertEqual(next(model.parameters()).dtype, torch.float32)
        config, source = (json.loads((path / "config.json").read_text()) for path in (out, folder))
        for key in ("architectures", "model_type"):
            self.assertEqual(config[key], source[key])
        with torch.no_grad():
            logits = model(input_ids=tokens[:, :-1]).logits[0]
            expected = reference(input_ids=tokens[:, :-1]).logits[0]
        self.assertLess((logits.double() - expected).abs().max().item(), 1e-4)
        self.assertLess(abs(torch.nn.functional.cross_entropy(logits, tokens[0, 1:]).item() - loss), 1e-4)

    def check(self, name, layout):
        folder, ck, bf16 = published_test.MODELS / name, self.dir / name, self.dir / f"{name}-bf16"
        expected, reference = train_by_torch(folder)
        losses = self.train_here(folder, f"{name}-ten", STEPS, "--save", ck, layout=layout)
        self.assertLess(losses[-1], losses[0] - 0.5)
        for step, (found, other) in enumerate(zip(losses, expected, strict=True)):
            self.assertLess(abs(found - other), 1e-6, f"step {step + 1}")
        after = self.train_here(folder, f"{name}-eleventh", STEPS + 1, "--load", ck, "--override-opt_param-scheduler")[0]
        self.check_export(folder, reference, after)
        self.check_export(folder, reference, after, "--from", folder)
        self.export(0, ck, bf16, "--from", folder)
        self.assertEqual(next(transformers.AutoModelForCausalLM.from_pretrained(bf16).parameters()).dtype, torch.bfloat16)

    def test_models(self):
        for name, layout in published_test.LAYOUT_OF.items():
            with self.subTest(name):
                self.check(name, layout)


class MaskedTorch(published_test.PublishedCase):
    def check(self, name, layout, loss, gradients):
        """Without its decay AdamW's first moment is the gradient."""
        ck, metrics = (self.dir / f"{name}-{layout}-{end}" for end in ("ck", "metrics"))
        done = self.train(published_test.MODELS / name, *published_test.STILL, "--seq-length", LENGTH, "--global-batch-size", 2,
                          "--dtype", "float64", "--packing", "balanced", "--adam-beta1", 0, "--clip-grad", 0, "--save", ck,
                          "--metrics-file", metrics, layout=layout)
        self.assertIn(f"\nthe loss is that of {sum(sum(mask[1:]) for mask in MASKS)} tokens: the others are masked\n", done.stdout)
        step = json.loads(metrics.read_text())
        self.assertEqual((step["documents"], step["tokens"]), (len(MASKS), sum(len(mask) - 1 for mask in MASKS)))
        self.assertLess(abs(step["loss"] - loss), 1e-9)
        found = read_checkpoint.read(ck / "step_00000001")
        for tensor, gradient in gradients.items():
            self.assertLess((torch.tensor(found[f"optimizer.m.{tensor}"]) - gradient).abs().max().item(), 1e-9, tensor)

    def test_masked(self):
        published_test.write_dataset(self.dir / "data", MASKED_DOCUMENTS)
        (self.dir / "data.loss_mask").write_bytes(bytes(sum(MASKS, [])))
        for name in ("untied", "tied"):
            loss, gradients = masked_by_torch(published_test.MODELS / name)
            self.assertGreater(max(gradient.abs().max().item() for gradient in gradients.values()), 1e-2)
            for layout in published_test.LAYOUTS[:3]:
                with self.subTest(f"{name} {layout}"):
                    self.check(name, layout, loss, gradients)


if __name__ == "__main__":
    unittest.main()
