#!/usr/bin/env python3
"""Compares the request rate and the CPU time of the client with those of awscrt, on MinIO.

Both clients read one object from MinIO over loopback, with the same number of requests in flight, and both sign each
request. The script measures them in turn, five times, and prints the medians. The CPU time is that of all threads of each
client.

Needs `minio` in the PATH, the Python package awscrt, and the path of `ascertain` as its argument:

    python3 awscrt_rate.py target/release/ascertain
"""

import os
import subprocess
import sys
import threading
import time

from common import folder, free_port, median, middle, storage, wait_for

STREAMS, ROUNDS = 16, 5
# Bytes of the object, and the number of requests of a round.
SIZES = {16_000: 6_000, 8_000_000: 150}
KEYS = {'AWS_ACCESS_KEY_ID': 'minioadmin', 'AWS_SECRET_ACCESS_KEY': 'minioadmin'}


def awscrt(port, key, requests, put=None):
    """Reads an object `requests` times, and prints the requests per second and the CPU time of each. Writes `put` first."""
    from awscrt.auth import AwsCredentialsProvider
    from awscrt.http import HttpHeaders, HttpRequest
    from awscrt.io import ClientBootstrap, DefaultHostResolver, EventLoopGroup
    from awscrt.s3 import S3Client, S3RequestType, S3RequestTlsMode, create_default_s3_signing_config

    group = EventLoopGroup(1)
    bootstrap = ClientBootstrap(group, DefaultHostResolver(group))
    provider = AwsCredentialsProvider.new_static(*KEYS.values())
    signing = create_default_s3_signing_config(region='us-east-1', credential_provider=provider)
    client = S3Client(bootstrap=bootstrap, region='us-east-1', signing_config=signing,
                      tls_mode=S3RequestTlsMode.DISABLED, part_size=16 << 20)
    slots, failed, received = threading.Semaphore(STREAMS), [], [0]

    def on_body(chunk, **_):
        received[0] += len(chunk)

    def on_done(error=None, **_):
        if error:
            failed.append(error)
        slots.release()

    def send(method, body=None):
        import io
        headers = HttpHeaders([('host', f'127.0.0.1:{port}')])
        if body is not None:
            headers.add('content-length', str(len(body)))
        request = HttpRequest(method, f'/bucket/{key}', headers, io.BytesIO(body) if body is not None else None)
        kind = S3RequestType.GET_OBJECT if body is None else S3RequestType.PUT_OBJECT
        slots.acquire()
        return client.make_request(type=kind, request=request, on_body=on_body, on_done=on_done)

    if put is not None:
        send('PUT', put).finished_future.result(60)
    # The first requests open the connections.
    for one in [send('GET') for _ in range(STREAMS)]:
        one.finished_future.result(60)
    received[0] = 0
    start, before = time.monotonic(), time.process_time()
    sent = [send('GET') for _ in range(requests)]
    for one in sent:
        one.finished_future.result(60)
    took, cpu = time.monotonic() - start, time.process_time() - before
    assert not failed, failed
    print(requests / took, cpu / requests * 1e6, received[0])


def put(port, size):
    arguments = [sys.executable, os.path.abspath(__file__), 'awscrt', str(port), f'object-{size}', '1', str(size)]
    subprocess.run(arguments, check=True, stdout=subprocess.DEVNULL)


def theirs(port, size, requests, place):
    arguments = [sys.executable, os.path.abspath(__file__), 'awscrt', str(port), f'object-{size}', str(requests)]
    printed = subprocess.run(arguments, capture_output=True, text=True)
    if printed.returncode:
        sys.exit(printed.stderr)
    rate, cpu_us, received = printed.stdout.split()
    assert int(received) == size * requests, f'{received} bytes instead of {size * requests}'
    return float(rate), float(cpu_us)


def ours(ascertain, port, size, requests, place):
    levels = [f'url=s3+http://127.0.0.1:{port}/bucket', f'key=object-{size}', f'concurrency={STREAMS}',
              f'requests={requests}', 'max_requests=1000000000', 'max_mb=1000000000']
    result = storage(ascertain, levels, place, ['--trials', '1'], **KEYS)
    return median(result, 'requests_per_s'), median(result, 'request_cpu') * 1e-3


def main():
    ascertain, port, is_right = sys.argv[1], free_port(), True
    with folder() as place:
        os.makedirs(os.path.join(place, 'data', 'bucket'))
        minio = subprocess.Popen(['minio', 'server', '--quiet', '--address', f'127.0.0.1:{port}', f'{place}/data'],
                                 stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            wait_for(port)
            time.sleep(2)
            for size, requests in SIZES.items():
                put(port, size)
                rounds = [(ours(ascertain, port, size, requests, place), theirs(port, size, requests, place))
                          for _ in range(ROUNDS)]
                (rate, cpu_us), (their_rate, their_cpu_us) = [
                    [middle([one[client][figure] for one in rounds]) for figure in (0, 1)] for client in (0, 1)]
                print(f'{size:9} B: ascertain {rate:7.0f} requests/s with {cpu_us:7.1f} us each, awscrt {their_rate:7.0f} '
                      f'with {their_cpu_us:7.1f} us: {rate / their_rate:.2f} times the rate, '
                      f'{cpu_us / their_cpu_us:.2f} times the CPU time')
                is_right = is_right and rate >= their_rate and cpu_us <= their_cpu_us / 2
        finally:
            minio.terminate()
            minio.wait()
    sys.exit(0 if is_right else 1)


if __name__ == '__main__':
    if len(sys.argv) > 1 and sys.argv[1] == 'awscrt':
        awscrt(int(sys.argv[2]), sys.argv[3], int(sys.argv[4]), os.urandom(int(sys.argv[5])) if sys.argv[5:] else None)
    else:
        main()
