"""The hook by which WLB follows a trainer in Python that says nothing of its steps.

`wlb run` puts this folder first on PYTHONPATH of its tasks (as FOLDER, or FOLDER:OLD where there was an old value that is not empty) and
names a file in WLB_HOOK_FILE, on the node itself. Python's site imports this module at its start. It takes the folder from sys.path and
PYTHONPATH again, waits with a finder of imports for torch, and has the next sitecustomize imported in its place: that one, or the error
that there is none, reaches site as without this hook. With -I, -E and -S Python does not come here.

Only a launcher (torchrun and others below) keeps the folder for its children, which are the trainers.

The source is valid for Python 2.7 and every later one. Nothing is imported that site has not imported.
"""
import os
import sys

_FOLDER = os.path.dirname(os.path.abspath(__file__))
_LAUNCHERS = (b"torchrun", b"accelerate", b"ft_launcher", b"deepspeed", b"accelerate.commands.launch", b"deepspeed.launcher.launch",
              b"deepspeed.launcher.runner", b"nvidia_resiliency_ext.fault_tolerance.launcher", b"torch.distributed.launch",
              b"torch.distributed.run")

# Modules that the hook has something to do with, and the function of torch_hook.py for each.
_MODULES = {
    "torch": "take_torch",
    "torch.utils.tensorboard.writer": "take_tensorboard",
    "torch.distributed.checkpoint.state_dict_saver": "take_checkpoint",
}


class _Finder(object):
    """Stands first in sys.meta_path and finds nothing by itself. A module of _MODULES is found by the others; once it has been executed,
    by whoever imports it, it is given to torch_hook.py. Behind the last module, and at the first error, the finder is gone."""

    def __init__(self):
        self.left = dict(_MODULES)
        self.is_asking = False
        self.hook = None

    def remove(self):
        self.left.clear()
        if self in sys.meta_path:
            sys.meta_path.remove(self)

    def find_spec(self, name, path=None, target=None):
        if name not in self.left or self.is_asking:
            return None
        self.is_asking = True
        try:
            return self._find(name, path, target)
        except Exception:
            return None  # the import system asks the others itself, and gets their error
        finally:
            self.is_asking = False

    def _find(self, name, path, target):
        for finder in list(sys.meta_path):
            spec = finder.find_spec(name, path, target) if finder is not self and hasattr(finder, "find_spec") else None
            if spec is not None:
                if hasattr(spec.loader, "exec_module"):
                    self._watch(name, spec.loader)
                return spec
        return None

    def _watch(self, name, loader):
        """The loader is that of this module alone. It has its own method again before it is used."""
        original = loader.exec_module

        def exec_module(module):
            loader.__dict__.pop("exec_module", None)
            original(module)
            self._take(name, module)

        loader.exec_module = exec_module

    def _take(self, name, module):
        try:
            if self.hook is None:
                path = os.path.join(_FOLDER, "torch_hook.py")
                self.hook = {"__name__": "wlb_torch_hook", "__file__": path}
                with open(path) as source:
                    exec(compile(source.read(), path, "exec"), self.hook)
            function = self.left.pop(name, None)
            if function is not None:
                self.hook[function](module, self.remove)
            if not self.left:
                self.remove()
        except Exception:
            self.remove()


def _is_launcher():
    """Whether the program, a script or the module behind -m, is one of _LAUNCHERS."""
    with open("/proc/self/cmdline", "rb") as file:
        words = file.read(65536).split(b"\0")[1:]
    while words and words[0].startswith(b"-"):
        option = words.pop(0)
        if option == b"-m":
            return words[:1] != [] and words[0] in _LAUNCHERS
        if option == b"-c":
            return False
        if option in (b"-X", b"-W") and words:
            words.pop(0)
    return words[:1] != [] and os.path.basename(words[0]) in _LAUNCHERS


def _leave():
    """Takes the folder from what this process and its children search."""
    sys.path[:] = [entry for entry in sys.path if entry != _FOLDER]
    sys.path_importer_cache.pop(_FOLDER, None)
    if _is_launcher():
        return False
    entries = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    left = [entry for entry in entries if entry == "" or os.path.abspath(entry) != _FOLDER]
    if left:
        os.environ["PYTHONPATH"] = os.pathsep.join(left)
    else:
        os.environ.pop("PYTHONPATH", None)
    return True


try:
    if _leave() and sys.version_info >= (3, 8) and os.environ.get("WLB_HOOK_FILE"):
        sys.meta_path.insert(0, _Finder())
except Exception:
    pass

# Python 2.7 sets the names of a module to None that nobody refers to; this one is no longer in sys.modules.
_self = sys.modules.pop("sitecustomize", None)
import sitecustomize  # noqa  the next one
