#!/usr/bin/env python3
"""Compares the time to the first byte with a packet capture, on kept and on fresh connections.

nginx runs in a network namespace, behind a link with a delay of `tc netem`. tcpdump captures the packets at the near
end of the link. For a kept connection, the time is from the packet of the request to the first packet of the answer; for
a fresh one, it is from the SYN. The script shares no code with the experiment.

Needs root, `ip`, `tc`, `tcpdump`, nginx, and the path of `ascertain` as its argument:

    sudo python3 first_byte.py target/release/ascertain [DELAY_MS ...]
"""

import os
import struct
import subprocess
import sys
import time

from common import folder, median, middle, nginx, storage, wait_for

HOST, PORT = '10.78.1.2', 8080
# The largest difference that the issue permits.
LIMIT = 0.05


def sh(line):
    subprocess.run(line, shell=True, check=True)


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


def captured(path, is_fresh):
    """Returns the times to the first byte of the whole downloads in a capture."""
    times, begun = [], {}
    for at, source, target, flags, payload in packets(path):
        if target == PORT and flags & 2:
            begun[source] = at
        elif target == PORT and payload:
            if not (is_fresh and source in begun):
                begun[source] = at
        elif source == PORT and payload and target in begun:
            times.append((begun.pop(target), at))
    return [end - start for start, end in times]


def check(ascertain, delay_ms, connection, place):
    sh(f'ip netns exec firstbyte tc qdisc replace dev far78 root netem delay {delay_ms}ms limit 10000')
    capture = os.path.join(place, 'capture')
    options = ['-i', 'near78', '-w', capture, '-s', '128', '-U', '--time-stamp-precision=nano', f'tcp port {PORT}']
    tcpdump = subprocess.Popen(['tcpdump', *options], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    time.sleep(1)
    levels = [f'url=http://{HOST}:{PORT}/file', f'connection={connection}', 'gap_ms=1']
    result = storage(ascertain, levels, place, ['--trials', '100'])
    time.sleep(0.5)
    tcpdump.terminate()
    tcpdump.wait()
    times = captured(capture, connection == 'fresh')
    # A kept connection also carries the small request before each measured one, which has the same time.
    theirs, ours = middle(times) * 1e3, median(result, 'first_byte') * 1e-6
    off = ours / theirs - 1
    print(f'{connection:5} delay {delay_ms} ms: {ours:.3f} ms, capture {theirs:.3f} ms ({len(times)} answers): {off:+.1%}')
    return abs(off) <= LIMIT


def main():
    ascertain, delays_ms = sys.argv[1], [float(one) for one in sys.argv[2:]] or [5, 20]
    with folder() as place:
        sh('ip netns add firstbyte')
        try:
            sh('ip link add near78 type veth peer name far78 netns firstbyte')
            sh('ip addr add 10.78.1.1/24 dev near78 && ip link set near78 up')
            sh(f'ip netns exec firstbyte ip addr add {HOST}/24 dev far78 && ip netns exec firstbyte ip link set far78 up')
            server = nginx(place, f'{HOST}:{PORT}', {'file': 16_000}, ['ip', 'netns', 'exec', 'firstbyte'])
            wait_for(PORT, HOST)
            right = [check(ascertain, delay, connection, place) for delay in delays_ms for connection in ('kept', 'fresh')]
            server.terminate()
            server.wait()
        finally:
            subprocess.run('ip netns pids firstbyte | xargs -r kill; ip netns del firstbyte', shell=True)
    sys.exit(0 if all(right) else 1)


if __name__ == '__main__':
    main()
