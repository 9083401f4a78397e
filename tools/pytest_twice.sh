#!/usr/bin/env bash
# pytest_twice.sh COMMAND…: runs pytest as COMMAND says; tests that fail are run once more, alone,
# and named. On a machine shared with others a test that looks at time can fail without a reason,
# but not twice in a row; what is wrong fails both times.
set -euo pipefail

cache=$(mktemp -d)
trap 'rm -rf "$cache"' EXIT

if "$@" -o cache_dir="$cache"; then
    exit 0
else
    status=$?
fi
# 1: tests failed. Anything else, an interrupt or an error in the command, stays what it is.
if [ $status -ne 1 ] || ! [ -s "$cache/v/cache/lastfailed" ]; then
    exit $status
fi
echo "FAILED ONCE, running again: $(tr -d '{}\n' <"$cache/v/cache/lastfailed")" >&2
"$@" -o cache_dir="$cache" --last-failed --last-failed-no-failures none
