"""Helpers that the checks of `storage` share."""

import json
import os
import resource
import socket
import statistics
import subprocess
import sys
import tempfile
import time


def free_port():
    """Returns a port of the loopback interface that no program uses."""
    with socket.socket() as one:
        one.bind(('127.0.0.1', 0))
        return one.getsockname()[1]


def nginx(place, listen, files):
    """Starts nginx, which serves `files`: their names and sizes."""
    os.makedirs(os.path.join(place, 'www'))
    for name, size in files.items():
        with open(os.path.join(place, 'www', name), 'wb') as file:
            file.write(os.urandom(size))
    paths = ' '.join(f'{name}_temp_path {place}/{name};' for name in ('client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'))
    with open(os.path.join(place, 'conf'), 'w') as file:
        file.write(f'daemon off; master_process off; pid {place}/pid; error_log stderr crit; events {{}} http {{ {paths} '
                   f'access_log off; tcp_nopush on; sendfile on; keepalive_requests 1000000000; '
                   f'server {{ listen {listen}; root {place}/www; }} }}\n')
    return subprocess.Popen(['nginx', '-p', place, '-c', f'{place}/conf', '-e', 'stderr'])


def wait_for(port):
    """Waits until a server accepts connections."""
    for _ in range(200):
        try:
            socket.create_connection(('127.0.0.1', port), 1).close()
            return
        except OSError:
            time.sleep(0.1)
    sys.exit(f'no server listens on port {port}')


def environment(folder, **more):
    """Returns the environment of a run: no proxies, and the journals in `folder`."""
    kept = {name: value for name, value in os.environ.items() if 'proxy' not in name.lower()}
    return kept | {'XDG_STATE_HOME': folder} | more


def storage(ascertain, levels, folder, arguments=(), **more):
    """Runs the experiment, and returns its result."""
    at = [part for level in levels for part in ('--at', level)]
    command = [ascertain, 'run', 'storage', '--no-claims', '--no-evidence', '--format', 'json', '-q']
    done = subprocess.run([*command, *at, *arguments], capture_output=True, text=True, env=environment(folder, **more))
    if not done.stdout:
        sys.exit(done.stderr)
    return json.loads(done.stdout)


def median(result, metric):
    """Returns the median of a metric; None if the result does not have it."""
    found = [point['median'] for point in result['points'] if point['metric'] == metric]
    return found[0] if found else None


def cpu_of_children_s():
    """Returns the CPU time of all child processes that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def folder():
    """Creates a temporary folder."""
    return tempfile.TemporaryDirectory(prefix='storage-check-')


def middle(values):
    return statistics.median(values)
