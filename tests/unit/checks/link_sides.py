#!/usr/bin/env python3
"""Sides of a measured link that are not what they should be, for check_node_test.

    link_sides.py serve old|impostor|count|leave FILE   writes its port to FILE and answers one peer
    link_sides.py connect old PORT                      a peer of the version before
    link_sides.py connect idle PORT N FILE              N connections that say nothing; writes FILE, and waits for its end
"""
import contextlib
import hashlib
import os
import pathlib
import socket
import sys
import time

VERSION = b"WLBLINK2"
BLOCK_BYTES = 1 << 20


def proof(label, server, peer):
    token = os.environ["WLB_CHECK_NODE_TOKEN"].encode()
    return hashlib.sha256(label + b"\n" + token + b"\n" + server + peer).hexdigest().encode()


def receive(connection, count):
    data = b""
    while len(data) < count:
        part = connection.recv(count - len(data))
        if not part:
            sys.exit(f"closed after {len(data)} of {count} bytes")
        data += part
    return data


def serve_old(connection):
    connection.sendall(os.urandom(32))
    with contextlib.suppress(ConnectionResetError):  # the peer leaves what it does not understand
        connection.recv(200)


def serve_leave(connection):
    connection.sendall(VERSION + os.urandom(32))
    receive(connection, 8 + 32 + 64)


def serve_impostor(connection):
    """Has no token, and accepts everybody."""
    serve_leave(connection)
    connection.sendall(b"A" + 64 * b"0")
    connection.recv(1)


def serve_count(connection):
    """Has the token, and takes one block more than there was."""
    nonce = os.urandom(32)
    connection.sendall(VERSION + nonce)
    hello = receive(connection, 8 + 32 + 64)
    assert hello[40:] == proof(b"LINK PEER", nonce, hello[8:40])
    connection.sendall(b"A" + proof(b"LINK SERVER", nonce, hello[8:40]))
    for _ in range(100):
        connection.sendall(receive(connection, 8))
    blocks = 0
    while receive(connection, 1) == b"B":
        receive(connection, BLOCK_BYTES)
        blocks += 1
    connection.sendall((blocks + 1).to_bytes(8, "big"))
    connection.recv(1)


def serve(kind, file):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        pathlib.Path(file).write_text(str(listener.getsockname()[1]), encoding="ascii")
        with listener.accept()[0] as connection:
            {"old": serve_old, "impostor": serve_impostor, "count": serve_count, "leave": serve_leave}[kind](connection)


def connect_old(port):
    with socket.create_connection(("127.0.0.1", port)) as connection:
        nonce = receive(connection, 32)
        connection.sendall(proof(b"LINK", nonce, b""))
        receive(connection, 8)  # the rest of the greeting
        assert connection.recv(1) == b"", "it was accepted"


def connect_idle(port, count, file):
    connections = [socket.create_connection(("127.0.0.1", port)) for _ in range(int(count))]
    pathlib.Path(file).touch()
    time.sleep(60)
    del connections


if __name__ == "__main__":
    side, kind, *words = sys.argv[1:]
    if side == "serve":
        serve(kind, *words)
    else:
        {"old": connect_old, "idle": connect_idle}[kind](int(words[0]), *words[1:])
