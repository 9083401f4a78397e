#!/usr/bin/env bash
# meson_twice.sh MESON BUILD OPTIONS…: runs the tests of a build folder; those that fail are run once more,
# one by one, and named, as pytest_twice.sh does and for the same reason.
set -euo pipefail

meson=$1 build=$2
shift 2
log=$build/meson-logs/testlog.json

if "$meson" test -C "$build" "$@"; then
    exit 0
fi
# A line has the suite before the name and the test after it: "crash - stepwatch:files".
mapfile -t failed < <("${PYTHON_BIN:-python3}" - "$log" <<'EOF'
import json
import sys

with open(sys.argv[1], encoding="utf-8") as lines:
    for test in map(json.loads, lines):
        if test["is_fail"]:
            print(test["name"].rpartition(" - ")[2])
EOF
)
if [ ${#failed[@]} -eq 0 ]; then
    exit 1
fi
echo "FAILED ONCE, running again: ${failed[*]}" >&2
exec "$meson" test -C "$build" "$@" --num-processes 1 "${failed[@]}"
