"""Passes connections on to wlbd, and keeps what clients send: for tests of what is reported."""
import json
import re
import socket
import socketserver
import threading


class Pass(socketserver.BaseRequestHandler):
    """A connection: what the client sends is kept in the server's `sent`."""

    def handle(self):
        with socket.create_connection(self.server.target) as service:
            back = threading.Thread(target=self.copy, args=(service, self.request, None), daemon=True)
            back.start()
            sent = bytearray()
            self.server.sent.append(sent)
            self.copy(self.request, service, sent)
            back.join()

    @staticmethod
    def copy(source, target, kept):
        try:
            while data := source.recv(65536):
                if kept is not None:
                    kept.extend(data)
                target.sendall(data)
            target.shutdown(socket.SHUT_WR)
        except OSError:
            pass  # one of them has closed the connection


class Tap(socketserver.ThreadingTCPServer):
    """Listens on `port` of this machine until it is closed."""

    daemon_threads = True

    def __init__(self, target):
        """target: HOST:PORT of wlbd."""
        super().__init__(("127.0.0.1", 0), Pass)
        host, port = target.rsplit(":", 1)
        self.target, self.sent = (host, int(port)), []
        self.port = self.server_address[1]
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def close(self):
        self.shutdown()
        self.server_close()

    def reports(self):
        """Bodies of the reports that have come, in the order of each connection."""
        return [body for sent in self.sent for path, body in requests(bytes(sent)) if path.endswith("/report")]


def requests(data):
    """(path, body) of each whole request of a connection."""
    while b"\r\n\r\n" in data:
        head, data = data.split(b"\r\n\r\n", 1)
        length = int((re.search(rb"(?i)^content-length: *(\d+)", head, re.M) or [None, b"0"])[1])
        if len(data) < length:
            return
        body, data = data[:length], data[length:]
        yield head.split()[1].decode(), json.loads(body) if body else None
