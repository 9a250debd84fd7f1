#!/usr/bin/env python3
"""`wlb ckpt list|show|verify|prune` as a user meets them.

Usage: test_checkpoint_command.py WLB-CKPT MAKE_CHECKPOINT [UNITTEST-OPTION...]
"""
import contextlib
import fcntl
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

PROGRAM, MAKE_CHECKPOINT = sys.argv.pop(1), sys.argv.pop(1)
OLD = pathlib.Path(__file__).resolve().parents[2] / "fixtures/schema-0.2.0/checkpoint.tar.gz"
SHARDS = 2
# The first element of the sample's data, and its last: of the tensors "matrix" and "vector".
FIRST, LAST = 0, -1


def folder_bytes(folder):
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())


def flip(path, place):
    """Changes one bit of the data of a shard."""
    data = bytearray(path.read_bytes())
    data[8 + int.from_bytes(data[:8], "little") if place == FIRST else -1] ^= 1
    path.write_bytes(data)


class CheckpointCommand(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.dir = pathlib.Path(scratch.name, "ck")

    def save(self, *steps):
        for step in steps:
            subprocess.run([MAKE_CHECKPOINT, self.dir, str(step), str(SHARDS)], check=True, timeout=10)

    def step(self, number):
        return self.dir / f"step_{number:08}"

    def names(self):
        return sorted(path.name for path in self.dir.iterdir())

    def ckpt(self, code, *words):
        """Runs the command, which must exit with the code; what it printed. An error is one line on stderr."""
        done = subprocess.run([PROGRAM, *map(str, words)], capture_output=True, text=True, timeout=20, check=False,
                              env={**os.environ, "TZ": "UTC"})
        self.assertEqual(done.returncode, code, f"{words}: {done.stdout}{done.stderr}")
        return done

    def list(self):
        """The list in JSON, without times, which must be those of the manifests."""
        report = json.loads(self.ckpt(0, "list", self.dir, "--json").stdout)
        for row in [*report["checkpoints"], *report["left_behind"]]:
            when = row.pop("saved_at", None) or row.pop("changed_at", None)
            self.assertTrue(when is None or re.fullmatch(r"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\dZ", when), when)
        return report

    def unpack_old(self):
        """A checkpoint of 0.2.0, of step 10."""
        subprocess.run(["tar", "xzf", OLD, "-C", self.dir.parent, "ck"], check=True, timeout=10)
        return self.step(10)

    def hold_lock(self):
        file = open(self.dir / ".lock", "w", encoding="utf-8")
        self.addCleanup(file.close)
        file.write("run 12 on n1, process 34\n")
        file.flush()
        fcntl.lockf(file, fcntl.LOCK_EX)
        return file

    # ---- list ----

    def test_list_has_the_newest_first(self):
        self.save(60, 20, 40)
        os.utime(self.step(60) / "manifest.json", (1_700_000_000, 1_700_000_000))
        expected = [{"step": step, "path": str(self.step(step)), "complete": True, "bytes": folder_bytes(self.step(step)),
                     "shards": SHARDS, "train_loss": 2.1} for step in (60, 40, 20)]
        self.assertEqual(self.list(), {"directory": str(self.dir), "locked_by": None, "checkpoints": expected, "left_behind": []})
        title, *rows = self.ckpt(0, "list", self.dir).stdout.splitlines()
        self.assertEqual(title.split(), ["STEP", "SAVED", "SIZE", "SHARDS", "LOSS", "STATE"])
        self.assertEqual([row.split()[0] for row in rows], ["60", "40", "20"])
        size = f"{folder_bytes(self.step(60)) / 1024:.1f}"
        self.assertEqual(rows[0].split(), ["60", "2023-11-14", "22:13:20", size, "KiB", "2", "2.1000", "complete"])

    def test_list_says_what_is_not_complete_and_what_is_left_behind(self):
        self.save(20, 40, 60, 80)
        (self.step(80) / "manifest.json").unlink()
        (self.step(60) / "shard_00001.safetensors").unlink()
        with open(self.step(40) / "packer.bin", "ab") as file:
            file.write(b"x")
        for name in (".step_00000100.id.partial", ".step_00000010.replaced", ".step_00000001.a\nb.partial"):
            (self.dir / name).mkdir()
        self.hold_lock()
        report = self.list()
        self.assertEqual([(row["step"], row["complete"], row.get("shards")) for row in report["checkpoints"]],
                         [(80, False, None), (60, False, 2), (40, False, 2), (20, True, 2)])
        for row, why in zip(report["checkpoints"], ("manifest.json: cannot be opened: No such file",
                                                    "shard_00001.safetensors: No such file",
                                                    "packer.bin: has 25 bytes: the manifest says 24")):
            self.assertIn(why, row["reason"])
        self.assertEqual([row["name"] for row in report["left_behind"]],
                         [".step_00000001.a\nb.partial", ".step_00000010.replaced", ".step_00000100.id.partial"])
        self.assertEqual(report["locked_by"], "run 12 on n1, process 34")
        text = self.ckpt(0, "list", self.dir).stdout
        self.assertIn("No such file", " ".join(text.split()))
        self.assertRegex(text, r"(?m)^\.step_00000001\.a b\.partial: being written, or left by a writer that was killed, last changed 20")
        self.assertRegex(text, r"(?m)^\.step_00000010\.replaced: an old checkpoint that was being removed, last changed 20")
        self.assertRegex(text, r"(?m)^run 12 on n1, process 34 has the directory's lock$")

    def test_list_of_an_empty_directory(self):
        self.dir.mkdir()
        self.assertEqual(self.list(), {"directory": str(self.dir), "locked_by": None, "checkpoints": [], "left_behind": []})
        self.assertEqual(self.ckpt(0, "list", self.dir).stdout, f"{self.dir}: has no checkpoints\n")

    # ---- show ----

    def test_show_has_the_facts(self):
        self.save(40, 60)
        shown = json.loads(self.ckpt(0, "show", self.step(40), "--json").stdout)
        manifest = json.loads((self.step(40) / "manifest.json").read_text(encoding="utf-8"))
        for key in ("step", "train_loss", "seq_length", "global_batch_size", "rampup_batch_size", "seed", "packing", "schedule", "model", "hyperparameters"):
            self.assertEqual(shown.pop(key), manifest[key], key)
        del shown["saved_at"]
        self.assertEqual(shown, {"path": str(self.step(40)), "complete": True, "bytes": folder_bytes(self.step(40)), "shards": 2,
                                 "tensors": 2, "elements": 80, "dtype": "F32", "tensors_without_checksum": 0})
        text = self.ckpt(0, "show", self.step(40)).stdout
        for line in ("state       complete", "step        40, saved 20", "loss        2.100000",
                     "steps of    16 sequences of 256 tokens, packing fixed, seed 18446744073709551615",
                     "ramp        --rampup-batch-size 4 6 1000; 700 sequences were trained",
                     "dataset     1000 documents, 123456789 tokens; next is span 17 of 512 in epoch 2",
                     "model       smollm3, hidden_size 64, intermediate_size 128, num_hidden_layers 2",
                     "data        2 tensors, 80 elements of F32; ",
                     "checksums   of all tensors"):
            self.assertIn(f"\n  {line}", text)

    def test_show_of_a_directory_is_of_the_newest_that_is_complete(self):
        self.save(40, 60)
        self.assertEqual(json.loads(self.ckpt(0, "show", self.dir, "--json").stdout)["step"], 60)
        (self.step(60) / "shard_00000.safetensors").unlink()
        done = self.ckpt(0, "show", self.dir)
        self.assertTrue(done.stdout.startswith(f"{self.step(40)}\n"), done.stdout)
        self.assertIn("step_00000060 is skipped: ", done.stderr)
        self.assertIn("\n  state       not complete: ", self.ckpt(0, "show", self.step(60)).stdout)
        (self.step(60) / "manifest.json").write_text("{", encoding="utf-8")
        self.assertIn("step_00000060/manifest.json: line 1: ", self.ckpt(1, "show", self.step(60), "--json").stderr)

    # ---- verify ----

    def test_verify_names_file_and_tensor_of_each_that_is_damaged(self):
        self.save(20, 40, 60, 80)
        for line in self.ckpt(0, "verify", self.dir).stdout.splitlines():
            self.assertRegex(line, r"/step_000000\d0: intact, \d\.\d KiB in 2 shards$")
        flip(self.step(20) / "shard_00000.safetensors", FIRST)
        flip(self.step(40) / "shard_00001.safetensors", LAST)
        (self.step(60) / "shard_00001.safetensors").unlink()
        lines = self.ckpt(1, "verify", self.dir).stdout.splitlines()
        for line, expected in zip(lines, (r"80: intact, .*", r"60: not complete: \S+/shard_00001\.safetensors: No such file .*",
                                          r"40: damaged: \S+/shard_00001\.safetensors: tensor vector.*",
                                          r"20: damaged: \S+/shard_00000\.safetensors: tensor matrix.*"), strict=True):
            self.assertRegex(line, rf"^\S+/step_000000{expected}$")
        self.assertEqual(self.ckpt(0, "verify", self.step(80)).stdout, lines[0] + "\n")
        self.assertEqual(self.ckpt(1, "verify", self.step(80), self.step(40)).stdout, f"{lines[0]}\n{lines[2]}\n")

    def test_verify_of_what_a_run_removes_meanwhile(self):
        """It stands at its first line, for which a full pipe has no room, when the older checkpoint goes."""
        self.save(20, 40)
        reader, writer = os.pipe()
        os.set_blocking(writer, False)
        filled = 0
        with contextlib.suppress(BlockingIOError):
            while True:
                filled += os.write(writer, b" " * 4096)
        os.set_blocking(writer, True)
        with subprocess.Popen([PROGRAM, "verify", self.dir], stdout=writer) as verify:
            os.close(writer)
            until = time.monotonic() + 10
            while not pathlib.Path(f"/proc/{verify.pid}/syscall").read_text(encoding="ascii").startswith("1 0x1 "):  # write to stdout
                self.assertLess(time.monotonic(), until)
                time.sleep(0.01)
            shutil.rmtree(self.step(20))
            with os.fdopen(reader, encoding="utf-8") as output:
                lines = output.read()[filled:].splitlines()
            self.assertEqual(verify.wait(10), 0)
        self.assertRegex("\n".join(lines), rf"^{self.step(40)}: intact, .*\n{self.step(20)}: removed meanwhile$")

    def test_verify_by_the_digests_of_an_old_version(self):
        old = self.unpack_old()
        self.assertRegex(self.ckpt(0, "verify", self.dir).stdout, r"^\S+/step_00000010: intact, 1\d\d\.\d KiB in 1 shard\n$")
        self.assertEqual(json.loads(self.ckpt(0, "show", old, "--json").stdout)["tensors_without_checksum"], 0)
        self.assertEqual([(row["step"], row["complete"]) for row in self.list()["checkpoints"]], [(10, True)])
        flip(old / "shard_00000.safetensors", FIRST)
        self.assertRegex(self.ckpt(1, "verify", old).stdout, r"^\S+: damaged: \S+/shard_00000\.safetensors: tensor \S*model\.\S+")

    def test_verify_says_where_an_old_version_kept_no_digests(self):
        old = self.unpack_old()
        manifest = json.loads((old / "manifest.json").read_text(encoding="utf-8"))
        for tensor in manifest["tensors"].values():
            del tensor["digests"]
        count = len(manifest["tensors"])
        (old / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
        flip(old / "shard_00000.safetensors", LAST)
        self.assertRegex(self.ckpt(0, "verify", old).stdout,
                         rf": complete, .*; an earlier version saved it without checksums of {count} of its {count} tensors")
        self.assertIn(f"\n  checksums   none of {count} tensors", self.ckpt(0, "show", old).stdout)

    # ---- more than one group of shards ----

    def test_shards_with_indexes(self):
        scratch = tempfile.TemporaryDirectory(dir="/dev/shm")  # a thousand files, each synced
        self.addCleanup(scratch.cleanup)
        self.dir = pathlib.Path(scratch.name)
        for step in (20, 40):
            subprocess.run([MAKE_CHECKPOINT, self.dir, str(step), "1030"], check=True, timeout=30)
        self.assertTrue((self.step(40) / "part_001/index.json").exists())
        self.assertEqual([(row["complete"], row["shards"], row["bytes"]) for row in self.list()["checkpoints"]],
                         [(True, 1030, folder_bytes(self.step(step))) for step in (40, 20)])
        shown = json.loads(self.ckpt(0, "show", self.step(40), "--json").stdout)
        self.assertEqual([shown[key] for key in ("tensors", "elements", "dtype", "tensors_without_checksum")], [2, 80, "F32", 0])
        self.assertRegex(self.ckpt(0, "verify", self.step(40)).stdout, r": intact, .* in 1030 shards\n$")
        flip(self.step(40) / "part_001/shard_01029.safetensors", LAST)
        self.assertRegex(self.ckpt(1, "verify", self.step(40)).stdout, r": damaged: \S+/part_001/shard_01029\.safetensors: tensor ")
        (self.step(40) / "part_001/index.json").unlink()
        self.assertIn("part_001/index.json: cannot be opened", self.list()["checkpoints"][0]["reason"])
        self.assertIn("step_00000040 stays and does not count", self.ckpt(0, "prune", self.dir, "--keep", 1).stderr)
        (self.step(20) / "part_001/shard_01025.safetensors").unlink()
        self.assertIn("/part_001/shard_01025.safetensors: No such file", self.list()["checkpoints"][1]["reason"])

    # ---- prune ----

    def test_prune_keeps_what_a_run_keeps(self):
        self.save(20, 40, 50, 60, 100)
        before = self.names()
        done = self.ckpt(0, "prune", self.dir, "--keep", 2, "--keep-every", 50, "--dry-run")
        self.assertEqual(done.stdout.splitlines(), [*(f"would remove {self.step(step)}" for step in (40, 20)),
                                                    f"{self.dir}: would keep 3 complete, the newest of step 100"])
        self.assertEqual(self.names(), before)
        done = self.ckpt(0, "prune", self.dir, "--keep", 2, "--keep-every", 50)
        self.assertEqual(done.stdout.splitlines(), [*(f"removed {self.step(step)}" for step in (40, 20)),
                                                    f"{self.dir}: kept 3 complete, the newest of step 100"])
        self.assertEqual((self.names(), done.stderr), (["step_00000050", "step_00000060", "step_00000100"], ""))
        self.ckpt(0, "verify", self.dir)

    def test_prune_counts_complete_checkpoints_alone(self):
        self.save(20, 40, 60, 80)
        (self.step(80) / "manifest.json").unlink()
        (self.step(40) / "shard_00000.safetensors").unlink()
        done = self.ckpt(0, "prune", self.dir, "--keep", 1)
        self.assertEqual(self.names(), ["step_00000040", "step_00000060", "step_00000080"])
        self.assertRegex(done.stderr, r"(?s)^wlb ckpt prune: \S+/step_00000080 stays and does not count: .*/step_00000040 stays")
        (self.step(60) / "manifest.json").unlink()
        self.assertIn("none of its 3 checkpoints is complete: nothing is removed", self.ckpt(1, "prune", self.dir, "--keep", 1).stderr)
        self.assertEqual(self.names(), ["step_00000040", "step_00000060", "step_00000080"])

    def test_prune_removes_what_killed_writers_left(self):
        self.save(20)
        left = [".step_00000010.replaced", ".step_00000040.id.partial"]
        for name in left:
            (self.dir / name).mkdir()
            (self.dir / name / "shard_00000.safetensors").write_bytes(b"x")
        self.assertEqual(self.ckpt(0, "prune", self.dir, "--keep", 1, "--dry-run").stdout.splitlines()[:2],
                         [f"would remove {self.dir / name}" for name in left])
        self.assertEqual(self.names(), [*left, "step_00000020"])
        self.ckpt(0, "prune", self.dir, "--keep", 1)
        self.assertEqual(self.names(), ["step_00000020"])

    def test_prune_removes_nothing_while_a_run_saves(self):
        self.save(20, 40)
        (self.dir / ".step_00000060.id.partial").mkdir()
        lock, before = self.hold_lock(), self.names()
        for more in ([], ["--dry-run"]):
            done = self.ckpt(1, "prune", self.dir, "--keep", 1, *more)
            self.assertEqual(done.stdout, "")
            self.assertIn(f"{self.dir}: run 12 on n1, process 34 saves into it: nothing is removed", done.stderr)
        self.assertEqual(self.names(), [".lock", *(name for name in before if name != ".lock")])
        lock.close()
        self.ckpt(0, "prune", self.dir, "--keep", 1)
        self.assertEqual(self.names(), ["step_00000040"])

    def test_prune_without_locks_leaves_what_may_be_written(self):
        """A .lock that cannot be opened is as on a file system without locks."""
        self.save(20, 40)
        fresh, old = self.dir / ".step_00000060.a.partial", self.dir / ".step_00000050.b.partial"
        for folder in (fresh, old):
            folder.mkdir()
        os.utime(old, (1_700_000_000, 1_700_000_000))
        (self.dir / ".lock").symlink_to("elsewhere")
        done = self.ckpt(0, "prune", self.dir, "--keep", 1)
        self.assertEqual(self.names(), [".lock", fresh.name, "step_00000040"])
        self.assertIn(f"{self.dir}/.lock: cannot be locked: ", done.stderr)
        self.assertIn(f"{fresh} stays: a run may be writing it", done.stderr)

    def test_wrong_use(self):
        self.save(20)
        empty, file = self.dir.parent / "empty", self.step(20) / "manifest.json"
        empty.mkdir()
        for words, why in ((["list", empty / "x"], "empty/x: No such file or directory"), (["list", file], "is no directory"),
                           (["list", self.step(20)], "is a checkpoint itself: name the directory that it is in"),
                           (["show", empty], "has no checkpoints"), (["show", self.step(40)], "No such file or directory"),
                           (["verify"], "DIR... is needed"), (["verify", empty], "has no checkpoints"),
                           (["verify", self.step(20), self.step(40)], "step_00000040: No such file or directory"),
                           (["prune", self.dir], "--keep is needed"), (["prune", self.dir, "--keep", 0], "--keep '0': must be"),
                           (["prune", self.step(20), "--keep", 1], "is a checkpoint itself"), (["bogus"], "command 'bogus' is unknown")):
            with self.subTest(words):
                done = self.ckpt(2, *words)
                self.assertEqual(done.stdout, "")
                self.assertIn(why, done.stderr)
                self.assertEqual(done.stderr.count("\n"), 1)
        self.assertEqual(self.names(), ["step_00000020"])


if __name__ == "__main__":
    unittest.main(argv=sys.argv)
