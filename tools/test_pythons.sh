#!/usr/bin/env bash
# test_pythons.sh [--main] [--asan | --valgrind] [PYTEST ARGUMENTS…]: the tests of the extension
# with each further Python that tools/setup.sh found, one after the other; --main: with the main
# one too. TEST_BUILD_DIR and PYTHONPATH say which build. --asan: with a build that has ASan;
# --valgrind: under valgrind.
set -euo pipefail
cd "$(dirname "$0")/.."

VENV=${VENV:-.venv}
CC=${CC:-cc}
pythons=()
preload=
wrapper=()
marks="not once"
while [ $# -gt 0 ]; do
    case $1 in
    --main) pythons=("$PWD/$VENV/bin/python") ;;
    --asan) preload=$("$CC" -print-file-name=libasan.so):$("$CC" -print-file-name=libubsan.so) ;;
    --valgrind)
        # Children are programs that the tests start, the compiler among them.
        wrapper=(valgrind --quiet --error-exitcode=9 --trace-children=no --leak-check=no
            --suppressions=tools/valgrind-python.supp)
        marks="not once and not slow"
        ;;
    *) break ;;
    esac
    shift
done
mapfile -t -O ${#pythons[@]} pythons < <(tools/pythons.sh)

failed=()
for python in "${pythons[@]}"; do
    [ -n "$python" ] || continue
    version=$("$python" -c 'import platform; print(platform.python_version())')
    echo "Python $version:"
    if ! LD_PRELOAD=$preload tools/pytest_twice.sh "${wrapper[@]}" "$python" -m pytest -q \
        -m "$marks" tests/python "$@"; then
        failed+=("$version")
    fi
done
if [ ${#failed[@]} -gt 0 ]; then
    echo "The tests of the extension fail with Python ${failed[*]}." >&2
    exit 1
fi
