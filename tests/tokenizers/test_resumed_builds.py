#!/usr/bin/env python3
"""test_resumed_builds.py WLB-DATA: builds with a tokenizer that are killed, interrupted and watched."""
import contextlib
import fcntl
import os
import pathlib
import pty
import signal
import subprocess
import time
import unittest

from builds import Builds, PROGRAM, PYTHON, SENTENCEPIECE


class Resumed(Builds):
    def slow(self, batch_s=0.2):
        """A Python whose tokenizer takes so long for each batch. It writes the numbers of its processes to the file `pids`."""
        slow = self.folder / "slow.py"
        slow.write_text(f"""
import os, runpy, sys, time
with open("{self.folder}/pids", "a") as pids:
    pids.write(str(os.getpid()) + "\\n")
import sentencepiece
encode = sentencepiece.SentencePieceProcessor.encode
def encode_slowly(*words, **named):
    time.sleep({batch_s})
    return encode(*words, **named)
sentencepiece.SentencePieceProcessor.encode = encode_slowly
del sys.argv[0]
runpy.run_path(sys.argv[0], run_name="__main__")
""")
        return self.script(f'exec "{PYTHON}" {slow} "$@"')

    def start_slowly(self, python, stderr=subprocess.PIPE):
        command = [PROGRAM, "build", "--input", self.input, "--output-prefix", self.folder / "ours", "--python", python,
                   "--tokenizer", SENTENCEPIECE, "--workers", "2"]
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=stderr, text=True)

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
        texts = self.folder / "texts"
        texts.mkdir()
        self.input.rename(texts / "b.jsonl")
        (texts / "a.jsonl").write_text('{"text":null}\n{"text":""}\n')
        self.input = texts
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
        self.assertIn("left out: 0 not text, 0 too short, 1 null,", said)
        self.assertRegex(said, "the first that is null: .*a.jsonl: line 1: field 'text' is null")
        self.assertTrue(self.content() == self.content("whole"), "the resumed dataset differs")
        self.assertEqual(self.content_names(), ["ours.bin", "ours.facts.json", "ours.idx"])

    def test_killed_at_any_moment(self):
        """Killed or interrupted at moments all over a build, it ends with the dataset of a build that was not."""
        self.write_input(20000, 8)
        python, began_s = self.slow(0.3), time.monotonic()
        self.build("--tokenizer", SENTENCEPIECE, "--workers", "2", prefix="whole", python=python)
        took_s, said = time.monotonic() - began_s, ""
        for kill in range(1, 13):
            build = self.start_slowly(python)
            with contextlib.suppress(subprocess.TimeoutExpired):
                build.wait(timeout=took_s * kill / 12)
            build.send_signal((signal.SIGTERM, signal.SIGKILL, signal.SIGHUP)[kill % 3])
            said += build.communicate(timeout=20)[1]
        self.assertIn("the same command goes on from there", said)
        self.build("--tokenizer", SENTENCEPIECE)
        self.assertTrue(self.content() == self.content("whole"))
        self.assertEqual(self.content_names(), ["ours.bin", "ours.facts.json", "ours.idx"])

    def test_progress(self):
        """A terminal is told how far the build is and how long the rest takes, and nothing is left there."""
        self.write_input(20000, 8)
        leader, terminal = pty.openpty()
        build = self.start_slowly(self.slow(2.5), stderr=terminal)
        os.close(terminal)
        shown = b""
        with contextlib.suppress(OSError):  # the last writer has closed it
            while more := os.read(leader, 4096):
                shown += more
        os.close(leader)
        build.communicate(timeout=20)
        self.assertEqual(build.returncode, 0, shown)
        self.assertRegex(shown.decode(), r"\r[0-9.]+ of [0-9.]+ MB read, [1-9][0-9]* documents, [0-9.]+ million tokens, [0-9]+ s left")
        self.assertTrue(shown.endswith(b"\r\033[K"))
        read = [float(part.split(b" of ")[0]) for part in shown.split(b"\r") if b" of " in part]
        self.assertEqual(read, sorted(read))

    def while_locked(self):
        """What a build says while another process has the files."""
        with open(self.folder / "ours.bin.resume.partial", "r+b") as left:
            fcntl.lockf(left, fcntl.LOCK_EX)
            return self.build("--tokenizer", SENTENCEPIECE, code=1)

    def content_names(self):
        return sorted(entry.name for entry in self.folder.iterdir() if entry.name.startswith("ours"))

    def leave(self):
        """Interrupts a build of SENTENCEPIECE. Returns a function that puts back what it has left."""
        build = self.start_slowly(self.slow())
        self.wait_until("documents", lambda: self.left_bytes() > 0)
        build.terminate()
        build.communicate(timeout=20)
        left = {name: (self.folder / name).read_bytes() for name in self.content_names()}

        def put_back():
            for name in self.content_names():
                (self.folder / name).unlink()
            for name, content in left.items():
                (self.folder / name).write_bytes(content)

        return put_back

    def test_not_resumed(self):
        """What was damaged is not continued."""
        self.write_input(12000, 8)
        self.build("--tokenizer", SENTENCEPIECE, prefix="whole")
        put_back = self.leave()
        for damage in "none", "tokens", "lengths", "journal", "input":
            put_back()
            if damage == "input":
                os.utime(self.input, ns=(1, 1))
            elif damage == "tokens":
                os.truncate(self.folder / "ours.bin.resume.partial", 1000)
            elif damage == "lengths":
                with open(self.folder / "ours.lengths.resume.partial", "r+b") as left:
                    left.write(b"\1\0\0\0\1\0\0\0")
            elif damage == "journal":
                left = self.folder / "ours.resume.partial"
                left.write_text(left.read_text().replace('"documents": ', '"documents": 9'))
            said = self.build("--tokenizer", SENTENCEPIECE)
            self.assertEqual("an earlier build" in said, damage == "none", damage)
            self.assertTrue(self.content() == self.content("whole"), damage)
            self.assertEqual(self.content_names(), ["ours.bin", "ours.facts.json", "ours.idx"])

    def test_other_commands(self):
        """What another command has left is not continued, whichever word of it decides what is written."""
        self.write_input(12000, 8)
        lines = self.input.read_text(encoding="utf-8")
        self.input.write_text(lines.replace("}\n", ', "words": "other"}\n'), encoding="utf-8")
        put_back = self.leave()
        renamed = self.folder / "other.model"
        renamed.write_bytes(SENTENCEPIECE.read_bytes() + b"\x1a\x00")  # an empty field, which changes no token
        more = self.folder / "more.jsonl"
        more.write_text('{"text":"more"}\n')
        words = {"a tokenizer": [renamed], "end tokens": [SENTENCEPIECE, "--append-eod"], "strict": [SENTENCEPIECE, "--strict"],
                 "shortest": [SENTENCEPIECE, "--min-bytes", "1"], "an end token": [SENTENCEPIECE, "--eod-token", "<unk>"],
                 "sentences": [SENTENCEPIECE, "--split-sentences"], "begin tokens": [SENTENCEPIECE, "--prepend-bos"],
                 "inputs": [SENTENCEPIECE, "--input", more], "a field": [SENTENCEPIECE, "--json-key", "words"]}  # fmt: skip
        for name, options in words.items():
            put_back()
            self.assertNotIn("an earlier build", self.build("--tokenizer", *options), name)
        put_back()
        self.assertIn("an earlier build", self.build("--tokenizer", SENTENCEPIECE, "--workers", "1"))


if __name__ == "__main__":
    unittest.main()
