"""Appends records to the file that WLB_METRICS_FILE names: one line of JSON and one write each. follow/metrics_line.h has the format.

Several processes may append to one file. A record that cannot be written is lost: after ERRORS_MOST of them nothing is written any
more, and no more than BYTES_MOST by one process.
"""
import json
import os
import stat
import time

VALUES_MOST = 64  # of a record; the reader takes no more
NAME_MOST = 64  # characters of a name
PATH_MOST = 4000
INTEGER_MOST = 1 << 53  # beyond it a double has no exact value
ENTRIES_MOST = 1000  # of a folder whose size is measured
MEASURE_MOST_S = 0.1
ERRORS_MOST = 10
BYTES_MOST = 1 << 30


class _File:
    def __init__(self, path):
        self.path = path
        self.descriptor = -1
        self.file = None
        self.errors = 0
        self.bytes = 0
        self.is_torn = False  # the last line was not written whole

    def _open(self):
        """A regular file of this user: opening anything else, a FIFO say, could wait for another process."""
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
        descriptor = os.open(self.path, flags, 0o600)
        about = os.fstat(descriptor)
        if not stat.S_ISREG(about.st_mode) or about.st_uid != os.geteuid():
            os.close(descriptor)
            raise OSError("not a regular file of this user")
        self.descriptor = descriptor
        self.file = (about.st_dev, about.st_ino)

    def _is_open(self):
        """Whether the descriptor is that of the file: a program may close all, and open others."""
        if self.descriptor < 0:
            return False
        about = os.fstat(self.descriptor)
        return (about.st_dev, about.st_ino) == self.file

    def append(self, line):
        if self.errors >= ERRORS_MOST or self.bytes + len(line) > BYTES_MOST:
            return
        try:
            if not self._is_open():
                self._open()
            line = b"\n" + line if self.is_torn else line
            self.is_torn = os.write(self.descriptor, line) < len(line)
            self.bytes += len(line)
        except OSError:
            self.errors += 1
            self.descriptor = -1  # not closed: it may be another file's by now


_file = None


def _number(value):
    """A number that JSON can have, or None. Texts are none, also those that look like one."""
    if isinstance(value, (str, bytes, bytearray)) or value is None:
        return None
    if isinstance(value, int) and -INTEGER_MOST <= value <= INTEGER_MOST:
        return int(value)
    return float(value)


def _text(text):
    """As JSON can have it: a name of a file may have bytes that are not UTF-8, and then has single surrogates here."""
    return text.encode("utf-8", "replace").decode("utf-8")


def _append(fields, others):
    global _file
    path = os.environ.get("WLB_METRICS_FILE")
    if not path:
        return
    if _file is None or _file.path != path:
        _file = _File(path)
    record = {"time": time.time()}
    rank = os.environ.get("RANK", "")
    if rank.isdigit():
        record["rank"] = int(rank[:9])
    for name, value in list(fields.items()) + list(others.items())[:VALUES_MOST]:
        try:
            number = value if name == "checkpoint" else _number(value)
        except Exception:  # of the value's own conversion
            number = None
        if number is not None:
            record[_text(str(name)[:NAME_MOST])] = number
    _file.append(json.dumps(record).encode("ascii") + b"\n")


def quiet(function):
    """A method of a callback that raises nothing: its trainer would end."""
    def call(*args, **kwargs):
        try:
            function(*args, **kwargs)
        except Exception:
            pass
    return call


def log(step=None, loss=None, tokens=None, **others):
    """Tells what is known of a step: its number, loss, tokens of all ranks in this step, and any other numbers by name."""
    try:
        _append({"step": step, "loss": loss, "tokens": tokens}, others)
    except Exception:  # nothing here may stop a training run
        pass


def _size_of(path):
    """Bytes of a file, or of all files of a folder; None where that cannot be found out soon: a folder may have a file of each rank."""
    until_s = time.monotonic() + MEASURE_MOST_S
    size, entries, folders = 0, 0, []
    about = os.stat(path)
    if not stat.S_ISDIR(about.st_mode):
        return about.st_size
    folders.append(path)
    while folders:
        with os.scandir(folders.pop()) as listed:
            for entry in listed:
                entries += 1
                if entries > ENTRIES_MOST or time.monotonic() > until_s:
                    return None
                if entry.is_dir(follow_symlinks=False):
                    folders.append(entry.path)
                else:
                    size += entry.stat(follow_symlinks=False).st_size
    return size


def checkpoint(path, step=None, took_s=None, stall_s=None):
    """Tells that a checkpoint is complete: a file or a folder, from which the run can go on behind that step. took_s: from its begin until
    now; stall_s: the part of it in which training stood still, where that is not all of it."""
    try:
        name = os.path.abspath(os.fspath(path))
        if not isinstance(name, str) or len(name) > PATH_MOST or not os.environ.get("WLB_METRICS_FILE"):
            return
        try:
            size = _size_of(name)
        except OSError:
            size = None
        _append({"checkpoint": _text(name), "step": step, "save_s": took_s, "stall_s": stall_s, "bytes": size}, {})
    except Exception:
        pass
