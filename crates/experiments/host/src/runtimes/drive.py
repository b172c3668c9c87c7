# Runs one workload in passes, and prints each result with its times. The arguments are the file of the workload, and
# for how many nanoseconds passes are run before the last one; -1 for a single pass.
import sys
import time

try:
    clock = time.perf_counter_ns
except AttributeError:

    def clock():
        return int(time.perf_counter() * 1e9)


def main():
    path, least = sys.argv[1], int(sys.argv[2])
    with open(path) as source:
        text = source.read()
    scope = {"__name__": "workload", "__file__": path}
    exec(compile(text, path, "exec"), scope)
    run = scope["run"]
    begin = clock()
    result = run()
    end = clock()
    # The first pass is printed at once, because it shows where a process that is stopped has been.
    sys.stdout.write("result %s\npass %d %d\n" % (result, end, end - begin))
    sys.stdout.flush()
    passes = []
    total = end - begin
    while least >= 0:
        is_last = total >= least
        begin = clock()
        again = run()
        end = clock()
        if again != result:
            sys.exit("pass %d has the result %s, and the first pass %s" % (len(passes) + 2, again, result))
        passes.append((end, end - begin))
        total += end - begin
        if is_last:
            break
    for each in passes:
        sys.stdout.write("pass %d %d\n" % each)


main()
