# Runs one workload in passes, and prints the result and the times. The arguments are the file of the workload, and for
# how many nanoseconds passes are run before the last one; -1 for a single pass.
import sys
import time

# Number of passes that are printed from the beginning, and also from the end.
KEPT = 49

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
    if least < 0:
        return
    import math

    # A fast workload has more passes than anybody reads, so only the first and the last passes are kept.
    early, late = [], []
    count, logarithms = 0, 0.0
    total = end - begin
    while True:
        # Two passes between the first and the last show whether the passes are steady.
        is_last = total >= least and count >= 2
        begin = clock()
        again = run()
        end = clock()
        if again != result:
            sys.exit("pass %d has the result %s, and the first pass %s" % (count + 2, again, result))
        total += end - begin
        if is_last:
            break
        count += 1
        logarithms += math.log(max(end - begin, 1))
        kept = early if len(early) < KEPT else late
        kept.append((end, end - begin))
        if len(late) > 2 * KEPT:
            del late[:KEPT]
    for each in early + late[-KEPT:] + [(end, end - begin)]:
        sys.stdout.write("pass %d %d\n" % each)
    sys.stdout.write("between %d %r\n" % (count, logarithms))


main()
