"""A scontrol that is kept from one look at a job to the next: to start one takes thrice as long as its answer, and waits look often."""
import os
import re
import select
import subprocess
import time

ANSWER_MOST_S = 60
# The question whose answer ends that of the one before. Where scontrol has readline, it repeats the questions.
END = "version"
VERSION = re.compile(rb"^(scontrol: )?slurm[a-z-]* \d+\.\d+.*\n(scontrol: )?\Z", re.MULTILINE)


class Scontrol:
    def __init__(self, cwd):
        self.cwd, self.process = cwd, None

    def job(self, job_id, env):
        """What `scontrol -o show job` prints; None where it fails, or does not answer."""
        try:
            if self.process is None:
                self.process = subprocess.Popen(["scontrol", "-o"], cwd=self.cwd, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                                stderr=subprocess.DEVNULL)
            os.write(self.process.stdin.fileno(), f"show job {job_id}\n{END}\n".encode())
            answer = self.read()
        except OSError:
            answer = None
        if answer is None:
            self.close()
            return None
        return answer if "JobId=" in answer else None

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
        """The next one knows a configuration that has changed."""
        process, self.process = self.process, None
        if process:
            process.kill()
            process.communicate()
