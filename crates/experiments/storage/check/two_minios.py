#!/usr/bin/env python3
"""Checks the crossover of two MinIOs behind links of known delay and rate.

Each MinIO runs in its own network namespace. The kernel's token bucket (tc tbf) limits the rate of its answers, and a
small forwarder delays each request. The crossover that follows from these settings is
(D1 - D2) / (1/B2 - 1/B1). The script shares no code with the experiment.

Needs root, `ip`, `tc`, `minio` in the PATH, and the path of `ascertain` as its argument:

    sudo python3 two_minios.py target/release/ascertain [RUNS]
"""

import asyncio
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.request

# Delay in seconds and rate in bytes per second of each store.
STORES = [(0.030, 40e6), (0.008, 12e6)]


def forward(delay_s, listen, target):
    """Forwards connections, and delays the bytes of requests. Runs in the namespace of the store."""

    async def delayed(reader, writer):
        queue = asyncio.Queue()

        async def send():
            while True:
                due, data = await queue.get()
                await asyncio.sleep(max(0, due - time.monotonic()))
                if not data:
                    writer.close()
                    return
                writer.write(data)

        sender = asyncio.create_task(send())
        while True:
            data = await reader.read(1 << 16)
            await queue.put((time.monotonic() + delay_s, data))
            if not data:
                return await sender

    async def back(reader, writer):
        while data := await reader.read(1 << 18):
            writer.write(data)
            await writer.drain()
        writer.close()

    async def serve(reader, writer):
        import socket
        writer.get_extra_info('socket').setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        there, to = await asyncio.open_connection(*target)
        await asyncio.gather(delayed(reader, to), back(there, writer), return_exceptions=True)

    async def run():
        server = await asyncio.start_server(serve, *listen)
        await server.serve_forever()

    asyncio.run(run())


def sh(line):
    subprocess.run(line, shell=True, check=True)


def start(number, delay_s, rate, folder, processes):
    """Starts a MinIO behind its link, and returns the address of its bucket."""
    name, net = f'store{number}', f'10.77.{number}'
    sh(f'ip netns add {name}')
    sh(f'ip link add veth{number} type veth peer name far{number} netns {name}')
    sh(f'ip addr add {net}.1/24 dev veth{number} && ip link set veth{number} up')
    inside = f'ip netns exec {name}'
    sh(f'{inside} ip addr add {net}.2/24 dev far{number} && {inside} ip link set far{number} up')
    sh(f'{inside} ip link set lo up')
    sh(f'{inside} tc qdisc add dev far{number} root tbf rate {int(rate * 8)}bit burst 10k latency 200ms')
    data = os.path.join(folder, name)
    os.makedirs(os.path.join(data, 'bucket'))
    quiet = dict(stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    processes.append(subprocess.Popen([*inside.split(), 'minio', 'server', '--address', '127.0.0.1:9000', data], **quiet))
    arguments = [sys.executable, __file__, 'forward', str(delay_s), f'{net}.2']
    processes.append(subprocess.Popen([*inside.split(), *arguments], **quiet))
    for _ in range(100):
        try:
            urllib.request.urlopen(f'http://{net}.2:9100/minio/health/ready', timeout=1)
            return f's3+http://{net}.2:9100/bucket/check'
        except OSError:
            time.sleep(0.1)
    sys.exit(f'MinIO {number} does not answer')


def crossovers(result):
    """Returns the intervals between neighbouring ranges with different winners."""
    for remark in result['remarks']:
        found = remark['remark_code']
        if found['code'] == 'crossover':
            decided = [one for one in found['ranges'] if one['winner']]
            pairs = zip(decided, decided[1:])
            return [(one['to_bytes'], other['from_bytes']) for one, other in pairs if one['winner'] != other['winner']]
    return []


def main():
    ascertain, runs = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 10
    (delay1, rate1), (delay2, rate2) = STORES
    expected = (delay1 - delay2) / (1 / rate2 - 1 / rate1)
    print(f'expected crossover: {expected / 1e3:.0f} kB')
    folder, processes, right = tempfile.mkdtemp(), [], 0
    environment = {name: value for name, value in os.environ.items() if 'proxy' not in name.lower()}
    environment |= {'AWS_ACCESS_KEY_ID': 'minioadmin', 'AWS_SECRET_ACCESS_KEY': 'minioadmin', 'XDG_STATE_HOME': folder}
    try:
        urls = [start(number + 1, *store, folder, processes) for number, store in enumerate(STORES)]
        for number in range(runs):
            command = [ascertain, 'run', 'storage', '--variants', 'crossover', '--at', f'pair={urls[0]},{urls[1]}',
                       '--at', 'smallest=4000', '--at', 'largest=4000000', '--at', 'operation=download',
                       '--no-claims', '--max-time', '40s', '--format', 'json', '--no-evidence', '-q']
            done = subprocess.run(command, capture_output=True, text=True, env=environment)
            if not done.stdout:
                sys.exit(done.stderr)
            found = crossovers(json.loads(done.stdout))
            is_right = len(found) == 1 and found[0][0] <= expected <= found[0][1]
            right += is_right
            print(f'run {number + 1}: {found} {"right" if is_right else "WRONG"}', flush=True)
        left = sum(len(files) for place, _, files in os.walk(folder) if 'ascertain-' in place and '.minio.sys' not in place)
        print(f'{right} of {runs} right; {left} files of objects left')
    finally:
        for process in processes:
            process.terminate()
        for number in range(1, len(STORES) + 1):
            subprocess.run(f'ip netns pids store{number} | xargs -r kill; ip netns del store{number}', shell=True)
        shutil.rmtree(folder, ignore_errors=True)
    sys.exit(0 if right * 10 >= runs * 9 else 1)


if __name__ == '__main__':
    if len(sys.argv) > 1 and sys.argv[1] == 'forward':
        forward(float(sys.argv[2]), (sys.argv[3], 9100), ('127.0.0.1', 9000))
    else:
        main()
