#!/usr/bin/env python3
"""Published models in and out: `wlb-worker train --init-from` and `wlb export` as a user meets them, on the models of
tests/reference, which Transformers saved.

Usage: published_test.py BIN_DIR [UNITTEST-OPTION...]
"""
import array
import json
import os
import pathlib
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import unittest

BIN = pathlib.Path(sys.argv.pop(1)).resolve()
HERE = pathlib.Path(__file__).resolve().parent
MODELS = HERE.parents[1] / "reference"
LAYOUTS = ("tp=1,cp=1,pp=1,dp=1", "tp=2,cp=1,pp=1,dp=2", "tp=1,cp=2,pp=2,dp=1", "tp=4,cp=1,pp=1,dp=1")
# Of each model of tests/reference.
LAYOUT_OF = {
    "untied": "tp=2,cp=1,pp=1,dp=2", "tied": "tp=1,cp=2,pp=2,dp=1", "llama3": "tp=2,cp=1,pp=2,dp=1", "linear": "tp=1,cp=1,pp=2,dp=1",
    "yarn": "tp=1,cp=2,pp=1,dp=2", "mistral": "tp=4,cp=1,pp=1,dp=1", "qwen2": "tp=2,cp=1,pp=2,dp=1", "qwen3": "tp=2,cp=2,pp=1,dp=1",
    "olmo2": "tp=2,cp=1,pp=1,dp=2", "phi3": "tp=2,cp=1,pp=2,dp=1", "smollm3": "tp=2,cp=1,pp=2,dp=1",
    "gemma2": "tp=2,cp=2,pp=1,dp=1", "gemma3": "tp=2,cp=1,pp=2,dp=1",
}
# What `wlb ckpt show` says of them beside sizes.
SHOWN_OF = {
    "llama3": "rope_type llama3, factor 8, original_max_position_embeddings 16", "linear": "rope_type linear, factor 4",
    "yarn": "rope_type yarn, factor 4, original_max_position_embeddings 16",
    "mistral": "sliding_window 4 in 2 of 2 layers", "qwen3": "sliding_window 5 in 1 of 2 layers",
    "phi3": "of each head 6 elements are rotated", "smollm3": "no_rope_layer_interval 2",
    "gemma2": "sliding_window 4 in 1 of 2 layers\n              query_pre_attn_scalar 5, attn_logit_softcapping 2.5, final_logit_softcapping 4",
    "gemma3": "rope_type linear, factor 4\n              sliding_window 5 in 2 of 3 layers\n              rope_local_base_freq 40\n"
              "              query_pre_attn_scalar 12",
}
# A step that changes no weight: 1e-300 is nothing beside any of them.
STILL = ("--train-iters", "1", "--lr", "1e-300", "--weight-decay", "0", "--lr-decay-style", "constant")


def read_safetensors(path):
    """Of each tensor, by name: dtype, shape and bytes."""
    raw = path.read_bytes()
    start = 8 + int.from_bytes(raw[:8], "little")
    header = json.loads(raw[8:start])
    header.pop("__metadata__", None)
    return {name: (e["dtype"], e["shape"], raw[start + e["data_offsets"][0]:start + e["data_offsets"][1]])
            for name, e in header.items()}


def write_safetensors(path, tensors):
    header, data = {}, b""
    for name, (dtype, shape, raw) in tensors.items():
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + data)


def as_type(raw, dtype):
    """float32 values in another type, none of which rounds what as_values() has made of bfloat16 or half."""
    values = array.array("f", raw)
    if dtype == "F64":
        return array.array("d", values).tobytes()
    if dtype == "F16":
        return struct.pack(f"<{len(values)}e", *values)
    return b"".join(bytes(raw[i + 2:i + 4]) for i in range(0, len(raw), 4))


def cut_to_bfloat16(raw):
    """float32 with 8 bits of significand: also a half, for values near 1."""
    return b"".join(b"\0\0" + raw[i + 2:i + 4] for i in range(0, len(raw), 4))


def nearest_bfloat16(raw):
    """Rounds float32 to bfloat16, of two that are equally near to the even one."""
    bits = array.array("I", raw)
    return array.array("H", ((b + 0x7fff + (b >> 16 & 1)) >> 16 for b in bits)).tobytes()


def write_dataset(prefix, documents):
    """As Megatron-LM has it, of uint8."""
    lengths = [len(document) for document in documents]
    offsets = [sum(lengths[:i]) for i in range(len(lengths))]
    pathlib.Path(f"{prefix}.bin").write_bytes(b"".join(bytes(document) for document in documents))
    pathlib.Path(f"{prefix}.idx").write_bytes(
        b"MMIDIDX\0\0" + struct.pack("<QBQQ", 1, 1, len(lengths), len(lengths) + 1) + struct.pack(f"<{len(lengths)}i", *lengths)
        + struct.pack(f"<{len(offsets)}q", *offsets) + struct.pack(f"<{len(lengths) + 1}q", *range(len(lengths) + 1)))


class PublishedCase(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.dir = pathlib.Path(scratch.name)
        write_dataset(self.dir / "data", [[(7 * i + k) % 67 for k in range(9 + i)] for i in range(8)])

    def worker(self, *words, layout=LAYOUTS[0]):
        ranks = 1
        for part in layout.split(","):
            ranks *= int(part.split("=")[1])
        command = [BIN / "wlb-worker", "train", "--data-path", self.dir / "data", "--seq-length", 16, "--global-batch-size", 8,
                   "--threads", 1, "--layout", layout, *words]
        if ranks > 1:
            command = [HERE / "mpirun", ranks, *command]
        return subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=60, check=False,
                              cwd=self.dir, env={**os.environ, "TMPDIR": str(self.dir)})

    def train(self, folder, *words, layout=LAYOUTS[0], model=None):
        done = self.worker("--model", (model or folder) / "config.json", "--init-from", folder, *words, layout=layout)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done

    def export(self, code, *words):
        done = subprocess.run([str(word) for word in (BIN / "wlb-export", *words)], capture_output=True, text=True, timeout=60,
                              check=False)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        self.assertEqual(list(self.dir.glob("*.partial.*")), [])
        return done

    def refused(self, words, folder, *options, model=MODELS / "untied"):
        done = self.worker("--model", model / "config.json", "--init-from", folder, *STILL, *options)
        self.assertEqual(done.returncode, 2, done.stdout + done.stderr)
        self.assertRegex(done.stderr, r"^wlb-worker: --init-from: [^\n]*\n$")
        self.assertIn(words, done.stderr)

    def copy(self, name="untied"):
        folder = self.dir / "copy"
        shutil.copytree(MODELS / name, folder, ignore=shutil.ignore_patterns("expected"))
        folder.chmod(0o755)
        return folder

    def losses(self, done, name):
        self.assertEqual(done.returncode, 0, done.stderr)
        return [json.loads(line)["loss"] for line in (self.dir / name).read_text().splitlines()]


class Published(PublishedCase):
    # ---- there and back ----

    def test_there_and_back_on_any_layout(self):
        """Whatever the layout, the file is to the last byte the one that Transformers wrote."""
        for name in ("untied", "tied"):
            for layout in LAYOUTS:
                if name == "tied" and "pp=1" in layout and layout != LAYOUTS[0]:
                    continue  # a tied embedding differs by its stages
                with self.subTest(f"{name} {layout}"):
                    ck, out = self.dir / f"{name}-{layout}", self.dir / f"{name}-{layout}-out"
                    done = self.train(MODELS / name, *STILL, "--save", ck, layout=layout)
                    self.assertIn(f"\nstarting at step 1 with the weights of {MODELS / name}\n", done.stdout)
                    self.export(0, ck, out, "--dtype", "fp32", "--from", MODELS / name)
                    self.assertEqual((out / "model.safetensors").read_bytes(), (MODELS / name / "model.safetensors").read_bytes())
                    self.assertEqual(json.loads((out / "config.json").read_text()), json.loads((MODELS / name / "config.json").read_text()))
                    self.assertEqual(sorted(path.name for path in out.iterdir()), ["config.json", "model.safetensors"])

    def test_every_family(self):
        """As Transformers wrote it, with its names, and with a config.json that is made of the checkpoint."""
        for name, layout in LAYOUT_OF.items():
            with self.subTest(name):
                ck, out, made = (self.dir / f"{name}-{end}" for end in ("ck", "out", "made"))
                self.train(MODELS / name, *STILL, "--save", ck, layout=layout)
                self.export(0, ck, out, "--dtype", "fp32", "--from", MODELS / name)
                self.assertEqual((out / "model.safetensors").read_bytes(), (MODELS / name / "model.safetensors").read_bytes())
                self.export(0, ck, made, "--dtype", "fp32")
                self.assertEqual((made / "model.safetensors").read_bytes(), (out / "model.safetensors").read_bytes())
                self.assertEqual(self.train(made, *STILL, model=MODELS / name).stderr, "")  # the models are compared
                shown = subprocess.run([BIN / "wlb-ckpt", "show", ck], capture_output=True, text=True, timeout=60, check=True).stdout
                shown = re.search(r"rms_norm_eps 1e-05(?:, tied embeddings)?\n((?:.*\n)*?) *\d+ parameters\n", shown)[1]
                self.assertEqual(shown.strip(), SHOWN_OF.get(name, ""))

    def test_a_window_of_some_layers(self):
        """Of those from max_window_layers on: a made config.json lists them. It is not another model's."""
        source, ck, out, made = self.copy("qwen2"), self.dir / "ck", self.dir / "out", self.dir / "made"
        config = json.loads((source / "config.json").read_text())
        del config["layer_types"]
        config.update(use_sliding_window=True, sliding_window=6, max_window_layers=1)
        (source / "config.json").unlink()
        (source / "config.json").write_text(json.dumps(config))
        self.train(source, *STILL, "--save", ck)
        self.export(0, ck, made)
        described = json.loads((made / "config.json").read_text())
        self.assertEqual((described["sliding_window"], described["use_sliding_window"], described["layer_types"]),
                         (6, True, ["full_attention", "sliding_attention"]))
        self.assertIn("sliding_window was 6, is not given", self.export(1, ck, out, "--from", MODELS / "qwen2").stderr)
        self.export(0, ck, out, "--from", source)
        self.assertEqual(json.loads((out / "config.json").read_text()), {**config, "dtype": "bfloat16"})
        self.assertIn('layer_types was ["full_attention", "sliding_attention"], is not given',
                      self.worker("--model", MODELS / "qwen2/config.json", "--load", ck, *STILL).stderr)

    def test_tensors_that_are_one_in_the_files(self):
        """Phi-3: the shape of the whole counts; tensors under the names of other families are none of the model's."""
        folder = self.copy("phi3")
        tensors, file = read_safetensors(folder / "model.safetensors"), folder / "model.safetensors"
        name = "model.layers.1.mlp.gate_up_proj.weight"
        dtype, (rows, columns), raw = tensors[name]
        for changed, words in (
                ({**tensors, name: (dtype, [rows // 2, columns], raw[:len(raw) // 2])},
                 f"{file}: tensor {name} is {rows // 2} x {columns}, the model needs {rows} x {columns}"),
                ({other: tensor for other, tensor in tensors.items() if other != name}, f"{folder}: tensor {name} is missing"),
                ({**tensors, "model.layers.1.mlp.up_proj.weight": (dtype, [rows // 2, columns], raw[:len(raw) // 2])},
                 f"{file}: tensor model.layers.1.mlp.up_proj.weight: the model has none of that name")):
            file.unlink()
            write_safetensors(file, changed)
            self.refused(words, folder, model=MODELS / "phi3")

    def test_the_weights_are_used(self):
        """Other weights, another loss; a checkpoint in --load comes first, and has them."""
        first = self.losses(self.train(MODELS / "untied", *STILL[2:], "--train-iters", 2, "--metrics-file", "a", "--save", "ck"), "a")
        drawn = self.worker("--model", MODELS / "untied/config.json", *STILL, "--metrics-file", "b")
        self.assertEqual(drawn.returncode, 0, drawn.stderr)
        self.assertNotAlmostEqual(first[0], self.losses(drawn, "b")[0], 2)
        done = self.train(MODELS / "untied", *STILL[2:], "--train-iters", 3, "--metrics-file", "c", "--load", "ck",
                          "--override-opt_param-scheduler")
        self.assertIn("resuming after step 2", done.stdout)
        self.assertEqual(len(self.losses(done, "c")), 1)
        done = self.train(MODELS / "untied", *STILL, "--load", "none")
        self.assertIn(f"no checkpoint in none: starting at step 1 with the weights of {MODELS / 'untied'}", done.stdout)

    def test_another_configuration_is_told(self):
        config = json.loads((MODELS / "untied/config.json").read_text())
        config["rope_parameters"]["rope_theta"] = 3e4
        (self.dir / "config.json").write_text(json.dumps(config))
        done = self.train(MODELS / "untied", *STILL, model=self.dir)
        self.assertEqual(done.stderr, f"wlb-worker: --model {self.dir}/config.json differs from {MODELS}/untied/config.json: "
                                      "rope_theta was 300.0, is 30000.0\n")
        self.assertEqual(self.train(MODELS / "untied", *STILL).stderr, "")

    def test_any_type_and_number_of_files(self):
        """Weights that every type has exactly, in files of different types: each is read as it is."""
        tensors = {name: (dtype, shape, cut_to_bfloat16(raw))
                   for name, (dtype, shape, raw) in read_safetensors(MODELS / "untied/model.safetensors").items()}
        folder, ck, out = self.copy(), self.dir / "ck", self.dir / "out"
        (folder / "model.safetensors").unlink()
        files, types = {}, ("F32", "BF16", "F64", "F16")
        for i, (name, (_, shape, raw)) in enumerate(tensors.items()):
            dtype = types[i % 4]
            if dtype == "F16":  # whose smallest steps are larger
                raw = array.array("f", (round(x * 64) / 64 for x in array.array("f", raw))).tobytes()
                tensors[name] = ("F32", shape, raw)
            files.setdefault(f"part-{i % 3}.safetensors", {})[name] = (dtype, shape, raw if dtype == "F32" else as_type(raw, dtype))
        files["part-0.safetensors"]["model.layers.0.self_attn.rotary_emb.inv_freq"] = ("F32", [4], bytes(16))
        for file, held in files.items():
            write_safetensors(folder / file, held)
        self.write_index(folder, {name: file for file, held in files.items() for name in held})
        self.train(folder, *STILL, "--save", ck, layout=LAYOUTS[1])
        self.export(0, ck / "step_00000001", out, "--dtype", "fp32")
        self.assertEqual(read_safetensors(out / "model.safetensors"), tensors)

    def write_index(self, folder, names):
        (folder / "model.safetensors.index.json").write_text(json.dumps({"metadata": {}, "weight_map": names}))

    def test_a_head_beside_a_tied_embedding_is_passed_over(self):
        folder, ck, out = self.dir / "tied", self.dir / "ck", self.dir / "out"
        shutil.copytree(MODELS / "tied", folder)
        tensors = read_safetensors(folder / "model.safetensors")
        write_safetensors(folder / "model.safetensors", {**tensors, "lm_head.weight": tensors["model.embed_tokens.weight"]})
        self.train(folder, *STILL, "--save", ck)
        self.export(0, ck, out, "--dtype", "fp32")
        self.assertEqual(read_safetensors(out / "model.safetensors"), tensors)

    # ---- export ----

    def test_bfloat16_and_several_files(self):
        self.check_several_files("untied")

    def test_several_files_of_fused_tensors(self):
        self.check_several_files("phi3")

    def check_several_files(self, name):
        tensors = read_safetensors(MODELS / name / "model.safetensors")
        ck, out, source = self.dir / "ck", self.dir / "out", self.copy(name)
        config = json.loads((source / "config.json").read_text())
        for beside in ("tokenizer.json", "generation_config.json", "modeling_own.py"):
            (source / beside).write_text("{}")
        self.train(source, *STILL, "--save", ck, layout=LAYOUTS[1])
        out.mkdir()  # empty: it is taken
        done = self.export(0, ck, f"{out}/", "--from", source, "--max-file-gb", "5e-6")
        files = sorted(path.name for path in out.glob("*.safetensors"))
        self.assertIn(f"{out}: {len(tensors)} tensors in bfloat16, ", done.stdout)
        self.assertEqual(files, [f"model-{i + 1:05}-of-{len(files):05}.safetensors" for i in range(len(files))])
        self.assertGreater(len(files), 3)
        index, found = json.loads((out / "model.safetensors.index.json").read_text()), {}
        for file in files:
            held = read_safetensors(out / file)
            self.assertLessEqual(sum(len(raw) for _, _, raw in held.values()), 5000)
            self.assertEqual({name for name, of in index["weight_map"].items() if of == file}, set(held))
            found.update(held)
        self.assertEqual(found, {name: ("BF16", shape, nearest_bfloat16(raw)) for name, (_, shape, raw) in tensors.items()})
        self.assertEqual(index["metadata"]["total_size"], sum(len(raw) for _, _, raw in found.values()))
        self.assertEqual(json.loads((out / "config.json").read_text()), {**config, "dtype": "bfloat16"})
        self.assertTrue((out / "tokenizer.json").exists() and (out / "generation_config.json").exists())
        self.assertFalse((out / "modeling_own.py").exists())
        # It is a published model, too.
        again, last = self.dir / "again", self.dir / "last"
        self.train(out, *STILL, "--save", again, layout=LAYOUTS[2])
        self.export(0, again, last, "--from", out)
        self.assertEqual(read_safetensors(last / "model.safetensors"), found)

    def test_without_a_source_config_json_is_made(self):
        ck, out = self.dir / "ck", self.dir / "out"
        self.train(MODELS / "untied", *STILL, "--save", ck)
        self.export(0, ck, out, "--dtype", "fp32")
        self.train(out, *STILL, "--load", ck)  # which compares the models
        self.assertEqual(json.loads((out / "config.json").read_text())["torch_dtype"], "float32")

    def test_exports_that_are_refused(self):
        ck, out = self.dir / "ck", self.dir / "out"
        self.train(MODELS / "untied", *STILL, "--save", ck)
        self.assertIn("give two", self.export(2, ck).stderr)
        self.assertIn("has no checkpoints", self.export(2, self.dir, out).stderr)
        self.assertIn("is not empty", self.export(2, ck, ck).stderr)
        self.assertIn("config.json is not of the model of the checkpoint: num_hidden_layers was 3, is 2", self.export(1, ck, out, "--from", MODELS / "tied").stderr)
        self.assertIn("config.json", self.export(1, ck, out, "--from", self.dir).stderr)
        shard = ck / "step_00000001/shard_00000.safetensors"
        raw = bytearray(shard.read_bytes())
        start = 8 + int.from_bytes(raw[:8], "little")
        raw[start] ^= 1
        shard.write_bytes(raw)
        self.assertRegex(self.export(1, ck, out).stderr, r"tensor \S+: its data have the checksum")
        self.assertFalse(out.exists())

    # ---- what is refused ----

    def test_tensors_that_are_not_the_models(self):
        tensors = read_safetensors(MODELS / "untied/model.safetensors")
        folder = self.copy()
        file = folder / "model.safetensors"
        name = "model.layers.1.mlp.up_proj.weight"
        dtype, shape, raw = tensors[name]

        write_safetensors(file, {**tensors, name: (dtype, shape[::-1], raw)})
        self.refused(f"{file}: tensor {name} is 16 x 24, the model needs 24 x 16", folder)
        write_safetensors(file, {other: tensor for other, tensor in tensors.items() if other != name})
        self.refused(f"{folder}: tensor {name} is missing", folder)
        write_safetensors(file, {other: tensor for other, tensor in tensors.items() if other != "lm_head.weight"})
        self.refused("tensor lm_head.weight is missing: where the embedding is the head, tie_word_embeddings must say so", folder)
        write_safetensors(file, {**tensors, "model.layers.0.self_attn.q_proj.bias": ("F32", [32], bytes(128))})
        self.refused(f"{file}: tensor model.layers.0.self_attn.q_proj.bias: the model has none of that name", folder)
        write_safetensors(file, {**tensors, name: ("I8", shape, raw[:shape[0] * shape[1]])})
        self.refused(f"{file}: tensor {name}: 384 elements of I8: weights are F64, F32, BF16 or F16", folder)
        file.write_bytes(file.read_bytes()[:-1])
        self.refused("it is truncated or damaged", folder)

    def test_folders_without_weights(self):
        folder = self.copy()
        (folder / "model.safetensors").unlink()
        self.refused("holds neither manifest.json nor model.safetensors[.index.json]", folder)
        self.refused("No such file or directory", self.dir / "none")
        for name in ("pytorch_model.bin", "model.pt", "consolidated.00.pth"):
            (folder / name).write_bytes(b"")
            self.refused(f"its weights are pickled Python objects ({name})", folder)
            self.refused("from_pretrained(DIR).save_pretrained(NEW_DIR)", folder)
            (folder / name).unlink()
        for names, why in (({"a": "../x.safetensors"}, "it must name a file of the directory"), ({"a": 1}, "not a string"),
                           ({"a": "x.safetensors"}, "x.safetensors: cannot be opened")):
            self.write_index(folder, names)
            self.refused(why, folder)
        self.train(MODELS / "untied", *STILL, "--save", "ck")
        self.refused("is a checkpoint of wlb-worker: name its directory in --load", "ck/step_00000001")


if __name__ == "__main__":
    unittest.main()
