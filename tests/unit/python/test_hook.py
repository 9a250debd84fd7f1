#!/usr/bin/env python3
"""The hook of Python: a program runs under it as without it, and a stand-in for torch is followed.

WLB_TEST_PYTHONS names further interpreters, between colons, such as one of Python 2.7.
"""
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import textwrap
import unittest
import unittest.mock
import zipfile

ROOT = pathlib.Path(__file__).resolve().parents[3]
HOOK = str(ROOT / "python" / "hook")
PYTHONS = [sys.executable] + [python for python in os.environ.get("WLB_TEST_PYTHONS", "").split(":") if python]
CALL_S_MOST = 10e-6

# torch, as far as the hook looks at it: hooks of optimizers, save, a writer of scalars and a saver of checkpoints.
TORCH = {
    "torch/__init__.py": """
        from torch.serialization import save
        import torch.optim
        class Tensor(object):
            def __init__(self, value, is_cpu=True):
                self.value, self.is_cpu = value, is_cpu
            def numel(self):
                return 1
            def item(self):
                assert self.is_cpu, "a tensor of a device is read"
                return self.value
        class nn(object):
            class Parameter(Tensor):
                pass
        """,
    "torch/serialization.py": """
        def save(obj, f, pickle_module=None):
            return 7
        """,
    "torch/optim/__init__.py": "from torch.optim.optimizer import Optimizer\ndel optimizer\n",
    "torch/optim/optimizer.py": """
        _hooks = []
        class Handle(object):
            def remove(self):
                del _hooks[:]
        def register_optimizer_step_post_hook(hook):
            _hooks.append(hook)
            return Handle()
        class Optimizer(object):
            def __init__(self, step=None):
                self.step_value, self.state, self.param_groups = step, {}, [{"params": ["p", "q"]}]
            def step(self):
                if self.step_value is not None:
                    self.step_value.value += 1
                    self.state["q"] = {"step": self.step_value}
                for hook in list(_hooks):
                    hook(self, (), {})
        """,
    "torch/utils/__init__.py": "",
    "torch/utils/tensorboard/__init__.py": "from torch.utils.tensorboard.writer import SummaryWriter\n",
    "torch/utils/tensorboard/writer.py": """
        class SummaryWriter(object):
            def add_scalar(self, tag, scalar_value, global_step=None, walltime=None):
                "Adds."
                return 8
        """,
    "torch/distributed/__init__.py": "",
    "torch/distributed/checkpoint/__init__.py": "from torch.distributed.checkpoint.state_dict_saver import save\n",
    "torch/distributed/checkpoint/state_dict_saver.py": """
        def save(state_dict, checkpoint_id=None, storage_writer=None):
            return 9
        """,
}


class Case(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.notes = os.path.join(self.folder, "hook.jsonl")

    def write(self, files, below=""):
        for name, text in files.items():
            path = pathlib.Path(self.folder, below, name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(textwrap.dedent(text), encoding="ascii")
        return os.path.join(self.folder, below)

    def run_python(self, python, words, path=(), is_hooked=True, **variables):
        entries = [HOOK] * is_hooked + list(path)
        env = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
        env.update(variables, PYTHONDONTWRITEBYTECODE="1", WLB_HOOK_FILE=self.notes)
        if entries:
            env["PYTHONPATH"] = ":".join(entries)
        done = subprocess.run([python, *words], env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=60, cwd=self.folder,
                              check=False)
        return done.returncode, done.stdout.decode().replace(HOOK, "HOOK")

    def expect_the_same(self, words, path=(), **variables):
        """With and without the hook. Returns what is printed, by the first interpreter."""
        first = None
        for python in PYTHONS:
            without = self.run_python(python, words, path, is_hooked=False, **variables)
            code, said = self.run_python(python, words, path, **variables)
            said = re.sub(r'  File "HOOK/.*\n(?:    .*\n)+', "", said)  # its line in a traceback
            self.assertEqual((code, said), without, python)
            first = first or without
        return first[1]

    def noted(self):
        """The lines of the hook's file without times, which are then gone."""
        if not os.path.exists(self.notes):
            return []
        with open(self.notes, encoding="ascii") as file:
            lines = [json.loads(line) for line in file]
        os.unlink(self.notes)
        for line in lines:
            self.assertGreater(line.pop("time"), 1.7e9)
            line.pop("save_s", None)
        return lines


class Unseen(Case):
    """What a program can see of the hook, where it does not use torch."""

    SHOW = """
        import os, sys
        print([entry for entry in sys.path if entry], sorted(sys.modules), os.environ.get("PYTHONPATH"), list(sys.path_importer_cache),
              getattr(sys.modules.get("sitecustomize"), "__file__", None))
        """

    def test_paths_modules_and_environment_are_as_without(self):
        self.write({"show.py": self.SHOW})
        self.expect_the_same(["show.py"])
        self.expect_the_same(["show.py"], ["/a", "/b"])
        for option in ("-s", "-E", "-S", "-O"):
            words = [option, "-c", "import os, sys; print(sorted(sys.modules), os.environ.get('A'))"]
            self.expect_the_same(words)
        self.assertEqual(self.run_python(sys.executable, ["-I", "-c", "import sitecustomize"])[0] != 0,
                         self.run_python(sys.executable, ["-I", "-c", "import sitecustomize"], is_hooked=False)[0] != 0)

    def test_a_child_has_a_clean_environment(self):
        child = "import subprocess, sys; subprocess.call([sys.executable, '-c', %r])"
        show = "import os, sys; print(os.environ.get('PYTHONPATH'), len(sys.meta_path))"
        self.expect_the_same(["-c", child % show])
        self.expect_the_same(["-c", child % show], ["/a"])

    def test_another_sitecustomize_is_chained(self):
        other = self.write({"sitecustomize.py": "print('other', __name__)\nimport sys\nsys.flag = 1\n"}, "other")
        said = self.expect_the_same(["-c", "import sys, sitecustomize; print(sys.flag, sitecustomize.__file__)"], [other])
        self.assertIn("other sitecustomize", said)

    def test_another_sitecustomize_that_fails_fails_as_without(self):
        for number, text in enumerate(["raise ValueError('x')", "import nothing_of_this_name", "import sys; sys.exit(3)", "syntax error"]):
            other = self.write({"sitecustomize.py": text}, "other%d" % number)
            self.expect_the_same(["-c", "print(1)"], [other])

    def test_a_virtual_environment_works(self):
        venv = os.path.join(self.folder, "venv")
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", venv], check=True, timeout=60)
        python = os.path.join(venv, "bin", "python")
        words = ["-c", "import sys; print(sys.prefix, sys.path, sorted(sys.modules))"]
        self.assertEqual(self.run_python(python, words), self.run_python(python, words, is_hooked=False))

    def test_a_launcher_keeps_the_hook_for_its_children(self):
        show = "import os; print(os.environ.get('PYTHONPATH'))"
        self.write({"torchrun": show, "torch/__init__.py": "", "torch/distributed/__init__.py": "", "torch/distributed/run.py": show})
        for words in (["torchrun", "x"], ["-u", "-W", "ignore", "torchrun"], ["-m", "torch.distributed.run"]):
            self.assertEqual(self.run_python(sys.executable, words), (0, "HOOK\n"))
        self.write({"train.py": show})
        for words in (["train.py", "torchrun"], ["-c", show, "torchrun"]):
            self.assertEqual(self.run_python(sys.executable, words), (0, "None\n"))

    def test_finding_and_importing_other_modules_is_as_without(self):
        self.write({"find.py": """
            import importlib, importlib.util, pkgutil, sys
            importlib.invalidate_caches()
            print(importlib.util.find_spec("json").name, importlib.util.find_spec("nothing"), importlib.util.find_spec("torch"))
            print(len(list(pkgutil.iter_modules())) > 50, pkgutil.get_loader("json") if sys.version_info < (3, 12) else None)
            try:
                import torch
            except ImportError as error:
                print(type(error), error)
            """})
        said = [self.run_python(sys.executable, ["find.py"], is_hooked=is_hooked)[1].split(" at 0x")[0] for is_hooked in (True, False)]
        self.assertEqual(*said)
        self.assertIn("json None None", said[0])

    def test_an_error_in_torch_is_raised_as_without(self):
        self.write({"torch/__init__.py": "raise ValueError('no GPU')"})
        words = ["-c", "try:\n import torch\nexcept ValueError as error:\n import sys; print(error, 'torch' in sys.modules)"]
        self.assertEqual(self.run_python(sys.executable, words), (0, "no GPU False\n"))
        self.expect_the_same(words)


class Followed(Case):
    def follow(self, program, words=(), **variables):
        self.write(TORCH)
        self.write({"train.py": program})
        return self.run_python(sys.executable, [*words, "train.py"], [self.folder], **variables)

    def test_steps_of_the_first_optimizer_are_counted(self):
        said = self.follow("""
            import torch
            first, second = torch.optim.Optimizer(), torch.optim.Optimizer()
            for _ in range(3):
                first.step()
                second.step()
            del first
            second.step()
            """, RANK="5")
        self.assertEqual(said, (0, ""))
        self.assertEqual(self.noted(), [{"rank": 5, "step_of_attempt": i} for i in (1, 2, 3, 4)])

    def test_ranks_that_torchrun_has_started_again_are_told(self):
        program = "import torch\noptimizer = torch.optim.Optimizer()\noptimizer.step()\noptimizer.step()\n"
        for count, told in (("0", []), ("2", [{"launcher_restarts": 2}]), ("-1", []), ("x", [])):
            self.follow(program, TORCHELASTIC_RESTART_COUNT=count)
            self.assertEqual(self.noted(), told + [{"step_of_attempt": 1}, {"step_of_attempt": 2}])

    def test_an_optimizer_that_is_used_alone_from_now_on_counts(self):
        self.follow("""
            import torch
            first, second = torch.optim.Optimizer(), torch.optim.Optimizer(torch.Tensor(0.0))
            first.step()
            for _ in range(1002):
                second.step()
            """)
        self.assertEqual(self.noted(), [{"step_of_attempt": 1}, {"step": 1001}, {"step": 1002}])

    def test_a_step_of_the_optimizer_on_the_host_is_the_steps_number(self):
        self.follow("import torch\noptimizer = torch.optim.Optimizer(torch.Tensor(41.0))\noptimizer.step()\noptimizer.step()\n")
        self.assertEqual(self.noted(), [{"step": 42}, {"step": 43}])

    def test_a_file_of_the_program_is_not_written_to(self):
        said = self.follow("""
            import os, torch
            optimizer = torch.optim.Optimizer()
            optimizer.step()
            os.closerange(3, 64)
            own = [os.open("own", os.O_CREAT | os.O_RDWR) for _ in range(61)]
            optimizer.step()
            print(os.path.getsize("own"))
            """)
        self.assertEqual(said, (0, "0\n"))
        self.assertEqual(self.noted(), [{"step_of_attempt": 1}])

    def test_a_tensor_of_a_device_is_not_read(self):
        said = self.follow("""
            import torch
            from torch.utils.tensorboard import SummaryWriter
            torch.optim.Optimizer(torch.Tensor(41.0, is_cpu=False)).step()
            SummaryWriter().add_scalar("loss", torch.Tensor(2.5, is_cpu=False), 3)
            """)
        self.assertEqual(said, (0, ""))
        self.assertEqual(self.noted(), [{"step_of_attempt": 1}])

    def test_a_step_that_makes_the_state_is_none(self):
        self.follow("""
            import torch
            optimizer = torch.optim.Optimizer()
            def _init_optim_state():
                optimizer.step()
            _init_optim_state()
            optimizer.step()
            """)
        self.assertEqual(self.noted(), [{"step_of_attempt": 1}])

    def test_scalars_and_saves_are_noted(self):
        said = self.follow("""
            import os, pickle, torch
            from torch.utils.tensorboard import SummaryWriter
            import torch.distributed.checkpoint as dcp
            writer = SummaryWriter()
            print(writer.add_scalar("train/loss", 2.5, 7), writer.add_scalar(tag="x", scalar_value=torch.Tensor(float("nan"))))
            print(writer.add_scalar("text", "1"), writer.add_scalar.__doc__)
            print(torch.save({}, "/a/b.pt"), torch.save(f="c.pt", obj=1), torch.save(1, object()))
            print(dcp.save({}, checkpoint_id="/dcp"), dcp.save({}))
            import threading
            open("d.pt", "w").write("xyz")
            thread = threading.Thread(target=torch.save, args=({}, "d.pt"))
            thread.start()
            thread.join()
            print(pickle.loads(pickle.dumps(torch.save)) is torch.save, torch.save.__module__, type(torch.__spec__.loader).__name__)
            """)
        self.assertEqual(said, (0, "8 8\n8 Adds.\n7 7 7\n9 9\nTrue torch.serialization SourceFileLoader\n"))
        one, two, *rest = self.noted()
        self.assertEqual(one, {"step": 7, "train/loss": 2.5})
        self.assertNotEqual(two["x"], two["x"])
        here = os.path.realpath(self.folder)
        self.assertEqual(rest, [{"checkpoint": path} for path in ("/a/b.pt", os.path.join(here, "c.pt"), "/dcp")]
                         + [{"checkpoint": os.path.join(here, "d.pt"), "bytes": 3, "stall_s": 0}])  # training goes on beside the thread

    def test_the_finder_is_gone_behind_the_last_module(self):
        said = self.follow("""
            import sys
            count = len(sys.meta_path)
            import importlib.util
            print(importlib.util.find_spec("torch").name, "torch" in sys.modules)
            import torch, torch.utils.tensorboard
            print(len(sys.meta_path) - count)
            import torch.distributed.checkpoint
            print(len(sys.meta_path) - count, "exec_module" in vars(torch.__spec__.loader))
            torch.optim.Optimizer().step()
            """)
        self.assertEqual(said, (0, "torch False\n0\n-1 False\n"))
        self.assertEqual(self.noted(), [{"step_of_attempt": 1}])

    @unittest.skipIf(sys.version_info < (3, 10), "loaders of archives have no exec_module before Python 3.10")
    def test_torch_in_a_zip_is_followed(self):
        self.write(TORCH, "source")
        with zipfile.ZipFile(os.path.join(self.folder, "torch.zip"), "w") as archive:
            for name in TORCH:
                archive.write(os.path.join(self.folder, "source", name), name)
        words = ["-c", "import torch; torch.optim.Optimizer().step(); print(torch.__file__)"]
        code, said = self.run_python(sys.executable, words, [os.path.join(self.folder, "torch.zip")])
        self.assertEqual((code, "torch.zip" in said), (0, True))
        self.assertEqual(self.noted(), [{"step_of_attempt": 1}])

    def test_a_forked_child_counts_for_itself(self):
        self.follow("""
            import os, torch
            optimizer = torch.optim.Optimizer()
            optimizer.step()
            if os.fork() == 0:
                os.environ["RANK"] = "1"
                optimizer.step()
                os._exit(0)
            os.wait()
            optimizer.step()
            """)
        self.assertEqual(self.noted(), [{"step_of_attempt": 1}, {"rank": 1, "step_of_attempt": 1}, {"step_of_attempt": 2}])

    STACKS = """
        import os, signal, time, torch
        names = [os.readlink("/proc/self/fd/%s" % fd) for fd in os.listdir("/proc/self/fd") if os.path.exists("/proc/self/fd/%s" % fd)]
        files = [name for name in names if "wlb-stacks" in name]
        """

    def test_stacks_are_written_at_a_signal_that_is_announced(self):
        said = self.follow(self.STACKS + """
        number = int(files[0].split()[0].rsplit("-", 1)[1])
        file = next(fd for fd in os.listdir("/proc/self/fd") if "wlb-stacks" in os.readlink("/proc/self/fd/" + fd))
        def wait():
            os.kill(os.getpid(), number)
        wait()
        text = open("/proc/self/fd/" + file).read()
        print(files, number == signal.SIGRTMAX - 5, "Current thread" in text, 'train.py", line' in text, "in wait" in text)
        print(os.get_inheritable(int(file)))
        """)
        number = signal.SIGRTMAX - 5
        self.assertEqual(said, (0, "['/memfd:wlb-stacks-%d (deleted)'] True True True True\nFalse\n" % number))

    def test_a_signal_that_the_program_uses_is_not_announced(self):
        for use in ("signal.signal(signal.SIGRTMAX - 5, print)", "signal.signal(signal.SIGRTMAX - 5, signal.SIG_IGN)",
                    "import faulthandler; faulthandler.register(signal.SIGRTMAX - 5)"):
            program = textwrap.dedent(self.STACKS).replace("import os, signal, time, torch", "import os, signal\n%s\nimport torch" % use)
            self.assertEqual(self.follow(program + "print(files)\n"), (0, "[]\n"))

    def test_the_first_error_turns_it_off(self):
        program = """
            import sys, torch
            count = len(sys.meta_path)
            optimizer = torch.optim.Optimizer()
            optimizer.param_groups = %s
            optimizer.step()
            optimizer.param_groups = [{"params": []}]
            optimizer.step()
            import os, signal
            print(torch.save(1, "/x"), len(torch.optim.optimizer_hooks()), len(sys.meta_path) - count)
            print(any("wlb-stacks" in os.path.realpath("/proc/self/fd/%%s" %% fd) for fd in os.listdir("/proc/self/fd")), flush=True)
            os.kill(os.getpid(), signal.SIGRTMAX - 5)
            """
        ended = (5 - signal.SIGRTMAX, "7 0 -1\nFalse\n")  # by the signal of which nobody takes the stacks any more
        torch = dict(TORCH)
        torch["torch/optim/__init__.py"] += "import sys\ndef optimizer_hooks():\n    return sys.modules['torch.optim.optimizer']._hooks\n"
        with unittest.mock.patch.dict(TORCH, torch):
            self.assertEqual(self.follow(program % "None"), ended)
            self.assertEqual(self.noted(), [])
            os.mkdir(self.notes)
            self.assertEqual(self.follow(program % "[{'params': []}]"), ended)

    def test_a_torch_without_the_hooks_is_left_alone(self):
        self.write({"torch/__init__.py": "x = 1\n"})
        self.assertEqual(self.run_python(sys.executable, ["-c", "import torch; print(torch.x)"], [self.folder]), (0, "1\n"))
        shutil.rmtree(os.path.join(self.folder, "torch"))

    def test_lines_are_bounded_in_a_second_and_altogether(self):
        self.follow("import torch\noptimizer = torch.optim.Optimizer()\nfor _ in range(100000): optimizer.step()\n")
        self.assertIn(len(self.noted()), range(200, 20000))
        self.follow("""
            import torch
            optimizer = torch.optim.Optimizer()
            optimizer.step()
            _note = torch.save.__closure__
            import gc
            hook = next(thing for thing in gc.get_objects() if type(thing).__name__ == "_Hook")
            hook.bytes = 64 << 20
            optimizer.step()
            optimizer.step()
            """)
        self.assertEqual(self.noted(), [{"step_of_attempt": 1}])

    def test_a_call_takes_10_us_at_most(self):
        """10^6 calls, in time of this process."""
        code, said = self.follow("""
            import time, torch
            optimizer = torch.optim.Optimizer(torch.Tensor(0.0))
            optimizer.step()
            import sys
            hook = sys.modules["torch.optim.optimizer"]._hooks[0]
            as_it_is, each_written = (800000, hook.__globals__["LINES_MOST"]), (200000, 1 << 60)
            for calls, lines_most in (as_it_is, each_written):
                hook.__globals__["LINES_MOST"] = lines_most
                begin_s = time.process_time()
                for _ in range(calls):
                    hook(optimizer, (), {})
                print((time.process_time() - begin_s) / calls)
            """)
        self.assertEqual(code, 0, said)
        self.assertLess(max(map(float, said.split())), CALL_S_MOST, said)
        self.assertGreater(len(self.noted()), 200000)


if __name__ == "__main__":
    unittest.main()
