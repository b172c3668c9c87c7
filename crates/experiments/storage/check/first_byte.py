#!/usr/bin/env python3
"""Compares the time to the first byte with a packet capture, on kept and on fresh connections.

A small server delays each answer, and tcpdump captures the packets of the loopback interface. For a kept connection, the
time is from the packet of the request to the first packet of the answer; for a fresh one, it is from the SYN. The script
shares no code with the experiment.

Needs root, tcpdump, and the path of `ascertain` as its argument:

    sudo python3 first_byte.py target/release/ascertain [DELAY_MS ...]
"""

import os
import socket
import struct
import subprocess
import sys
import threading
import time

from common import folder, free_port, median, middle, storage, wait_for

# The largest difference that the issue permits.
LIMIT = 0.05


def serve(port, delay_s):
    """Answers each request of each connection after a delay."""
    body = os.urandom(16_000)
    head = b'HTTP/1.1 206 Partial Content\r\nETag: "e"\r\n'

    def answers(connection):
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        request = b''
        while data := connection.recv(1 << 16):
            request += data
            while b'\r\n\r\n' in request:
                one, request = request.split(b'\r\n\r\n', 1)
                time.sleep(delay_s)
                if b'bytes=0-0' in one.lower():
                    length = f'Content-Length: 1\r\nContent-Range: bytes 0-0/{len(body)}\r\n\r\n'
                    connection.sendall(head + length.encode() + body[:1])
                else:
                    length = f'HTTP/1.1 200 OK\r\nETag: "e"\r\nContent-Length: {len(body)}\r\n\r\n'
                    connection.sendall(length.encode() + body)

    with socket.create_server(('127.0.0.1', port), backlog=64) as listener:
        while True:
            threading.Thread(target=answers, args=[listener.accept()[0]], daemon=True).start()


def packets(path):
    """Yields the time, the ports, the flags and the length of the payload of each TCP packet in a capture."""
    with open(path, 'rb') as file:
        data = file.read()
    is_ns = struct.unpack('<I', data[:4])[0] == 0xa1b23c4d
    at = 24
    while at + 16 <= len(data):
        seconds, fraction, stored, _ = struct.unpack('<IIII', data[at:at + 16])
        frame = data[at + 16:at + 16 + stored]
        at += 16 + stored
        ip = frame[14:]
        if len(ip) < 40 or ip[9] != 6:
            continue
        tcp = ip[(ip[0] & 15) * 4:]
        source, target = struct.unpack('>HH', tcp[:4])
        payload = struct.unpack('>H', ip[2:4])[0] - (ip[0] & 15) * 4 - (tcp[12] >> 4) * 4
        yield seconds + fraction * (1e-9 if is_ns else 1e-6), source, target, tcp[13], payload


def captured(path, is_fresh, port):
    """Returns the times to the first byte of the whole downloads in a capture."""
    times, begun = [], {}
    for at, source, target, flags, payload in packets(path):
        if target == port and flags & 2:
            begun[source] = at
        elif target == port and payload:
            if not (is_fresh and source in begun):
                begun[source] = at
        elif source == port and payload and target in begun:
            times.append((begun.pop(target), at))
    return [end - start for start, end in times]


def check(ascertain, delay_ms, connection, place):
    port, capture = free_port(), os.path.join(place, 'capture')
    server = subprocess.Popen([sys.executable, __file__, 'serve', str(port), str(delay_ms / 1e3)])
    try:
        wait_for(port)
        options = ['-i', 'lo', '-w', capture, '-s', '128', '-U', '--time-stamp-precision=nano', f'tcp port {port}']
        tcpdump = subprocess.Popen(['tcpdump', *options], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(1)
        levels = [f'url=http://127.0.0.1:{port}/file', f'connection={connection}', 'gap_ms=1']
        result = storage(ascertain, levels, place, ['--trials', '100'])
        time.sleep(0.5)
        tcpdump.terminate()
        tcpdump.wait()
    finally:
        server.terminate()
        server.wait()
    times = captured(capture, connection == 'fresh', port)
    # A kept connection also carries the small request before each measured one, which has the same delay.
    theirs, ours = middle(times) * 1e3, median(result, 'first_byte') * 1e-6
    off = ours / theirs - 1
    print(f'{connection:5} delay {delay_ms} ms: {ours:.3f} ms, capture {theirs:.3f} ms ({len(times)} answers): {off:+.1%}')
    return abs(off) <= LIMIT


def main():
    ascertain, delays_ms = sys.argv[1], [float(one) for one in sys.argv[2:]] or [5, 20]
    with folder() as place:
        right = [check(ascertain, delay, connection, place) for delay in delays_ms for connection in ('kept', 'fresh')]
    sys.exit(0 if all(right) else 1)


if __name__ == '__main__':
    if len(sys.argv) > 1 and sys.argv[1] == 'serve':
        serve(int(sys.argv[2]), float(sys.argv[3]))
    else:
        main()
