#!/usr/bin/env python3
"""Compares the request rate and the CPU time of the client with those of h2load, on a public object of nginx.

nginx serves one object over loopback. Both clients use four connections and one thread. The script measures them in
turn, five times, and prints the medians.

Needs nginx, h2load (package nghttp2-client), and the path of `ascertain` as its argument:

    python3 client_cost.py target/release/ascertain
"""

import re
import subprocess
import sys

from common import cpu_of_children_s, folder, free_port, median, middle, nginx, storage, wait_for

STREAMS, ROUNDS = 4, 5
# Bytes of the object, and the number of requests of a round.
SIZES = {16_000: 100_000, 1_000_000: 8_000}


def h2load(url, requests):
    """Returns the requests per second, and the CPU time of each in microseconds."""
    before = cpu_of_children_s()
    command = ['h2load', '--h1', '-t', '1', '-c', str(STREAMS), '-n', str(requests), url]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    cpu_s = cpu_of_children_s() - before
    assert f'{requests} succeeded' in printed, printed
    return float(re.search(r'([\d.]+) req/s', printed)[1]), cpu_s / requests * 1e6


def ours(ascertain, url, requests, place):
    levels = [f'url={url}', f'concurrency={STREAMS}', f'requests={requests}', 'max_requests=1000000000',
              'max_mb=1000000000']
    result = storage(ascertain, levels, place, ['--trials', '1'])
    return median(result, 'requests_per_s'), median(result, 'request_cpu') * 1e-3


def main():
    ascertain, port, is_right = sys.argv[1], free_port(), True
    with folder() as place:
        server = nginx(place, f'127.0.0.1:{port}', {str(size): size for size in SIZES})
        try:
            wait_for(port)
            for size, requests in SIZES.items():
                url = f'http://127.0.0.1:{port}/{size}'
                rounds = [(ours(ascertain, url, requests, place), h2load(url, requests)) for _ in range(ROUNDS)]
                (rate, cpu_us), (their_rate, their_cpu_us) = [
                    [middle([one[client][figure] for one in rounds]) for figure in (0, 1)] for client in (0, 1)]
                print(f'{size:9} B: ascertain {rate:8.0f} requests/s with {cpu_us:6.1f} us each, h2load {their_rate:8.0f} '
                      f'with {their_cpu_us:6.1f} us: {rate / their_rate:.2f} times the rate, '
                      f'{cpu_us / their_cpu_us:.2f} times the CPU time')
                is_right = is_right and rate >= their_rate and cpu_us <= their_cpu_us
        finally:
            server.terminate()
            server.wait()
    sys.exit(0 if is_right else 1)


if __name__ == '__main__':
    main()
