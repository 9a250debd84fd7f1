#!/usr/bin/env python3
"""test_tokenizers.py WLB-DATA: `wlb data build --tokenizer` with real tokenizers, byte for byte against Megatron-LM's own writer."""
import hashlib
import json
import shutil
import subprocess
import unittest

from builds import BPE, Builds, HERE, PROGRAM, PYTHON, SENTENCEPIECE, TEKKEN

# What mistral-common 1.13.1 makes of two texts: Tekkenizer.from_file("tekken_240911.json").encode(text, bos=False, eos=False).
TEKKEN_IDS = {
    "The licence  of\n\n\tthis program, v3.": [1784, 58446, 1032, 1307, 1267, 8282, 3467, 1044, 1330, 1051, 1046],
    "é中文😀\0</s>[INST]": [1337, 4392, 11449, 1240, 1159, 1152, 1128, 1000, 1885, 1115, 110391, 3174, 3074, 1093],
}


class Tokenizers(Builds):
    def expect_as_megatron(self, tokenizer, *options, reference=()):
        self.write_input(3000)  # several batches
        self.build("--tokenizer", tokenizer, *options)
        command = [PYTHON, HERE / "megatron_reference.py", tokenizer, self.input, self.folder / "theirs", "--read", self.folder / "ours"]
        subprocess.run([*command, *reference], check=True, timeout=100)
        self.assertTrue(self.content() == self.content("theirs"), f"{tokenizer} {options}: the files differ from Megatron-LM's")
        info = [json.loads(subprocess.run([PROGRAM, "info", self.folder / prefix, "--json"], stdout=subprocess.PIPE, check=True).stdout)
                for prefix in ("ours", "theirs")]  # fmt: skip
        self.assertEqual({**info[0], "facts": None}, {**info[1], "facts": None})

    def test_bpe_as_megatron(self):
        self.expect_as_megatron(BPE, "--append-eod", "--workers", "3", reference=["--append-eod", "1"])
        facts = self.facts()
        self.assertEqual((facts["vocabulary"], facts["eod"], facts["append_eod"], facts["prepend_bos"]), (129280, 1, True, False))
        self.assertEqual(facts["tokenizer"]["file"], str(BPE))
        shown = subprocess.run([PROGRAM, "info", self.folder / "ours", "--json"], stdout=subprocess.PIPE, check=True).stdout
        self.assertEqual(json.loads(shown)["facts"], facts)

    def test_sentencepiece_as_megatron(self):
        self.expect_as_megatron(SENTENCEPIECE, "--workers", "2")
        self.expect_as_megatron(SENTENCEPIECE, "--append-eod", reference=["--append-eod", "2"])
        self.assertEqual((self.facts()["vocabulary"], self.facts()["eod"]), (32000, 2))

    def test_sentences_as_megatron(self):
        self.expect_as_megatron(SENTENCEPIECE, "--split-sentences", "--append-eod", reference=["--append-eod", "2", "--lines"])

    def test_lists_of_sentences(self):
        """A text that is a list of sentences, as preprocess_data.py --split-sentences writes it for itself."""
        self.write_input(60)
        self.build("--tokenizer", SENTENCEPIECE, "--split-sentences", "--append-eod", prefix="lines")
        texts = [json.loads(line)["text"] for line in self.input.read_text(encoding="utf-8").split("\n")[:-1]]
        self.input.write_text("".join(json.dumps({"text": text.split("\n")}) + "\n" for text in texts), encoding="utf-8")
        self.build("--tokenizer", SENTENCEPIECE, "--append-eod")
        self.assertTrue(self.content() == self.content("lines"))
        self.assertIn("line 1: field 'text' is not a string", self.build(code=2))
        self.input.write_text('{"text":["a", 1]}\n')
        self.assertIn("line 1: field 'text' is not a string", self.build("--tokenizer", SENTENCEPIECE, code=2))

    def test_beginnings(self):
        """--prepend-bos adds one token to each document that has any."""
        self.build("--tokenizer", SENTENCEPIECE)
        without = self.tokens()
        self.build("--tokenizer", SENTENCEPIECE, "--prepend-bos")
        self.assertEqual(self.tokens(), [[1, *tokens] if tokens else [] for tokens in without])
        self.build("--tokenizer", SENTENCEPIECE, "--prepend-bos", "--bos-token", "<unk>")
        self.assertEqual(self.tokens()[1][:1], [0])

    def test_named_by_the_config(self):
        """tokenizer_config.json spells a token as a string or an object; the recorded digest is that of the tokenizer."""
        folder = self.folder / "named"
        folder.mkdir()
        shutil.copy(BPE, folder / "tokenizer.json")
        begin, end = "<｜begin▁of▁sentence｜>", "<｜end▁of▁sentence｜>"
        for config in {"bos_token": begin, "eos_token": {"content": end}}, {"bos_token": {"content": begin}, "eos_token": end}:
            (folder / "tokenizer_config.json").write_text(json.dumps(config))
            self.input.write_text('{"text":"a"}\n{"text":""}\n')
            self.build("--tokenizer", folder, "--append-eod", "--prepend-bos")
            self.assertEqual(list(memoryview(self.content()[0]).cast("i")), [0, 67, 1])
        self.assertEqual(self.facts()["tokenizer"]["sha256"], hashlib.sha256(BPE.read_bytes()).hexdigest())
        (folder / "tokenizer_config.json").write_text("[]")
        self.assertIn("tokenizer_config.json: must be a JSON object", self.build("--tokenizer", folder, code=2))

    def test_settings_of_the_file(self):
        """What a tokenizer.json says of truncation, padding and special tokens is for models that read single texts."""
        self.input.write_text('{"text":"a b c d e f g h i j k l m"}\n{"text":"a"}\n')
        self.build("--tokenizer", BPE, "--workers", "1", prefix="plain")
        content = json.loads(BPE.read_text(encoding="utf-8"))
        content["truncation"] = {"direction": "Right", "max_length": 4, "strategy": "LongestFirst", "stride": 0}
        content["padding"] = {"strategy": {"Fixed": 6}, "direction": "Right", "pad_to_multiple_of": None, "pad_id": 2, "pad_type_id": 0,
                              "pad_token": "<｜▁pad▁｜>"}  # fmt: skip
        piece = {"SpecialToken": {"id": "begin", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}
        content["post_processor"] = {"type": "TemplateProcessing", "single": piece, "pair": piece, "special_tokens": {
            "begin": {"id": "begin", "ids": [0], "tokens": ["<｜begin▁of▁sentence｜>"]}}}  # fmt: skip
        changed = self.folder / "tokenizer.json"
        changed.write_text(json.dumps(content))
        self.build("--tokenizer", changed, "--workers", "1")
        self.assertEqual(self.content(), self.content("plain"))

    def test_width_of_tokens(self):
        """uint16 below 65,500 tokens, int32 from there on; ids that need more are refused."""
        self.input.write_text('{"text":"ab"}\n')
        for vocabulary, bytes_ in (65499, 2), (65500, 4):
            self.build("--tokenizer", BPE, "--workers", "1", python=self.reply(1, 1, 8, vocabulary=vocabulary))
            self.assertEqual(len(self.content()[0]), bytes_, vocabulary)
        python = self.reply(1, 1, 8, vocabulary=65499, ids=65537)
        said = self.build("--tokenizer", BPE, "--workers", "1", python=python, code=2)
        self.assertIn("has 65499 tokens and ids up to 65536: with fewer than 65500 tokens ids must be below 65536", said)
        python = self.reply(1, 1, 65535, vocabulary=65499, ids=65536)
        self.build("--tokenizer", BPE, "--workers", "1", python=python)
        self.assertEqual(self.content()[0], b"\xff\xff")

    def test_folders(self):
        """A folder has tokenizer.json or tokenizer.model; one with neither is refused."""
        folder = self.folder / "llama"
        folder.mkdir()
        self.assertIn("has none of tokenizer.json, tekken.json, tokenizer.model", self.build("--tokenizer", folder, code=2))
        shutil.copy(SENTENCEPIECE, folder / "tokenizer.model")
        self.build("--tokenizer", folder)
        self.assertEqual(self.facts()["vocabulary"], 32000)
        shutil.copy(BPE, folder / "tokenizer.json")
        self.assertIn("does not say which token ends a text: name it by --eod-token",
                      self.build("--tokenizer", folder, "--append-eod", code=2))
        self.build("--tokenizer", folder, "--append-eod", "--eod-token", "<｜end▁of▁sentence｜>")
        self.assertEqual((self.facts()["vocabulary"], self.facts()["eod"]), (129280, 1))
        self.assertIn("the token 'nonsense' is not in the vocabulary",
                      self.build("--tokenizer", folder, "--append-eod", "--eod-token", "nonsense", code=2))

    def test_tekken(self):
        """A tekken.json of Mistral: ids as those of mistral-common's Tekkenizer."""
        for name in "tekken_240718.json", "tekken_240911.json":
            self.build("--tokenizer", TEKKEN / name, "--append-eod", "--prepend-bos", "--min-bytes", "1")
            facts = self.facts()
            self.assertEqual((facts["vocabulary"], facts["ids_below"], facts["bos"], facts["eod"]), (131072, 131072, 1, 2))
        shown = [self.text_ids(text, TEKKEN / "tekken_240911.json") for text in TEKKEN_IDS]
        self.assertEqual(shown, list(TEKKEN_IDS.values()))
        folder = self.folder / "mistral"
        folder.mkdir()
        shutil.copy(TEKKEN / "tekken_240911.json", folder / "tekken.json")
        shutil.copy(SENTENCEPIECE, folder / "tokenizer.model")
        content = json.loads((folder / "tekken.json").read_text())
        content["special_tokens"] = [{"rank": 1, "token_str": "<s>"}, {"rank": 7, "token_str": "</s>"}, {"rank": 9, "token_str": "[INST]"}]
        (folder / "tekken.json").write_text(json.dumps(content))
        for token, eod in (None, 7), ("[INST]", 9), ("The", 1784):
            self.build("--tokenizer", folder, "--append-eod", *(["--eod-token", token] if token else []))
            self.assertEqual((self.facts()["vocabulary"], self.facts()["eod"]), (131072, eod))
        bare = self.script('exec "%s" -S "$@"' % PYTHON)
        self.assertIn("-m pip install tiktoken", self.build("--tokenizer", folder, python=bare, code=2))
        for change in {"default_vocab_size": 131073}, {"default_num_special_tokens": "1000"}, {"pattern": "("}, {"pattern": None}:
            damaged = {**content, "vocab": content["vocab"][:130072], "config": {**content["config"], **change}}
            (folder / "tekken.json").write_text(json.dumps(damaged))
            self.assertIn("is no tekken.json that tiktoken", self.build("--tokenizer", folder, code=2))

    def text_ids(self, text, tokenizer):
        """The ids of one text."""
        self.input.write_text(json.dumps({"text": text}) + "\n")
        self.build("--tokenizer", tokenizer, "--workers", "1")
        return list(memoryview(self.content()[0]).cast("i"))

    def test_tiktoken(self):
        """A vocabulary of tiktoken alone, as Meta publishes Llama 3's tokenizer.model, is refused by name."""
        model = self.folder / "tokenizer.model"
        model.write_text("IQ== 0\nIg== 1\nIw== 2\n")
        self.assertIn("is a vocabulary of tiktoken, which does not say how a text is split", self.build("--tokenizer", model, code=2))

    def test_refused(self):
        self.assertIn("cannot be read: No such file", self.build("--tokenizer", self.folder / "nowhere", code=2))
        self.assertIn("is neither a tokenizer.json nor a model", self.build("--tokenizer", "/usr/share/common-licenses/GPL-3", code=2))
        self.assertIn("begins as JSON and is none: Extra data", self.build("--tokenizer", self.input, code=2))
        other = self.folder / "config.json"
        other.write_text('{"model_type": "llama"}')
        self.assertIn("is no tokenizer.json that tokenizers", self.build("--tokenizer", other, code=2))
        bare = self.script('exec "%s" -S "$@"' % PYTHON)
        self.assertIn("-m pip install tokenizers", self.build("--tokenizer", BPE, python=bare, code=2))
        self.assertIn("-m pip install sentencepiece", self.build("--tokenizer", SENTENCEPIECE, python=bare, code=2))
        self.assertIn("cannot be started: No such file", self.build("--tokenizer", BPE, python="no-such-python", code=1))
        self.assertEqual([entry.name for entry in self.folder.iterdir() if entry.name.startswith("ours")], [])

    def reply(self, *numbers, vocabulary=9, ids=None):
        """A process that says good facts, then these numbers, and waits for the end of its input."""
        facts = {"file": "f", "sha256": 64 * "0", "library": "l", "vocabulary": vocabulary, "ids": ids or vocabulary, "eod": None, "bos": 0}
        said = json.dumps(facts).encode()
        path = self.folder / "said"
        path.write_bytes(len(said).to_bytes(4, "little") + said + b"".join(number.to_bytes(4, "little") for number in numbers))
        return self.script(f"cat {path}; exec cat > /dev/null")

    def test_wrong_replies(self):
        """Nothing that a process says is believed."""
        self.input.write_text('{"text":"ab"}\n{"text":"c"}\n')
        for numbers, reason in [((3, 1, 1), "it replies for 3 texts, and 2 were sent"),
                                ((2, 1, 129, 5), "it says 129 ids for a text of 1 bytes: at most 128 are taken"),
                                ((2, 1, 1, 8, 9), "it says id 9, and the tokenizer has ids below 9"),
                                ((2, 1, 1, 2**31, 8), "it says id 2147483648")]:
            said = self.build("--tokenizer", BPE, "--workers", "1", python=self.reply(*numbers), code=1)
            self.assertIn(reason, said)
        ends = self.script("printf '\\001\\000\\000\\000{'; echo this was the last >&2; exit 3")
        self.assertIn("what it says of the tokenizer is not understood", self.build("--tokenizer", BPE, python=ends, code=1))
        ends = self.script("echo this was the last >&2; exit 3")
        self.assertIn("failed with exit code 3: its output ends too early: this was the last",
                      self.build("--tokenizer", BPE, python=ends, code=1))
        self.build("--tokenizer", BPE, "--workers", "1", python=self.reply(2, 1, 1, 8, 7))
        self.assertEqual(self.tokens(), [[8], [7]])

    def test_changed_while_loaded(self):
        """All processes have the same tokenizer."""
        self.reply(1, 1, 8)
        said = (self.folder / "said").read_bytes()
        (self.folder / "other").write_bytes(said.replace(64 * b"0", 64 * b"1"))
        other = self.script(f"if mkdir {self.folder}/first 2> /dev/null; then cat {self.folder}/said; else cat {self.folder}/other; fi; "
                            "exec cat > /dev/null")
        self.assertIn("was changed while it was loaded", self.build("--tokenizer", BPE, "--workers", "2", python=other, code=1))


if __name__ == "__main__":
    unittest.main()
