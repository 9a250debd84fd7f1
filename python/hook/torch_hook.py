"""Follows torch, for sitecustomize.py: counts steps of the optimizer, and notes scalars and saves. For Python 3.8 and later.

What is noted are lines of WLB_HOOK_FILE, in the format of follow/metrics_line.h. The hook reads no tensor of a device, starts no thread and
takes no lock. It turns itself off at its first error, and nothing of it raises.

A step is a call of `step` that reached the first optimizer: gradients that are accumulated and steps that a GradScaler skips do not get
there, and other optimizers do not count. Its number is that of the optimizer's own state where that is on the host, as Adam's is. Else
the number is of this attempt alone (step_of_attempt). Steps in a replayed CUDA graph, or in a compiled `step`, are not seen.
"""
import functools
import json
import os
import signal
import stat
import sys
import threading
import time
import weakref

LINES_MOST = 200  # in a second; more of them are left out
BYTES_MOST = 64 << 20  # of a process
PARAMETERS_LOOKED_AT = 8  # some have no gradient, and so no state
OTHERS_MOST = 1000  # steps of other optimizers in a row, behind which theirs count: the first is no longer used
INTEGER_MOST = 1 << 53
STACKS_SIGNAL = int(signal.SIGRTMAX) - 5  # that programs use more seldom than the first ones


class _Hook:
    """What this process knows. A forked child begins anew."""

    def __init__(self):
        self.is_on = True
        self.pid = 0
        self.undo = []  # what turns it off, beside is_on

    def begin(self):
        self.pid = os.getpid()
        self.optimizer = None  # a weak reference
        self.steps = self.others = 0
        self.second = self.lines = self.bytes = 0
        rank = os.environ.get("RANK", "")
        self.head = '{"rank": %d, ' % int(rank[:9]) if rank.isdigit() else "{"
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
        self.descriptor = os.open(os.environ["WLB_HOOK_FILE"], flags, 0o600)
        about = os.fstat(self.descriptor)
        if not stat.S_ISREG(about.st_mode) or about.st_uid != os.geteuid():
            raise OSError("WLB_HOOK_FILE is not a regular file of this user")
        self.file = (about.st_dev, about.st_ino)
        restarts = os.environ.get("TORCHELASTIC_RESTART_COUNT", "")
        if restarts.isdigit() and int(restarts[:9]) > 0:
            self.write('"launcher_restarts": %d' % int(restarts[:9]))

    def turn_off(self):
        self.is_on = False
        for undo in self.undo:
            try:
                undo()
            except Exception:
                pass
        self.undo = []

    def has_room(self):
        """Whether one more line may be written in this second. It is asked for first: what is noted takes longer."""
        second = int(time.time())
        if second != self.second:
            self.second, self.lines = second, 0
        self.lines += 1
        return self.lines <= LINES_MOST

    def write(self, fields):
        """A line of these fields, which are JSON without its braces."""
        line = ('%s"time": %.6f, %s}\n' % (self.head, time.time(), fields)).encode("ascii")
        self.bytes += len(line)
        about = os.fstat(self.descriptor)
        is_ours = (about.st_dev, about.st_ino) == self.file  # not where the program has closed it, and opened another file
        if not is_ours or self.bytes > BYTES_MOST or os.write(self.descriptor, line) < len(line):
            self.turn_off()

    def note(self, function, *args):
        """Calls the function, if the hook is on, so that nothing is raised."""
        if not self.is_on:
            return
        try:
            if self.pid != os.getpid():
                self.begin()
            function(*args)
        except Exception:
            self.turn_off()


_hook = _Hook()


def _on_host(value):
    """The number, if reading it waits for no device; None otherwise."""
    if isinstance(value, (bool, int, float)):
        return value if isinstance(value, float) or abs(value) <= INTEGER_MOST else float(value)
    torch = sys.modules["torch"]
    if type(value) in (torch.Tensor, torch.nn.Parameter):
        return value.item() if value.is_cpu and value.numel() == 1 else None
    if type(value).__module__ == "numpy" and getattr(value, "size", 0) == 1:
        return float(value)
    return None


def _own_step(optimizer):
    """The number of steps in the state of the optimizer, or None."""
    group = optimizer.param_groups[0]
    if type(group.get("step")) is int:  # of apex and Transformer Engine
        return group["step"]
    for parameter in group["params"][:PARAMETERS_LOOKED_AT]:
        state = optimizer.state.get(parameter)
        step = _on_host(state["step"]) if state and "step" in state else None
        if step is not None:
            return int(step)
    return None


def _is_made_up():
    """Whether torch calls `step` to have the state made into which a checkpoint is loaded: nothing is trained."""
    frame = sys._getframe(3)
    for _ in range(4):
        if frame is None:
            return False
        if frame.f_code.co_name == "_init_optim_state":
            return True
        frame = frame.f_back
    return False


def _is_counted(optimizer):
    counted = _hook.optimizer and _hook.optimizer()
    if counted is not None and counted is not optimizer:
        _hook.others += 1
        if _hook.others <= OTHERS_MOST:
            return False
    if counted is not optimizer:
        _hook.optimizer = weakref.ref(optimizer)
    _hook.others = 0
    return True


def _note_step(optimizer):
    if (_hook.steps == 0 and _is_made_up()) or not _is_counted(optimizer):
        return
    _hook.steps += 1
    if not _hook.has_room():
        return
    step = _own_step(optimizer)
    _hook.write('"step_of_attempt": %d' % _hook.steps if step is None else '"step": %d' % step)


def _after_step(optimizer, args, kwargs):
    _hook.note(_note_step, optimizer)


def _note_scalar(tag, value, step):
    if not _hook.has_room():
        return
    number, step = _on_host(value), _on_host(step)
    if number is not None and isinstance(tag, str):
        name = tag[:64].encode("utf-8", "replace").decode("utf-8")
        fields = json.dumps({name: number} if step is None else {"step": step, name: number})
        _hook.write(fields[1:-1])


def _size_of(path):
    """Bytes of a file; None of a folder, whose files would have to be looked at one by one."""
    try:
        about = os.stat(path)
    except OSError:
        return None
    return about.st_size if stat.S_ISREG(about.st_mode) else None


def _note_save(target, begin_s):
    took_s = time.time() - begin_s
    if isinstance(target, (str, os.PathLike)) and _hook.has_room():
        size = _size_of(target)
        path = os.fsencode(os.path.abspath(os.fspath(target)))[:4000].decode("utf-8", "replace")
        fields = '"checkpoint": %s, "save_s": %.6f' % (json.dumps(path), took_s)
        if size is not None:
            fields += ', "bytes": %d' % size
        # A save on another thread, as in DCP's async_save, does not stop training.
        _hook.write(fields if threading.get_ident() == threading.main_thread().ident else fields + ', "stall_s": 0')


def _wrap(original, note):
    """The function, behind which `note` is told of its arguments and of its begin. It is the same for who looks at it."""
    @functools.wraps(original)
    def wrapped(*args, **kwargs):
        begin_s = time.time()
        result = original(*args, **kwargs)
        _hook.note(note, begin_s, args, kwargs)
        return result
    return wrapped


def _argument(args, kwargs, place, name):
    return args[place] if len(args) > place else kwargs.get(name)


def _is_free(number):
    """Whether the program neither catches nor ignores the signal, as the kernel says: faulthandler and C code tell nobody else."""
    with open("/proc/self/status", encoding="ascii", errors="replace") as file:
        masks = [int(line.split()[1], 16) for line in file if line.startswith(("SigCgt:", "SigIgn:"))]
    return len(masks) == 2 and not (masks[0] | masks[1]) >> (number - 1) & 1


def _announce_stacks():
    """Announces a handler that writes the stacks of Python, as coordinator/stacks/announced_handler.h has it. Nobody sends the signal by
    itself: that is done for `wlb stacks` and verdicts, where there is no py-spy."""
    import faulthandler
    import fcntl
    if not _is_free(STACKS_SIGNAL):
        return
    descriptor = os.memfd_create("wlb-stacks-%d" % STACKS_SIGNAL)
    fcntl.fcntl(descriptor, fcntl.F_SETFL, os.O_APPEND)
    faulthandler.register(STACKS_SIGNAL, descriptor, all_threads=True)
    _hook.undo += [lambda: faulthandler.unregister(STACKS_SIGNAL), lambda: os.close(descriptor)]


def take_torch(torch, remove_finder):
    _hook.undo.append(remove_finder)
    handle = sys.modules["torch.optim.optimizer"].register_optimizer_step_post_hook(_after_step)
    _hook.undo.append(handle.remove)
    save = _wrap(torch.serialization.save, lambda begin_s, args, kwargs: _note_save(_argument(args, kwargs, 1, "f"), begin_s))
    if torch.save is torch.serialization.save:
        torch.save = torch.serialization.save = save  # where pickle looks for it
    try:
        _announce_stacks()
    except Exception:  # steps are followed all the same
        pass


def take_tensorboard(writer, remove_finder):
    writer.SummaryWriter.add_scalar = _wrap(
        writer.SummaryWriter.add_scalar,
        lambda begin_s, args, kwargs: _note_scalar(_argument(args, kwargs, 1, "tag"), _argument(args, kwargs, 2, "scalar_value"),
                                                   _argument(args, kwargs, 3, "global_step")))


def _folder(kwargs):
    return kwargs.get("checkpoint_id") or getattr(kwargs.get("storage_writer"), "path", None)


def take_checkpoint(saver, remove_finder):
    saver.save = _wrap(saver.save, lambda begin_s, args, kwargs: _note_save(_folder(kwargs), begin_s))
