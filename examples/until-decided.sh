#!/bin/sh
# Runs a test until it is decided whether it passes at least 90 % of the time. The decision is wrong with a chance of at
# most 0.01, although the script checks after each run.
#
#   examples/until-decided.sh COMMAND [ARGUMENT…]
#
# Exit code: 0 if it passes often enough, 1 if not, 3 if undecided after 2,000 runs.
set -u
if [ $# -eq 0 ]; then
    echo "usage: $0 COMMAND [ARGUMENT...]" >&2
    exit 2
fi
if ! command -v "$1" >/dev/null; then
    echo "$0: program not found: $1" >&2
    exit 2
fi
ascertain=${ASCERTAIN:-ascertain}
successes=0
trials=0
while [ "$trials" -lt 2000 ]; do
    trials=$((trials + 1))
    if "$@" >/dev/null 2>&1; then successes=$((successes + 1)); fi
    "$ascertain" judge "$successes/$trials" --at-least 90% --error 0.01 --quiet
    verdict=$?
    if [ "$verdict" -ne 3 ]; then break; fi
done
"$ascertain" judge "$successes/$trials" --at-least 90% --error 0.01
exit "$verdict"
