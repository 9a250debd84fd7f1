"""Faults of the network of a cluster whose nodes are network namespaces, and what its interfaces have counted.

    with links.cut(3):                    # as if the cable of n3's data link were pulled out
    with links.cut(3, peer=2):            # nothing of n3 reaches n2, and nothing of n2 reaches n3
    with links.cut(3, network="all"):     # from the management network too
    with links.limited(3, mbit=25):
    with links.delayed(3, delay_ms=20, loss_percent=1):

A link is restored at the end of its block, whatever happens there.
"""
import contextlib
import os
import pathlib
import re
import subprocess
import unittest

CAP_NET_ADMIN, CAP_SYS_ADMIN = 12, 21
DATA = "198.19."  # what the addresses of the data network begin with


def may_be_made():
    """Whether this account may make network namespaces."""
    status = pathlib.Path("/proc/self/status").read_text(encoding="ascii", errors="replace")
    capabilities = int(re.search(r"^CapEff:\s*(\w+)$", status, re.MULTILINE)[1], 16)
    return all(capabilities >> number & 1 for number in (CAP_NET_ADMIN, CAP_SYS_ADMIN))


needed = unittest.skipUnless(may_be_made(), "this account may not make network namespaces")


def printed(*command):
    """What a command prints, which may be one of those that a user's PATH lacks."""
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=20,
                          env={**os.environ, "PATH": os.environ["PATH"] + ":/usr/sbin"}).stdout


class Links:
    def __init__(self, cluster):
        self.cluster = cluster
        conf = (cluster.dir / "etc/cluster.conf").read_text(encoding="utf-8")
        self.prefix = "wlb-" + re.search(r"^PORT_BASE=(\d+)$", conf, re.MULTILINE)[1]

    @contextlib.contextmanager
    def fault(self, node, *words):
        try:
            self.cluster.verb(*words)
            yield
        finally:
            self.cluster.verb("restore-link", str(node))

    def cut(self, node, peer=None, network="data"):
        return self.fault(node, "cut-link", f"{node},{peer}" if peer else str(node), "--network", network)

    def limited(self, node, mbit, network="data"):
        return self.fault(node, "limit-link", str(node), "--mbit", str(mbit), "--network", network)

    def delayed(self, node, delay_ms, loss_percent, network="data"):
        return self.fault(node, "delay-link", str(node), "--delay-ms", str(delay_ms), "--loss-percent", str(loss_percent),
                          "--network", network)

    def enter(self, node):
        """The words before a command that runs in the namespace of a node."""
        return ["nsenter", f"--net=/run/netns/{self.prefix}-n{node}", "--"]

    def run(self, node, *command):
        """A command in the namespace of a node; returns what it printed."""
        return printed(*self.enter(node), *command)

    def check_node(self, node, peer, least_gbit_per_s):
        """`wlb check-node` of the data link between two nodes; returns its exit code and what it says."""
        check = [self.cluster.build / "bin/wlb", "check-node"]
        env = {**self.cluster.env, "WLB_CHECK_NODE_TOKEN": "0123456789abcdef"}
        address = re.search(r"inet ([\d.]+)/", self.run(peer, "ip", "-4", "-o", "address", "show", "dev", "data"))[1]
        with subprocess.Popen([*self.enter(peer), *check, "--serve", "0", "--seconds", "30"], stdout=subprocess.PIPE, text=True,
                              env=env) as server:
            port = re.search(r"serving at port (\d+)", server.stdout.readline())[1]
            done = subprocess.run([*self.enter(node), *check, "--only", "links", "--peer", f"{address}:{port}", "--link-gbit-per-s",
                                   str(least_gbit_per_s)], capture_output=True, text=True, check=False, env=env, timeout=60)
            server.wait(timeout=40)
        return done.returncode, (done.stderr or done.stdout).strip()

    def sent_bytes(self, node, network="data"):
        """What a node has sent on a network, as its interface counts it."""
        for line in self.run(node, "cat", "/proc/net/dev").splitlines():
            name, _, counters = line.partition(":")
            if name.strip() == network:
                return int(counters.split()[8])
        raise AssertionError(f"n{node} has no interface {network}")

    def segments(self, node):
        """How many segments of TCP a node has sent, and how many again."""
        names, values = [line.split() for line in self.run(node, "cat", "/proc/net/snmp").splitlines()
                         if line.startswith("Tcp:")]
        return [int(values[names.index(name)]) for name in ("OutSegs", "RetransSegs")]

    def round_trips_ms(self, node):
        """What TCP has measured, for each connection of a node on the data network."""
        lines = self.run(node, "ss", "-tinOH", "src", DATA + "0.0/16").splitlines()
        return [float(found[1]) for found in (re.search(r"\brtt:([\d.]+)/", line) for line in lines) if found]

    def traces(self):
        """The cluster's namespaces, and its interfaces in the namespace of this host."""
        lines = printed("ip", "netns", "list") + printed("ip", "-brief", "link")
        return [line for line in lines.splitlines() if re.match(rf"{self.prefix}\b", line)]
