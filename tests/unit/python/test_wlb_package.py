#!/usr/bin/env python3
"""The package `wlb`: what it writes, and that it never raises, waits or writes where it must not."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import threading
import time
import types
import unittest
import unittest.mock

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "python"))

import wlb
import wlb._metrics
import wlb._stop


class Case(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.path = os.path.join(self.folder.name, "metrics.jsonl")
        os.environ["WLB_METRICS_FILE"] = self.path
        os.environ.pop("RANK", None)
        os.environ.pop("WLB_STOP_FILE", None)
        wlb._metrics._file = None
        os.environ.pop("WORLD_SIZE", None)
        wlb._stop._order = None

    def ask(self, text="stop\n", **variables):
        """The file as `wlb run` writes it, for a process that has not looked yet."""
        path = os.environ["WLB_STOP_FILE"] = os.path.join(self.folder.name, "stop")
        os.environ.update(variables)
        pathlib.Path(path).write_text(text, encoding="ascii")
        wlb._stop._order = None

    def answer(self):
        path = pathlib.Path(self.folder.name, "stop.step")
        return path.read_text(encoding="ascii") if path.exists() else None

    def records(self):
        """Those that were written, without their times."""
        if not os.path.exists(self.path):
            return []
        with open(self.path, encoding="ascii") as file:
            records = [json.loads(line) for line in file]
        for record in records:
            self.assertAlmostEqual(record.pop("time"), time.time(), delta=60)
        return records


class Log(Case):
    def test_a_record_is_a_line(self):
        wlb.log(step=3, loss=2.5, tokens=4096, lr=1e-3, **{"eval/loss": 2, "is_best": True})
        wlb.log(step=4)
        self.assertEqual(self.records(), [{"step": 3, "loss": 2.5, "tokens": 4096, "lr": 1e-3, "eval/loss": 2, "is_best": 1},
                                          {"step": 4}])
        self.assertEqual(os.stat(self.path).st_mode & 0o777, 0o600)

    def test_a_file_of_the_program_is_not_written_to(self):
        """It has closed the descriptor, which is its own file's now."""
        wlb.log(step=1)
        own = os.path.join(self.folder.name, "own")
        os.close(wlb._metrics._file.descriptor)
        descriptor = os.open(own, os.O_CREAT | os.O_RDWR)
        self.addCleanup(os.close, descriptor)
        self.assertEqual(descriptor, wlb._metrics._file.descriptor)
        wlb.log(step=2)
        self.assertEqual((os.path.getsize(own), self.records()), (0, [{"step": 1}, {"step": 2}]))

    def test_the_rank_is_told(self):
        os.environ["RANK"] = "7"
        wlb.log(step=1)
        self.assertEqual(self.records(), [{"rank": 7, "step": 1}])

    def test_what_is_no_number_is_left_out(self):
        class Bad:
            def __float__(self):
                raise RuntimeError("the device is gone")

        class Tensor:
            def __float__(self):
                return 1.5

        wlb.log(step="3", loss=Bad(), tokens=[1], text="5", tensor=Tensor(), big=1 << 60, huge=1 << 5000, none=None)
        self.assertEqual(self.records(), [{"tensor": 1.5, "big": float(1 << 60)}])

    def test_numbers_that_json_lacks_are_written_as_the_reader_expects(self):
        wlb.log(loss=float("nan"), a=float("inf"), b=-float("inf"))
        text = pathlib.Path(self.path).read_text(encoding="ascii")
        self.assertIn('"loss": NaN, "a": Infinity, "b": -Infinity', text)

    def test_names_are_bounded(self):
        wlb.log(step=1, **{"n%d" % i: i for i in range(100000)})
        wlb.log(step=2, **{"x" * 100000: 1, "\x1b[31m\n\ud800": 2})
        one, two = self.records()
        self.assertLessEqual(len(one), wlb._metrics.VALUES_MOST + 3)
        self.assertEqual(two, {"step": 2, "x" * wlb._metrics.NAME_MOST: 1, "\x1b[31m\n?": 2})

    def test_nothing_is_done_without_wlb(self):
        del os.environ["WLB_METRICS_FILE"]
        wlb.log(step=1, loss=2)
        wlb.checkpoint("/x", step=1)
        self.assertFalse(wlb.should_stop())
        self.assertEqual(os.listdir(self.folder.name), [])

    def test_files_that_are_none_are_left_alone(self):
        target = os.path.join(self.folder.name, "target")
        os.symlink(target, self.path)
        wlb.log(step=1)
        self.assertFalse(os.path.exists(target))
        os.unlink(self.path)
        os.mkfifo(self.path)
        begin_s = time.monotonic()
        for _ in range(100):
            wlb.log(step=1)
        self.assertLess(time.monotonic() - begin_s, 5)
        os.unlink(self.path)
        wlb.log(step=1)
        self.assertEqual(self.records(), [], "it gives up after errors")

    def test_a_full_disk_raises_nothing(self):
        os.environ["WLB_METRICS_FILE"] = "/dev/full"
        wlb.log(step=1)
        os.environ["WLB_METRICS_FILE"] = "/nonexistent/metrics"
        wlb.log(step=1)

    def test_a_torn_line_is_ended_before_the_next(self):
        wlb.log(step=1)
        wlb._metrics._file.is_torn = True
        wlb.log(step=2)
        self.assertEqual(pathlib.Path(self.path).read_text(encoding="ascii").count("\n\n{"), 1)

    def test_a_process_writes_so_much_and_no_more(self):
        wlb.log(step=1)
        wlb._metrics._file.bytes = wlb._metrics.BYTES_MOST - 10
        wlb.log(step=2)
        self.assertEqual(self.records(), [{"step": 1}])

    def test_lines_of_threads_and_processes_stay_whole(self):
        def write(first):
            for step in range(first, first + 500):
                wlb.log(step=step, loss=0.5, text="x" * 100)

        threads = [threading.Thread(target=write, args=(1000 * i,)) for i in range(4)]
        child = subprocess.Popen([sys.executable, "-c", "import wlb\nfor i in range(500): wlb.log(step=9000 + i)"],
                                 env=dict(os.environ, PYTHONPATH=str(ROOT / "python")))
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(child.wait(timeout=60), 0)
        self.assertEqual(len({record["step"] for record in self.records()}), 2500)


class Checkpoint(Case):
    def test_a_checkpoint_has_an_absolute_path(self):
        wlb.checkpoint(pathlib.Path("a") / "b", step=5)
        self.assertEqual(self.records(), [{"checkpoint": os.path.abspath("a/b"), "step": 5}])
        wlb.checkpoint(None)
        wlb.checkpoint("x" * 5000)
        wlb.checkpoint(b"x")
        self.assertEqual(len(self.records()), 1)

    def test_its_size_and_what_it_cost_are_told(self):
        folder = pathlib.Path(self.folder.name, "step_9")
        (folder / "shards").mkdir(parents=True)
        (folder / "shards/0").write_bytes(b"x" * 1000)
        (folder / "index").write_bytes(b"x" * 24)
        (folder / "shards/loop").symlink_to(folder)
        link = (folder / "shards/loop").lstat().st_size
        wlb.checkpoint(folder, step=9, took_s=3, stall_s=0.5)
        wlb.checkpoint(folder / "index", took_s="3")
        told = [{"checkpoint": str(folder), "step": 9, "save_s": 3, "stall_s": 0.5, "bytes": 1024 + link},
                {"checkpoint": str(folder / "index"), "bytes": 24}]
        self.assertEqual(self.records(), told)
        for i in range(wlb._metrics.ENTRIES_MOST):
            (folder / str(i)).touch()
        wlb.checkpoint(folder)
        self.assertEqual(self.records(), [*told, {"checkpoint": str(folder)}])


class Stop(Case):
    def look_again(self):
        wlb._stop._order.looked_s -= wlb._stop._order.look_every_s

    def test_one_rank_stops_at_once(self):
        self.ask("")
        self.assertFalse(wlb.should_stop() or wlb.should_stop(3))
        self.ask()
        self.assertTrue(wlb.should_stop() and wlb.should_stop(3))

    def test_the_first_look_tells_that_the_trainer_asks(self):
        self.ask("", RANK="1", WORLD_SIZE="2")
        self.assertFalse(wlb.should_stop(1))
        self.assertIsNone(self.answer())
        self.ask("", RANK="0")
        self.assertFalse(wlb.should_stop(1))
        self.assertEqual(self.answer(), "")
        self.assertEqual(os.stat(os.path.join(self.folder.name, "stop.step")).st_mode & 0o777, 0o600)

    def test_the_file_is_looked_at_once_a_second(self):
        self.ask("")
        self.assertFalse(wlb.should_stop())
        pathlib.Path(os.environ["WLB_STOP_FILE"]).write_text("stop\n", encoding="ascii")
        self.assertFalse(wlb.should_stop())
        self.look_again()
        self.assertTrue(wlb.should_stop())

    def test_many_ranks_look_less_often(self):
        for ranks, seconds in (("1", 1), ("100", 1), ("500", 5), ("100000", 10)):
            self.ask("", WORLD_SIZE=ranks)
            wlb.should_stop(1)
            self.assertEqual(wlb._stop._order.look_every_s, seconds)

    def test_all_ranks_stop_after_the_same_step(self):
        """Rank 0 chooses one that the others have read of before it is done, by how long its steps take."""
        clock = unittest.mock.patch("time.monotonic", lambda: self.now_s)
        self.now_s = 1000.0
        self.addCleanup(clock.stop)
        clock.start()
        for step_s, ahead in ((0.1, 50), (1.0, 5), (60.0, 2)):
            orders, stopped = [], []
            for rank in range(3):
                self.ask("", RANK=str(rank), WORLD_SIZE="3")
                wlb.should_stop(0)
                orders.append(wlb._stop._order)
            for step in range(1, 300):
                self.now_s += step_s
                if step == 100:
                    pathlib.Path(os.environ["WLB_STOP_FILE"]).write_text("stop\n", encoding="ascii")
                for rank in (2, 0, 1):  # one is ahead of rank 0, one behind it
                    wlb._stop._order = orders[rank]
                    if wlb.should_stop(step):
                        stopped.append(step)
                if stopped:
                    break
            self.assertEqual(len(stopped), 3, stopped)
            self.assertAlmostEqual(stopped[0] - 100, ahead, delta=1 / step_s + 1)
            self.assertEqual(self.answer(), "%d\n" % stopped[0])
            os.unlink(os.path.join(self.folder.name, "stop.step"))

    def test_ranks_that_were_started_again_stop_too(self):
        self.ask(RANK="0", WORLD_SIZE="2")
        pathlib.Path(self.folder.name, "stop.step").write_text("30\n", encoding="ascii")
        self.assertFalse(wlb.should_stop(29))
        self.assertTrue(wlb.should_stop(30) and wlb.should_stop(31))
        self.assertEqual(self.answer(), "30\n")

    def test_half_an_answer_is_none(self):
        self.ask(RANK="1", WORLD_SIZE="2")
        for text in ("3", "-3\n", "x\n", ""):
            pathlib.Path(self.folder.name, "stop.step").write_text(text, encoding="ascii")
            self.assertFalse(wlb.should_stop(1000))
            self.look_again()

    def test_an_answer_that_cannot_be_written_stops_nobody(self):
        self.ask(RANK="0", WORLD_SIZE="2")
        os.mkdir(os.path.join(self.folder.name, "stop.step"))
        self.assertFalse(any(wlb.should_stop(step) for step in range(100)))
        self.assertEqual(wlb._stop._order.errors, wlb._stop.ERRORS_MOST)

    def test_what_is_no_file_makes_nobody_wait(self):
        self.ask("")
        os.unlink(os.environ["WLB_STOP_FILE"])
        os.mkfifo(os.environ["WLB_STOP_FILE"])
        os.mkfifo(os.environ["WLB_STOP_FILE"] + ".step")
        self.assertFalse(wlb.should_stop(1))
        self.assertFalse(wlb.should_stop("x"))


class Callbacks(Case):
    """With stand-ins for the packages; tests/trainers has the real ones."""

    def load(self, module, names):
        for name in names:
            sys.modules[name] = types.ModuleType(name)
            self.addCleanup(sys.modules.pop, name)
        sys.modules[names[-1]].TrainerCallback = sys.modules[names[-1]].Callback = object
        self.addCleanup(sys.modules.pop, "wlb." + module, None)

    def test_hugging_face(self):
        self.load("_hugging_face", ["transformers"])
        callback = wlb.HuggingFaceCallback()
        args = types.SimpleNamespace(output_dir="/out", world_size=2)
        state = types.SimpleNamespace(global_step=10, is_world_process_zero=True)
        control = types.SimpleNamespace(should_save=False, should_training_stop=False)
        callback.on_log(args, state, control, logs={"loss": 2.5, "epoch": 0.1, "step": 3, "note": "x"})
        callback.on_save(args, state, control)
        callback.on_log(args, state, control, logs={7: 1.0})
        callback.on_log(args, state, control, logs={"train_runtime": 9.0, "train_loss": 1.5})
        callback.on_log(args, None, control)
        state.is_world_process_zero = False
        callback.on_log(args, state, control, logs={"loss": 1})
        self.assertEqual(self.records(), [{"step": 10, "loss": 2.5, "epoch": 0.1},
                                          {"checkpoint": "/out/checkpoint-10", "step": 10},
                                          {"step": 10, "run/train_runtime": 9.0, "run/train_loss": 1.5}])
        self.ask(RANK="1", WORLD_SIZE="2")
        pathlib.Path(self.folder.name, "stop.step").write_text("11\n", encoding="ascii")
        callback.on_step_end(args, state, control)
        self.assertFalse(control.should_training_stop)
        state.global_step = 11
        callback.on_step_end(args, state, control)
        self.assertTrue(control.should_training_stop and control.should_save)

    def test_lightning(self):
        self.load("_lightning", ["lightning", "lightning.pytorch", "lightning.pytorch.callbacks"])
        callback = wlb.LightningCallback()
        saved = os.path.join(self.folder.name, "a.ckpt")
        saver = types.SimpleNamespace(last_model_path=saved, best_model_path="", _last_global_step_saved=7)
        trainer = types.SimpleNamespace(callback_metrics={"val_loss": 3.0}, global_step=0, is_global_zero=True, log_every_n_steps=5,
                                        checkpoint_callback=saver, world_size=1, sanity_checking=False, should_stop=False)
        for batch in range(1, 24):  # two batches a step
            trainer.global_step = batch // 2
            if batch == 15:
                pathlib.Path(saved).touch()
            callback.on_train_batch_end(trainer, None, {"loss": 1.0 * trainer.global_step}, None, batch)
        self.assertEqual(self.records(), [{"step": step, "val_loss": 3.0, "loss": 1.0 * step} for step in (0, 5, 10)]
                         + [{"checkpoint": saved, "step": 7, "bytes": 0}])
        self.ask()
        trainer.global_step = 12
        callback.on_train_batch_end(trainer, None, None, None, 24)
        self.assertTrue(trainer.should_stop)

    def test_unknown_names_are_errors(self):
        with self.assertRaises(AttributeError):
            wlb.nothing  # pylint: disable=pointless-statement


if __name__ == "__main__":
    unittest.main()
