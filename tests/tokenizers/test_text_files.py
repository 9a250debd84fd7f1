#!/usr/bin/env python3
"""test_text_files.py WLB-DATA: the files that hold the texts, Parquet and Zstandard, as other programs write them."""
import json
import os
import subprocess
import unittest

from builds import Builds, PYTHON, SENTENCEPIECE


class Texts(Builds):
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
        self.assertIn("column 'id' is of type int64, and must be of strings", self.build("--json-key", "id", code=2))
        bare = self.script('exec "%s" -S "$@"' % PYTHON)
        self.assertIn("-m pip install pyarrow", self.build(python=bare, code=2))
        os.truncate(packed, packed.stat().st_size // 2)
        self.assertIn("in.parquet: cannot be read: ", self.build(code=2))

    def test_zstandard(self):
        """Several frames, one that is to be skipped first, and the largest window, whatever the name."""
        frame = b"\x28\xb5\x2f\xfd\0"  # no checksum, no size
        window = bytes([21 << 3])  # 2 GiB
        first, second = b'{"text":"one"}\n{"text":', b'"two"}\n'

        def block(content):
            return (len(content) << 3 | 1).to_bytes(3, "little") + content  # the last one, not compressed

        self.input = self.folder / "in.jsonl"
        skipped = b"\x50\x2a\x4d\x18\4\0\0\0\x10\0\0\0"
        self.input.write_bytes(skipped + frame + window + block(first) + frame + window + block(second))
        self.build()
        self.assertEqual(self.tokens(), [[*b"one", 256], [*b"two", 256]])

    def write_parquet(self, values, kind):
        """Writes a file with one column of a type of Arrow, which no name promises to be Parquet."""
        self.input = self.folder / "in"
        program = ("import sys, pyarrow, pyarrow.parquet; from pyarrow import *; "
                   f"pyarrow.parquet.write_table(pyarrow.table([pyarrow.array({values!r}, {kind})], ['text']), sys.argv[1])")
        subprocess.run([PYTHON, "-c", program, self.input], check=True, timeout=60)

    def test_columns(self):
        """Columns of every type that holds texts are read; nulls are counted; no other type becomes a text without notice."""
        texts = ["one", None, "", "é中文😀"]
        raw = [text if text is None else text.encode() for text in texts]
        kinds = {"string()": texts, "large_string()": texts, "string_view()": texts, "dictionary(int32(), string())": texts,
                 "binary()": raw, "large_binary()": raw}  # fmt: skip
        for kind, values in kinds.items():
            self.write_parquet(values, kind)
            self.assertIn("1 null", self.build(), kind)
            self.assertEqual(self.tokens(), [[*text.encode(), 256] for text in texts if text], kind)
        self.write_parquet([b"a\xff"], "binary()")
        self.build()
        self.assertEqual(self.tokens(), [[97, 0xEF, 0xBF, 0xBD, 256]])
        self.input = self.folder / "lists.jsonl"
        self.input.write_text('{"text":["a", "b c"]}\n{"text":[]}\n')
        self.build("--tokenizer", SENTENCEPIECE, prefix="lists")
        self.write_parquet([["a", "b c"], []], "list_(string())")
        self.build("--tokenizer", SENTENCEPIECE)
        self.assertEqual(self.content(), self.content("lists"))
        for kind, values in {"date32()": [1], "struct([('a', string())])": [{"a": "b"}], "list_(int32())": [[1]]}.items():
            self.write_parquet(values, kind)
            self.assertIn("and must be of strings: name another by --json-key", self.build(code=2), kind)
        self.write_parquet([None], "null()")
        self.assertIn("1 null", self.build(code=2))
        self.write_parquet([], "string()")
        self.assertIn("no document was found", self.build(code=2))

    def test_invalid_text(self):
        """Bytes that are no UTF-8 become U+FFFD."""
        self.input = self.folder / "in.txt"
        self.input.write_bytes("a\ufffdb".encode())
        self.build("--tokenizer", SENTENCEPIECE, prefix="plain")
        self.input.write_bytes(b"a\xffb")
        self.build("--tokenizer", SENTENCEPIECE)
        self.assertEqual(self.content(), self.content("plain"))


if __name__ == "__main__":
    unittest.main()
