#!/usr/bin/env python3
"""What a client may take of wlbd before and after it has proved who it is: memory, connections, descriptors, log lines."""
import json
import os
import pathlib
import re
import signal
import socket
import threading
import time

import harness
import test_wlbd_api
from harness import wait_for

MIB = 1 << 20


class HttpTest(test_wlbd_api.ApiTest):
    nodes = 1

    @property
    def pid(self):
        return int((self.cluster.dir / "run/wlbd.pid").read_text(encoding="utf-8").split()[0])

    def rss(self):
        text = pathlib.Path(f"/proc/{self.pid}/status").read_text(encoding="utf-8")
        return int(re.search(r"VmRSS:\s+(\d+) kB", text).group(1)) * 1024

    def descriptors(self):
        return len(os.listdir(f"/proc/{self.pid}/fd"))

    def connect(self, data=b""):
        host, port = self.api.address.split(":")
        link = socket.create_connection((host, int(port)), timeout=10)
        self.addCleanup(link.close)
        if data:
            link.sendall(data)
        return link

    def ask(self, data):
        """(status, whole reply) of raw bytes; None when the connection was closed without one."""
        link = self.connect(data)
        text = b""
        while b"\r\n\r\n" not in text:
            more = link.recv(65536)
            if not more:
                return None, text
            text += more
        return int(text.split()[1]), text

    def munged(self):
        return int((self.cluster.dir / "run/munged.pid").read_text(encoding="utf-8").split()[0])

    def health(self):
        return self.api.send("GET", "/healthz")[0]


class BeforeProof(HttpTest):
    def test_body_is_not_held_before_the_credential_is_accepted(self):
        before = self.rss()
        head = b"POST /v1/runs HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % (8 * MIB)
        links = []

        def send():
            link = self.connect()
            link.settimeout(1)
            links.append(link)
            try:
                link.sendall(head + b"x" * (8 * MIB - 1))
            except OSError:
                pass  # closed before all of it was sent

        threads = [threading.Thread(target=send) for _ in range(60)]
        for thread in threads:
            thread.start()
        most = 0
        while any(thread.is_alive() for thread in threads):
            most = max(most, self.rss())
            time.sleep(0.01)
        self.assertLess(max(most, self.rss()) - before, 40 * MIB)
        self.assertEqual(self.health(), 200)

    def test_oldest_unproved_connection_gives_way(self):
        half = b"GET /v1/runs HTTP/1.1\r\nHost: x\r\n"
        links = [self.connect(half) for _ in range(1100)]
        wait_for("the first of them to be closed", lambda: self.is_closed(links[0]), 10)
        self.assertFalse(self.is_closed(links[-1]))
        self.assertEqual(self.health(), 200)

    def test_a_request_whose_credential_is_checked_does_not_give_way(self):
        """munged answers late, and others only connect meanwhile."""
        credential = self.api.credential("GET", "/v1/runs", b"")
        os.kill(self.munged(), signal.SIGSTOP)
        try:
            link = self.connect(f"GET /v1/runs HTTP/1.1\r\nHost: x\r\nAuthorization: MUNGE {credential}\r\n\r\n".encode())
            others = [self.connect() for _ in range(1100)]
            wait_for("the first of the others to be closed", lambda: self.is_closed(others[0]), 10)
        finally:
            os.kill(self.munged(), signal.SIGCONT)
        self.assertIn(b" 200 ", link.recv(65536))

    @staticmethod
    def is_closed(link):
        link.setblocking(False)
        try:
            return link.recv(1) == b""
        except BlockingIOError:
            return False
        except ConnectionResetError:
            return True

    def test_ambiguous_lengths_are_refused(self):
        for head in (b"Content-Length: 2\r\nContent-Length: 2", b"Content-Length: 2\r\ncontent-length: 40",
                     b"Content-Length: 0\r\nContent-Length: 2", b"Content-Length: 2\r\nTransfer-Encoding: chunked",
                     b"Transfer-Encoding: chunked"):
            status, text = self.ask(b"POST /v1/runs HTTP/1.1\r\nHost: x\r\n" + head + b"\r\n\r\n{}")
            self.assertEqual(status, 400, head)
            self.assertIn(b"Connection: close", text, head)

    def test_refusal_of_a_long_body_can_be_read(self):
        body = b" " * (9 * MIB)
        path = "/v1/runs/1/records"
        status, text = self.api.send("POST", path, body, self.api.credential("POST", path, body))
        self.assertEqual(status, 413, text)
        path = "/v1/runs/1/report"
        body = b" " * (2 * MIB)
        status, text = self.api.send("POST", path, body, self.api.credential("POST", path, body))
        self.assertEqual(status, 413, text)


def request(target="/healthz", method="GET", version="HTTP/1.1", headers=("Host: x",), body=b""):
    return "\r\n".join([f"{method} {target} {version}", *headers, "", ""]).encode() + body


def arguments(count):
    return "&".join(f"a{number}=1" for number in range(count))


def filler(most_bytes, count):
    return [f"X-{number}: {'f' * (most_bytes // count)}" for number in range(count)]


# Statuses that a request may be answered with; None: or its connection ends without an answer.
REQUESTS = (
    (request("/v1/runs?" + arguments(64)), {401}),
    (request("/v1/runs?" + arguments(65)), {414}),
    (request("/v1/runs?" + arguments(245)), {414}),
    (request("/v1/runs?" + arguments(3000)), {414}),
    (request("/healthz?" + "&" * 5000), {414}),
    (request("/healthz?" + "a" * 8000 + arguments(60)), {414}),
    (request("/" + "a" * 9000), {414}),
    (request("/" + "a" * 9000, "POST", headers=("Host: x", "Content-Length: 2"), body=b"{}"), {414}),
    (request("/" + "a" * 16200, headers=("Host: x", *filler(500, 50))), {414}),
    (request("/" + "a" * 100000), {414, 431, None}),
    (request("/v1/runs?&&&&"), {400}),
    (request("/v1/runs?"), {401}),
    (request("/v1/runs?limit=%zz&%%%=1"), {400, 401}),
    (request("/%zz%00"), {400, 404}),
    (request("http://x/healthz"), {200}),
    (request("http://[::1:bad/healthz"), {400}),
    (request("*", "OPTIONS"), {405}),
    (request("healthz"), {400, 404}),
    (request(headers=("Host: x", *filler(15000, 1))), {200}),
    (request(headers=("Host: x", *filler(17000, 1))), {431}),
    (request(headers=("Host: x", *filler(20000, 400))), {431}),
    (request(headers=("Host: x", *filler(10, 1000))), {431}),
    (request(headers=("Host: x", "Cookie: " + "; ".join(f"c{number}=1" for number in range(1000)))), {431, None}),
    (request(headers=("Host: x", "no colon")), {400}),
    (request(headers=("Host: x", ": no name")), {200, 400}),
    (request(headers=("Host: x", " folded: header")), {200, 400}),
    (request(headers=()), {400}),
    (request(version="HTTP/1.0", headers=()), {200}),
    (request(version="HTTP/9.9"), {400, 505}),
    (b"GET /healthz\r\n\r\n", {400}),
    (b"GET\r\n\r\n", {400, None}),
    (b"GET  /healthz  x y HTTP/1.1\r\nHost: x\r\n\r\n", {400, None}),
    *((request(method=method), {405}) for method in ("HEAD", "OPTIONS", "PUT", "DELETE", "PATCH", "TRACE", "get", "A" * 5000)),
    (request("/v1/runs", "POST", headers=("Host: x", "Content-Length: 2", "Expect: 100-continue"), body=b"{}"), {100, 401}),
    (request("/v1/runs", "POST", headers=("Host: x", "Transfer-Encoding: chunked"), body=b"2\r\n{}\r\n0\r\n\r\n"), {400}),
    *((request("/v1/runs", "POST", headers=("Host: x", f"Content-Length: {length}"), body=b"{}"), {400, 413})
      for length in ("-1", "", "x", "0x2", "2, 2", "9" * 30)),
)


class Answers(HttpTest):
    def test_each_request_is_answered_or_its_connection_ends_at_once(self):
        for data, statuses in REQUESTS:
            with self.subTest(data=data[:80]):
                self.assertIn(self.ask(data)[0], statuses)

    def test_the_refusal_of_a_long_query_says_why(self):
        text = self.ask(request("/v1/runs?" + arguments(245)))[1]
        body = text.split(b"\r\n\r\n", 1)[1]
        self.assertEqual(json.loads(body)["error"],
                         "the query has 245 parameters, and may have 64: docs/api.md lists those of each path")

    def test_heads_about_as_long_as_may_be(self):
        """Whatever its parts are, a head that just does not fit into the memory of a connection is refused."""
        for target in (10, 4000, 8000):
            for count in (1, 50):
                for length in range(15800, 16600, 40):
                    data = request("/healthz?" + "a" * target, headers=("Host: x", *filler(length - target - 9 * count, count)))
                    with self.subTest(target=target, count=count, length=length):
                        self.assertIn(self.ask(data)[0], {400, 431, None})

    def test_requests_in_one_go(self):
        """A refusal follows the answers to those before it, and nothing comes after it."""
        link = self.connect(request() * 3 + request("/healthz?" + arguments(245)) + request())
        text = b""
        while more := link.recv(65536):
            text += more
        self.assertEqual([int(line.split()[1]) for line in text.splitlines() if line.startswith(b"HTTP/1.1 ")], [200] * 3 + [414])


class AfterProof(HttpTest):
    def test_object_of_many_values_stalls_nobody(self):
        body = ("{" + ",".join(f'"k{i:07}":1' for i in range(8 * MIB // 14)) + "}").encode()
        path = "/v1/runs/1/records"
        status, text = self.api.send("POST", path, body, self.api.credential("POST", path, body))
        self.assertEqual(status, 413, text)
        self.assertIn("values", json.loads(text)["error"])

    def test_bodies_of_one_user_are_bounded(self):
        before = self.rss()
        body = b'{"a":"' + b"q" * (7 * MIB) + b'"}'
        path = "/v1/runs/1/records"
        found = []

        def send():
            found.append(self.api.send("POST", path, body, self.api.credential("POST", path, body), 30)[0])

        threads = [threading.Thread(target=send) for _ in range(30)]
        for thread in threads:
            thread.start()
        most = 0
        while any(thread.is_alive() for thread in threads):
            most = max(most, self.rss())
            time.sleep(0.01)
        self.assertEqual(len(found), 30)
        self.assertLessEqual(set(found), {400, 503})
        if "WLB_TEST_WLBD" not in os.environ:  # with sanitizers, memory that was freed is kept aside
            self.assertLess(most - before, 180 * MIB)
            wait_for("the memory to be given back", lambda: self.rss() - before < 20 * MIB, 10)

    def test_client_that_vanishes_while_munged_is_asked(self):
        before = self.descriptors()
        made = [self.api.credential("GET", "/v1/runs", b"") for _ in range(20)]
        os.kill(self.munged(), signal.SIGSTOP)
        try:
            for credential in made:
                self.connect(f"GET /v1/runs HTTP/1.1\r\nHost: x\r\nAuthorization: MUNGE {credential}\r\n\r\n"
                             .encode()).close()
            self.assertEqual(self.health(), 200)
        finally:
            os.kill(self.munged(), signal.SIGCONT)
        wait_for("their connections to be forgotten", lambda: self.descriptors() <= before + 2, 20)
        self.assertEqual(self.api.call("GET", "/v1/runs")[0], 200)


class Descriptors(HttpTest):
    def test_connections_leave_descriptors_for_the_rest(self):
        self.cluster.verb("kill-wlbd")
        self.cluster.run("bash", "-c", f"ulimit -n 300 && {self.cluster.script} start-wlbd --dir {self.cluster.dir}")
        wait_for("wlbd with its database", lambda: self.health() == 200, 10)
        log = self.cluster.dir / "log/wlbd.out"
        before = log.stat().st_size
        links = []
        for _ in range(600):
            try:
                links.append(self.connect())
            except OSError:
                break
        self.assertLess(self.descriptors(), 250)
        self.assertEqual(self.health(), 200)
        time.sleep(2)
        self.assertLess(log.stat().st_size - before, 20000)
        for link in links:
            link.close()
        self.assertEqual(self.api.call("GET", "/v1/runs")[0], 200)


if __name__ == "__main__":
    harness.main()
