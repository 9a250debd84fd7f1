#!/usr/bin/env python3
"""Relays the frames of a port of a switch through an interface that it makes, each after a delay, and loses a share of
them. Usage: link_relay.py PORT INTERFACE DELAY_MS LOSS_PERCENT

Runs in the network namespace of the switch until a signal ends it; its interface then disappears. A frame may hold
several packets that the kernel has not divided yet, and a checksum that it has not computed yet: the header that both
ends put before a frame says so, and is relayed with it.
"""
import collections
import fcntl
import os
import random
import select
import socket
import struct
import sys
import time

# Of linux/if_tun.h, linux/if_ether.h and linux/if_packet.h.
TUNSETIFF = 0x400454CA
IFF_TAP, IFF_NO_PI, IFF_VNET_HDR = 0x2, 0x1000, 0x4000
ETH_P_ALL = 3
SOL_PACKET, PACKET_VNET_HDR, PACKET_IGNORE_OUTGOING = 263, 15, 23
SO_SNDBUFFORCE, SO_RCVBUFFORCE = 32, 33

FRAME_BYTES_MOST = 1 << 17
FRAMES_HELD_MOST = 20000  # a relay that cannot keep up loses frames, as a switch does
BUFFER_BYTES = 1 << 22


def open_interface(name):
    interface = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(interface, TUNSETIFF, struct.pack("16sH22x", name.encode(), IFF_TAP | IFF_NO_PI | IFF_VNET_HDR))
    return interface


def open_port(name):
    port = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
    port.setsockopt(SOL_PACKET, PACKET_VNET_HDR, 1)
    port.setsockopt(SOL_PACKET, PACKET_IGNORE_OUTGOING, 1)
    for option in (SO_SNDBUFFORCE, SO_RCVBUFFORCE):
        port.setsockopt(socket.SOL_SOCKET, option, BUFFER_BYTES)
    port.setblocking(False)
    port.bind((name, ETH_P_ALL))
    return port


class Direction:
    """From one end to the other."""

    def __init__(self, source, target, delay_s, loss):
        self.source, self.target, self.delay_s, self.loss = source, target, delay_s, loss
        self.frames = collections.deque()  # each with the time at which it is due

    def receive(self):
        try:
            frame = os.read(self.source, FRAME_BYTES_MOST)
        except OSError:  # the port is down
            return
        if random.random() >= self.loss and len(self.frames) < FRAMES_HELD_MOST:
            self.frames.append((time.monotonic() + self.delay_s, frame))

    def send(self):
        now_s = time.monotonic()
        while self.frames and self.frames[0][0] <= now_s:
            try:
                os.write(self.target, self.frames.popleft()[1])
            except OSError:
                pass  # the end is down or full: the frame is lost

    def wait_s(self):
        return max(0, self.frames[0][0] - time.monotonic()) if self.frames else None


def main(port_name, interface_name, delay_ms, loss_percent):
    port, interface = open_port(port_name), open_interface(interface_name)
    ends, delay_s, loss = (port.fileno(), interface), float(delay_ms) / 1000, float(loss_percent) / 100
    directions = {source: Direction(source, target, delay_s, loss) for source, target in (ends, ends[::-1])}
    while True:
        waits_s = [wait_s for wait_s in (direction.wait_s() for direction in directions.values()) if wait_s is not None]
        readable, _, _ = select.select(ends, (), (), min(waits_s, default=None))
        for end in readable:
            directions[end].receive()
        for direction in directions.values():
            direction.send()


if __name__ == "__main__":
    main(*sys.argv[1:])
