#!/usr/bin/env python3
"""Attacks with connections: memory before proof, descriptors, slow and malformed requests, credentials of other requests."""
import random
import socket
import time

import hostile
from hostile import BOTH, MIB, Caller, HostileTest, close_all, head_of, read_status

HELD_S = 2  # while the watch measures


def hold_bodies(place, count, credential_of, more=()):
    """Opens connections that each announce 8 MB and send 7; returns how many bytes of the last wlbd read."""
    links, taken, part = [], 0, b"x" * 65536
    for _ in range(count):
        try:
            link = place.connect(5)
            links.append(link)
            link.sendall(head_of("POST", "/v1/runs", 8 * MIB, credential_of(place), more))
            link.settimeout(0.3)
            taken = 0
            while taken < 7 * MIB:
                taken += link.send(part)
        except OSError:
            continue  # refused, or not read: both are right
    time.sleep(HELD_S)
    close_all(links)
    return taken


def no_credential(_place):
    return None


def bogus_credential(_place):
    return "MUNGE:AwQFAAB" + "A" * 200 + ":"


def credential_for_another_path(place):
    return Caller(place).credential("GET", "/v1/runs")


def own_bodies(place, count):
    """Valid requests of one user: bodies whose credential is right, sent but for the last byte."""
    caller, links = Caller(place), []
    body = b'{"x":"' + b"y" * (8 * MIB - 100) + b'"}'
    for _ in range(count):
        try:
            link = place.connect(5)
            links.append(link)
            link.sendall(head_of("POST", "/v1/runs/1/records", len(body),
                                 caller.credential("POST", "/v1/runs/1/records", body)))
            link.settimeout(0.3)
            link.sendall(body[:-1])
        except OSError:
            continue
    time.sleep(HELD_S)
    close_all(links)


class Memory(HostileTest):
    def test_bodies_before_proof(self):
        for credential in (no_credential, bogus_credential, credential_for_another_path):
            with self.subTest(credential=credential.__name__):
                self.attack(hold_bodies, 60, credential)

    def test_bodies_of_many_connections(self):
        self.attack(hold_bodies, 100, no_credential, uid=BOTH, processes=3)

    def test_bodies_of_one_user(self):
        self.attack(own_bodies, 40)

    def test_expect_continue(self):
        self.attack(hold_bodies, 30, no_credential, ("Expect: 100-continue",))


# ---- descriptors -----------------------------------------------------------------------------------------------------

def idle_connections(place, count):
    """As many as it gets, held for a while."""
    links = []
    for _ in range(count):
        try:
            links.append(place.connect(1))
        except OSError:
            time.sleep(0.01)
    time.sleep(HELD_S)
    close_all(links)
    return len(links)


def proved_connections(place, count):
    """Each has made one good request, and stays."""
    callers = [Caller(place, 5) for _ in range(count)]
    for caller in callers:
        caller.get("/v1/runs?limit=1")
    time.sleep(HELD_S)
    for caller in callers:
        caller.close()


class Descriptors(HostileTest):
    descriptors = 512

    def test_idle_connections(self):
        self.attack(idle_connections, 400, uid=BOTH, processes=3)

    def test_proved_connections(self):
        self.attack(proved_connections, 300, uid=BOTH, processes=2)


# ---- what is sent ------------------------------------------------------------------------------------------------------

def dribble(place, count):
    links = [place.connect() for _ in range(count)]
    sent = head_of("POST", "/v1/runs", 4096) + b"x" * 4096
    for at in range(0, 60):
        for link in list(links):
            try:
                link.send(sent[at:at + 1])
            except OSError:
                links.remove(link)
        time.sleep(0.08)
    close_all(links)


def half_closed(place, count):
    """Requests whose sender has ended its side; and connections that end in the middle of one."""

    caller = Caller(place)
    for number in range(count):
        with place.connect() as link:
            request = head_of("GET", "/v1/runs?limit=1", 0, caller.credential("GET", "/v1/runs?limit=1"))
            link.sendall(request if number % 2 else request[:number])
            link.shutdown(socket.SHUT_WR)
            link.settimeout(2)
            if number % 2:
                read_status(link)


def pipelined(place, count):
    """Many requests in one go, good ones and bad ones; returns the statuses of the first replies."""
    caller = Caller(place)
    good = [head_of("GET", "/v1/runs?limit=1", 0, caller.credential("GET", "/v1/runs?limit=1")) for _ in range(count)]
    bad = [head_of("GET", "/v1/runs"), b"NONSENSE / HTTP/1.1\r\n\r\n"] * 50
    found = []
    for requests in (good, good[::-1], bad):
        with place.connect(5) as link:
            try:
                link.sendall(b"".join(requests))
                found.append([read_status(link) for _ in range(5)])
            except OSError:
                found.append([])
    return found


MALFORMED = [
    b"", b"\r\n\r\n", b"\0" * 5000, b"\xff\xfe" * 3000, b"GET\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n", b"GET /\r\n\r\n",
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"a" * 500,
    b"GET /" + b"a" * 100000 + b" HTTP/1.1\r\n\r\n", b"GET / HTTP/1.1\r\n" + b"a: b\r\n" * 50000 + b"\r\n",
    b"GET / HTTP/1.1\r\nHost: " + b"h" * 100000 + b"\r\n\r\n", b"GET /v1/runs/%00%2e%2e HTTP/1.1\r\n\r\n",
    b"GET http://[::1:bad/v1/runs HTTP/1.1\r\nHost: x\r\n\r\n", b"GET /v1/runs?limit=%zz&%%% HTTP/1.1\r\nHost: x\r\n\r\n",
    b"DELETE /v1/runs/1 HTTP/1.1\r\nHost: x\r\n\r\n", b"CONNECT a:1 HTTP/1.1\r\nHost: x\r\n\r\n",
    b"POST /v1/runs HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n",
    b"POST /v1/runs HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999999999999999\r\n\r\n",
    b"POST /v1/runs HTTP/1.1\r\nHost: x\r\nContent-Length: 0x10\r\n\r\n{}",
    b"POST /v1/runs HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{}",
    b"POST /v1/runs HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nContent-Length: 2\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
    b"POST /v1/runs HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n{}",
    b"POST /v1/runs HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n" + b"1\r\nx\r\n" * 20000,
    b"GET / HTTP/1.1\r\nHost: x\r\n folded: header\r\n\r\n", b"GET / HTTP/1.1\r\n: no name\r\n\r\n",
]


def malformed(place):
    for data in MALFORMED:
        with place.connect(3) as link:
            try:
                link.sendall(data)
                link.settimeout(0.15)
                read_status(link)
            except OSError:
                continue


def random_bytes(place, count, seed):
    """Good requests with some bytes changed."""
    source, caller = random.Random(seed), Caller(place)
    for _ in range(count):
        text = bytearray(head_of("POST", "/v1/runs", 30, caller.credential("POST", "/v1/runs", b"x" * 30)) + b"{" * 30)
        for _ in range(source.randint(1, 12)):
            text[source.randrange(len(text))] = source.randrange(256)
        with place.connect(3) as link:
            try:
                link.sendall(text)
                link.settimeout(0.05)
                read_status(link)
            except OSError:
                continue


def two_lengths(place):
    """Status of a request with a good credential and two lengths that agree, or differ."""
    caller, body, found = Caller(place), b'{"job_id":4294967295}', []
    for other in (len(body), len(body) + 1):
        with place.connect(5) as link:
            link.sendall(head_of("POST", "/v1/runs", len(body), caller.credential("POST", "/v1/runs", body),
                                 (f"Content-Length: {other}",)) + body)
            found.append(read_status(link))
    return found


class Senders(HostileTest):
    def test_slow(self):
        self.attack(dribble, 200)

    def test_half_closed(self):
        self.attack(half_closed, 200, processes=2)

    def test_pipelined(self):
        first, *_ = self.attack(pipelined, 300)[0]
        self.assertEqual(first[:1], [200])

    def test_malformed(self):
        self.attack(malformed)
        self.attack(random_bytes, 300, 7, uid=BOTH, processes=2)

    def test_two_lengths(self):
        self.assertEqual(self.attack(two_lengths), [[400, 400]])


# ---- credentials -------------------------------------------------------------------------------------------------------

def misused_credentials(place):
    """What each way of misusing a credential is answered."""
    caller = Caller(place)
    used = caller.credential("GET", "/v1/runs?limit=1")
    ways = {"first use": ("GET", "/v1/runs?limit=1", None, used), "replay": ("GET", "/v1/runs?limit=1", None, used),
            "other path": ("GET", "/v1/runs?limit=2", None, caller.credential("GET", "/v1/runs?limit=1")),
            "other method": ("POST", "/v1/runs", {}, caller.credential("GET", "/v1/runs")),
            "other body": ("POST", "/v1/runs", {"job_id": 1}, caller.credential("POST", "/v1/runs", b'{"job_id":2}')),
            "empty": ("GET", "/v1/runs", None, " "), "long": ("GET", "/v1/runs", None, "A" * 9000),
            "not base64": ("GET", "/v1/runs", None, "MUNGE:\xe9\xe9\xe9:".encode().decode("latin-1")),
            "cut": ("GET", "/v1/runs", None, caller.credential("GET", "/v1/runs")[:-9])}
    return {name: caller.call(*way)[0] for name, way in ways.items()}


def flood_of_credentials(place, count):
    caller = Caller(place)
    for _ in range(count):
        caller.call("GET", "/v1/runs", None, "MUNGE:AwQFAABBBB:")


def replayed_in_parallel(place, count):
    """One credential on many connections at once: how many were answered 200."""
    request = head_of("GET", "/v1/runs?limit=1", 0, Caller(place).credential("GET", "/v1/runs?limit=1"))
    links = [place.connect(5) for _ in range(count)]
    for link in links:
        link.sendall(request)
    good = sum(read_status(link) == 200 for link in links)
    close_all(links)
    return good


class Credentials(HostileTest):
    def test_misused(self):
        for uid in BOTH:
            answers = self.attack(misused_credentials, uid=uid)[0]
            self.assertEqual(answers.pop("first use"), 200)
            self.assertEqual({name: status for name, status in answers.items() if status not in (400, 401)}, {})

    def test_replayed_in_parallel(self):
        self.assertEqual(self.attack(replayed_in_parallel, 40), [1])

    def test_flood(self):
        self.attack(flood_of_credentials, 1500, uid=BOTH, processes=3)


if __name__ == "__main__":
    hostile.main()
