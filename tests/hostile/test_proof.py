#!/usr/bin/env python3
"""An impostor binds wlbd's port while wlbd is away, and answers root's clients with forged replies."""
import hashlib
import http.server
import json
import shutil
import signal
import time

import hostile
import training  # of tests/cluster, which hostile adds to the path
from harness import wait_for
from hostile import HostileTest, Munge

ITERATIONS = 300


def sha(text):
    return hashlib.sha256(text if isinstance(text, bytes) else text.encode()).hexdigest()


def own_proof(munge, handler, status, body):
    """A proof as docs/api.md has it, but by the impostor's account."""
    credential = handler.headers.get("Authorization", "")[len("MUNGE "):]
    text = f"reply\n{sha(credential)}\n{status}\n{handler.command}\n{handler.path}\n{sha(body)}"
    return "MUNGE " + munge.encode(sha(text).encode())


def answer_to(path):
    kind = path.rsplit("/", 1)[1]
    return {"report": {"order": "end", "reason": "the impostor says so"}, "records": {"acked_seq": 10**9},
            "attempts": {"decision": "stop", "state": "failed", "reason": "the impostor says so"},
            "end": {"run_id": "1", "state": "failed"}, "runs": {"run_id": "666", "state": "failed"}}.get(kind, {})


def impersonate(place, kind):
    """Serves until it is ended. kind: no proof, one of its own account, or refusals."""
    munge = Munge(place.munge_socket)

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def answer(self):
            self.rfile.read(int(self.headers.get("Content-Length", 0)))
            status = 409 if kind == "refusals" else 200
            body = json.dumps({"error": "no", "acked_seq": 10**9} if kind == "refusals" else answer_to(self.path)).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            if kind != "no proof":
                self.send_header("WLB-Proof", own_proof(munge, self, status, body))
            self.end_headers()
            self.wfile.write(body)

        do_GET = do_POST = answer

        def log_message(self, *_):
            pass

    http.server.ThreadingHTTPServer.daemon_threads = True
    http.server.ThreadingHTTPServer.request_queue_size = 100
    http.server.ThreadingHTTPServer(place.address, Handler).serve_forever()


class Impostor(HostileTest):
    def serve_falsely(self, kind, seconds):
        impostor = self.begin_attack(impersonate, kind)
        time.sleep(seconds)
        impostor.end()
        self.assertTrue(impostor.queue.empty(), "the impostor could not serve")

    def test_orders_of_an_impostor(self):
        """A training run of root's goes through three impostors without noticing; so does his run with another command."""
        self.watch.stop()
        training.make_input(self.cluster.work)
        words = " ".join(training.arguments(iterations=ITERATIONS))
        job = self.cluster.sbatch(f"wlb run -- wlb-worker {words} --metrics-file m.jsonl", "--wlb-layout=auto",
                                  "--ntasks-per-node=1", nodes=2)
        metrics = self.cluster.work / "m.jsonl"
        wait_for("step 5", lambda: metrics.exists() and metrics.read_text().count("\n") >= 5, 60)
        self.daemon.stop(signal.SIGKILL)
        for kind in ("no proof", "own proof", "refusals"):
            self.serve_falsely(kind, 2.5)
        self.daemon.start()
        self.same_pid = self.daemon.pid
        self.watch.start()
        self.assertEqual(self.cluster.wait_job(job, 120), "COMPLETED", self.cluster.output(job))
        run = wait_for("the end", lambda: (lambda r: r if r.get("state") == "complete" else None)(self.shown(job)), 30)
        self.assertEqual(len(run["attempts"]), 1)
        steps = self.cluster.sql("select s.step from steps s join runs r on r.id = s.run_id "
                                 f"where r.name = '{job}' order by s.step")
        self.assertEqual([int(step) for step, in steps], list(range(1, ITERATIONS + 1)))
        shutil.rmtree(self.cluster.work / ".wlb", ignore_errors=True)


if __name__ == "__main__":
    hostile.main()
