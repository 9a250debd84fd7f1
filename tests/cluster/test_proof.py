#!/usr/bin/env python3
"""Whoever listens on wlbd's port while wlbd is away decides nothing: replies are proved, each for its own request."""
import http.client
import http.server
import json
import subprocess
import threading
import time
import uuid

import harness
import test_wlbd_api
import training
from harness import wait_for

NOBODY = 65534

# What would do most harm, by the end of the request's path.
HARM = {
    "/report": {"order": "end", "reason": "the impostor says so"},
    "/attempts": {"decision": "stop", "state": "failed", "reason": "the impostor says so"},
    "/records": {"acked_seq": 1 << 40},
    "/runs": {"run_id": "4242", "state": "failed"},
    "/end": {"run_id": "4242", "state": "failed"},
}


class Impostor:
    """A server on wlbd's port. `proof(handler, status, body)` makes the header WLB-Proof, or None."""

    def __init__(self, address, answer, proof=lambda *_: None):
        host, port = address.split(":")
        self.asked = []
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def reply(self):
                self.rfile.read(int(self.headers.get("Content-Length", 0)))
                outer.asked.append(self.path)
                body = answer(self)
                header = proof(self, 200, body)
                self.send_response(200)
                if header:
                    self.send_header("WLB-Proof", header)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            do_GET = do_POST = reply

            def log_message(self, *_):
                pass

        http.server.ThreadingHTTPServer.allow_reuse_address = True
        self.server = http.server.ThreadingHTTPServer((host, int(port)), Handler)
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True).start()

    def asked_for(self, end):
        return sum(path.endswith(end) for path in self.asked)

    def stop(self):
        self.server.shutdown()
        self.server.server_close()


def harmful(handler):
    path = handler.path.split("?")[0]
    return next((json.dumps(reply).encode() for end, reply in HARM.items() if path.endswith(end)), b"{}")


class ProofTest(training.TrainingTest):
    @property
    def address(self):
        return self.cluster.env["WLB_COORDINATOR"]

    def proof_of_nobody(self, handler, status, body):
        """A right proof, but for the account that makes it."""
        return harness.prove(self.cluster.dir / "munge/munge.sock", handler.headers["Authorization"], status,
                             handler.command, handler.path, body, NOBODY)[1]

    def impostor(self, answer=harmful, proof=lambda *_: None):
        server = wait_for("wlbd's port", lambda: self.try_impostor(answer, proof), 10)
        self.addCleanup(server.stop)
        return server

    def try_impostor(self, answer, proof):
        try:
            return Impostor(self.address, answer, proof)
        except OSError:
            return None


class Impostors(ProofTest):
    def setUp(self):
        self.cluster.dir.joinpath("munge").chmod(0o755)

    def test_run_goes_on_and_forgets_nothing(self):
        job = self.submit(iterations=200)
        self.wait_step(job, 10)
        self.cluster.verb("kill-wlbd")
        server = self.impostor(proof=self.proof_of_nobody)
        step = self.step_done(job)
        wait_for("reports and records to the impostor",
                 lambda: server.asked_for("/report") > 2 and server.asked_for("/records") > 0, 30)
        self.wait_step(job, step + 20)
        server.stop()
        self.cluster.verb("start-wlbd")
        run = self.finish(job)
        self.check_complete(run, iterations=200)
        self.check_repeats(run, attempts=1)
        self.assertEqual(run["faults"], [])

    def test_job_starts_and_ends_beside_an_impostor(self):
        self.cluster.verb("kill-wlbd")
        server = self.impostor()
        job = self.submit()
        self.assertEqual(self.cluster.wait_job(job), "COMPLETED", self.cluster.output(job))
        self.assertGreater(server.asked_for("/runs"), 0)
        self.assertGreater(server.asked_for("/records"), 0)
        self.assertIn("did not prove that it is wlbd", self.cluster.output(job))
        server.stop()
        self.cluster.verb("start-wlbd")
        wait_for("the records to be taken",
                 lambda: self.cluster.run("wlb", "flush", ".wlb", check=False).returncode == 0, 30)
        self.check_complete(self.cluster.show(job))

    def test_recorded_reply_is_refused(self):
        api = test_wlbd_api.Api(self.cluster)
        link = http.client.HTTPConnection(self.address, timeout=10)
        credential = api.credential("GET", "/v1/runs", b"")
        link.request("GET", "/v1/runs", headers={"Authorization": f"MUNGE {credential}"})
        reply = link.getresponse()
        body, proof = reply.read(), reply.headers["WLB-Proof"]
        link.close()
        self.assertTrue(proof.startswith("MUNGE "))
        self.cluster.verb("kill-wlbd")
        server = self.impostor(lambda _: body, lambda *_: proof)
        try:
            result = self.cluster.run("wlb", "runs", check=False)
            self.assertEqual(result.returncode, 1, result.stdout)
            self.assertIn("did not prove that it is wlbd", result.stderr)
            result = self.cluster.run("wlb", "doctor", check=False)
            self.assertIn("did not prove that it is wlbd", result.stdout)
        finally:
            server.stop()
            self.cluster.verb("start-wlbd")

    def test_another_account_is_named(self):
        result = self.cluster.run("wlb", "runs", check=False, env={"WLB_COORDINATOR_USER": "nobody"})
        self.assertEqual(result.returncode, 1)
        self.assertIn("trusted is nobody", result.stderr)


class Replies(test_wlbd_api.RunningJobs):
    """What wlbd proves, and what it says to those who do not ask for it."""

    def exchange(self, method, path, body=b"", uid=0, **headers):
        """(status, body, payload of the proof or None, uid that made it)."""
        credential = self.api.credential(method, path, body, uid)
        link = http.client.HTTPConnection(self.api.address, timeout=10)
        self.addCleanup(link.close)
        link.request(method, path, body or None, {"Authorization": f"MUNGE {credential}"} | headers)
        reply = link.getresponse()
        text, proof = reply.read(), reply.headers["WLB-Proof"]
        if proof is None:
            return reply.status, text, None
        found = subprocess.run(["unmunge", "-S", self.api.socket], input=proof.split(" ", 1)[1], capture_output=True,
                               text=True, check=True, timeout=10, user=uid).stdout
        wanted, _ = harness.prove(self.api.socket, f"MUNGE {credential}", reply.status, method, path, text)
        self.assertEqual(found.split("\n")[-1], wanted)
        return reply.status, text, proof

    def test_every_reply_but_to_go_on_is_proved(self):
        run = self.new_run()
        attempt, _ = self.ask(run, ["n1", "n2"])
        for method, path, body, status in (
            ("GET", "/v1/runs?limit=1", None, 200),
            ("GET", "/v1/runs/4000000000", None, 404),
            ("POST", f"/v1/runs/{run}/records", {"attempt_id": attempt, "source": "rank0", "first_seq": 5,
                                                 "records": [test_wlbd_api.event(5)]}, 409),
            ("POST", f"/v1/runs/{run}/report", {"attempt_id": attempt, "source": "node", "node": "n1", "rank": 0,
                                                "lost_ranks": [{"rank": 1, "time": 1.0}]}, 200),
            ("POST", f"/v1/runs/{run}/end", {"state": "failed"}, 200),
        ):
            data = json.dumps(body).encode() if body else b""
            found, text, proof = self.exchange(method, path, data)
            self.assertEqual(found, status, text)
            self.assertIsNotNone(proof, path)
        self.assertEqual(self.exchange("GET", "/v1/runs/4000000000", uid=NOBODY)[0], 404)

    def test_to_go_on_is_not_proved(self):
        run = self.new_run()
        attempt, _ = self.ask(run, ["n1", "n2"])
        body = json.dumps({"attempt_id": attempt, "source": "node", "node": "n1", "rank": 0, "lost_ranks": []}).encode()
        status, text, proof = self.exchange("POST", f"/v1/runs/{run}/report", body)
        self.assertEqual((status, json.loads(text), proof), (200, {"order": "continue"}, None))


if __name__ == "__main__":
    harness.main()
