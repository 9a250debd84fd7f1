"""A scontrol process that answers many queries: to start one takes three times as long as a query, and tests poll often."""
import os
import re
import select
import subprocess
import threading
import time

ANSWER_MOST_S = 60
# The output of this command follows that of the query before it. A scontrol with readline echoes the commands.
END = "version"
VERSION = re.compile(rb"^(scontrol: )?slurm[a-z-]* \d+\.\d+.*\n(scontrol: )?\Z", re.MULTILINE)


class Scontrol:
    def __init__(self, cwd):
        self.cwd, self.process, self.lock = cwd, None, threading.RLock()

    def job(self, job_id, env):
        """Returns what `scontrol -o show job` prints; None where it fails, or does not answer within ANSWER_MOST_S."""
        with self.lock:
            try:
                if self.process is None:
                    self.process = subprocess.Popen(["scontrol", "-o"], cwd=self.cwd, env=env, stdin=subprocess.PIPE,
                                                    stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
                os.write(self.process.stdin.fileno(), f"show job {job_id}\n{END}\n".encode())
                answer = self.read()
            except OSError:
                answer = None
            if answer is None:
                self.close()
            return answer if answer and "JobId=" in answer else None

    def read(self):
        text, until = b"", time.monotonic() + ANSWER_MOST_S
        while not VERSION.search(text):
            ready, _, _ = select.select([self.process.stdout], [], [], max(until - time.monotonic(), 0))
            part = os.read(self.process.stdout.fileno(), 65536) if ready else b""
            if not part:
                return None
            text += part
        return text.decode(errors="replace")

    def close(self):
        """Ends the process, also while another thread waits for its answer. The next query starts another one, which reads
        slurm.conf anew."""
        process = self.process
        if process:
            process.kill()  # so that who has the lock releases it
        with self.lock:
            process, self.process = self.process, None
            if process:
                process.kill()
                process.communicate()
