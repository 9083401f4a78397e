#!/usr/bin/env bash
# Prepares this machine for one or more groups of make targets: demo, test, sanitize,
# fuzz, tidy, bench.  What is there already is left alone, so a second run takes no time
# and needs no network.
set -euo pipefail
cd "$(dirname "$0")/.."

PYTHON=${PYTHON:-python3}
VENV=${VENV:-.venv}
CC=${CC:-cc}
CXX=${CXX:-c++}

# --- Debian packages --------------------------------------------------------------
# Each need is tested by what is used of it and not by the package's name: a compiler
# or a library that came from elsewhere is as good.

missing=()

need() { # need PACKAGES COMMAND…: the packages are missing if the command fails
    local packages=$1
    shift
    if ! "$@" >/dev/null 2>&1; then
        # shellcheck disable=SC2206  # several packages in one word
        missing+=($packages)
    fi
}

links() { echo 'int main(void) { return 0; }' | "$1" -x "$2" "${@:3}" -o /dev/null -; }
has_header() { echo "#include <$1>" | "$CC" -E "${@:2}" - ; }
has_cmocka() {
    printf '#include <%s>\n' stdarg.h stddef.h stdint.h setjmp.h cmocka.h | "$CC" -E -
}
has_python() { "$PYTHON" -c 'import sys; sys.exit(sys.version_info < (3, 9))'; }
has_venv() { [ -x "$VENV/bin/python" ] || "$PYTHON" -c 'import ensurepip, venv'; }
has_python_header() {
    local include
    include=$("$PYTHON" -c 'import sysconfig; print(sysconfig.get_path("include"))')
    [ -f "$include/Python.h" ]
}
clang_runtime() { # the package with libFuzzer has clang's version in its name
    local version
    version=$(apt-cache depends clang 2>/dev/null | sed -n 's/.*Depends: clang-\([0-9]*\)$/\1/p')
    [ -z "$version" ] || echo "libclang-rt-$version-dev"
}

find_missing() {
    missing=()
    need python3 has_python
    need "gcc libc6-dev" links "$CC" c
    need "python3-venv" has_venv
    local group
    for group in "$@"; do
        case $group in
        demo) ;;
        test | sanitize)
            need libcmocka-dev has_cmocka
            need pkg-config command -v pkg-config
            need g++ links "$CXX" c++
            if [ "$group" = test ]; then
                need python3-dev has_python_header
            else
                need "libasan8 libubsan1" links "$CC" c -fsanitize=address,undefined
                need libtsan2 links "$CC" c -fsanitize=thread
            fi
            ;;
        fuzz)
            need "clang $(clang_runtime)" links clang c -fsanitize=fuzzer-no-link,address
            ;;
        tidy)
            need clang-tidy command -v clang-tidy
            ;;
        bench)
            need liblttng-ust-dev has_header lttng/tracepoint.h
            need lttng-tools command -v lttng
            need valgrind command -v valgrind
            ;;
        *)
            echo "tools/setup.sh: unknown group '$group'" >&2
            exit 2
            ;;
        esac
    done
}

install_missing() {
    local -a as_root=()
    if [ "$(id -u)" -ne 0 ]; then
        as_root=(sudo -n)
    fi
    if ! command -v apt-get >/dev/null || ! "${as_root[@]}" true 2>/dev/null; then
        echo "stepwatch needs these Debian packages, which only root can install:" \
            "${missing[*]}." >&2
        exit 1
    fi
    echo "Installing ${missing[*]}"
    local log
    log=$(mktemp)
    local -a apt=("${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -qq)
    # The lists of a fresh machine are empty and those of an old one name packages that
    # are gone, so they are fetched, but only now that something is to be installed.
    if ! { "${apt[@]}" update && "${apt[@]}" install -y --no-install-recommends \
        "${missing[@]}"; } >"$log" 2>&1; then
        tail -n 20 "$log" >&2
        rm -f "$log"
        echo "Installing ${missing[*]} failed." >&2
        exit 1
    fi
    rm -f "$log"
}

# --- Virtual environment ----------------------------------------------------------

# A stamp holds what was installed from: another Python or other requirements make it
# out of date.
fill_venv() { # fill_venv NAME: installs tools/requirements-NAME.txt
    local stamp=$VENV/.stamp-$1 want
    want=$(
        "$PYTHON" -c 'import sys; print(sys.version_info[:2], sys.base_prefix)'
        cat tools/requirements-*.txt
    )
    if [ -f "$stamp" ] && [ "$(cat "$stamp")" = "$want" ]; then
        return
    fi
    if ! [ -x "$VENV/bin/python" ] || ! "$VENV/bin/python" -c 'import pip' 2>/dev/null ||
        [ "$("$VENV/bin/python" -c 'import sys; print(sys.base_prefix, sys.version_info[:2])')" != \
            "$("$PYTHON" -c 'import sys; print(sys.base_prefix, sys.version_info[:2])')" ]; then
        echo "Creating $VENV"
        "$PYTHON" -m venv --clear "$VENV"
    fi
    echo "Installing tools/requirements-$1.txt into $VENV"
    "$VENV/bin/python" -m pip install --quiet --quiet --disable-pip-version-check \
        -r "tools/requirements-$1.txt"
    echo "$want" >"$stamp"
}

# Two makes at once must not fill one environment.
exec 9>".setup.lock"
if command -v flock >/dev/null; then
    flock 9
fi

find_missing "$@"
if [ ${#missing[@]} -gt 0 ]; then
    install_missing
    find_missing "$@"
    if [ ${#missing[@]} -gt 0 ]; then
        echo "After their installation these are still not usable: ${missing[*]}." >&2
        exit 1
    fi
fi

fill_venv build
for group in "$@"; do
    if [ "$group" != demo ]; then
        fill_venv dev
        break
    fi
done
