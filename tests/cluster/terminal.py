"""A command of `wlb`, such as top, on a pseudo-terminal."""
import fcntl
import os
import pty
import re
import select
import signal
import struct
import termios
import time

import harness
from harness import wait_for

CODES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


class Terminal:
    """A process of `wlb` COMMAND whose terminal this is; `text` is what it has written so far."""

    def __init__(self, cluster, *words, command="top", columns=80, rows=24, **env):
        self.text = ""
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            try:
                time.sleep(0.1)  # until the size is set
                os.chdir(cluster.work)
                os.execvpe("wlb", ["wlb", command, *map(str, words)], cluster.env | {"TERM": "xterm"} | env)
            finally:
                os._exit(127)
        self.resize(columns, rows)
        self.modes = termios.tcgetattr(self.fd)

    def resize(self, columns, rows):
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def read(self, timeout_s):
        """Reads what there is; False at the end."""
        if not select.select([self.fd], [], [], timeout_s)[0]:
            return True
        try:
            data = os.read(self.fd, 65536)
        except OSError:  # EIO: the program has closed it
            return False
        self.text += data.decode()
        return bool(data)

    def wait_text(self, pattern, timeout_s=15, after=0):
        """Waits for a match after that many characters; returns its end."""
        def find():
            self.read(0.05)
            return re.compile(pattern).search(self.text, after)
        return wait_for(f"/{pattern}/ on the terminal", find, timeout_s, 0).end()

    def send(self, keys):
        os.write(self.fd, keys.encode())

    def end(self, timeout_s=10):
        """Reads to the end; the status as os.waitpid has it."""
        end = time.monotonic() + timeout_s
        while self.read(0.1):
            if time.monotonic() > end:
                os.kill(self.pid, signal.SIGKILL)
                raise harness.Failed(f"it did not end; it wrote {self.text[-500:]!r}")
        return os.waitpid(self.pid, 0)[1]

    def pages(self):
        """The lines of each page, without codes."""
        live = self.text.split("\x1b[?1049l")[0]
        return [[CODES.sub("", line) for line in page.replace("\r", "").split("\n")] for page in live.split("\x1b[H")[1:]]
