#!/usr/bin/env bash
# Prepares this machine for one or more groups of make targets: demo, test, extra,
# sanitize, fuzz, tidy, bench, valgrind, cross.  What is there already is left alone, so a second
# run takes no time and needs no network.
#
# PYTHONS names the further Pythons to build and test for ("3.12 3.13"); unset, all that
# are here with their headers; empty, none.
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
    need libsqlite3-dev has_header sqlite3.h
    need "python3-venv" has_venv
    local group
    for group in "$@"; do
        case $group in
        extra) ;;
        demo) need python3-dev has_python_header ;;
        test | sanitize)
            need libcmocka-dev has_cmocka
            need pkg-config command -v pkg-config
            need g++ links "$CXX" c++
            need python3-dev has_python_header
            if [ "$group" = sanitize ]; then
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
        valgrind)
            need valgrind command -v valgrind
            ;;
        cross)
            need "gcc-aarch64-linux-gnu libc6-dev-arm64-cross" \
                links aarch64-linux-gnu-gcc c
            need qemu-user command -v qemu-aarch64
            ;;
        *)
            echo "tools/setup.sh: unknown group '$group'" >&2
            exit 2
            ;;
        esac
    done
}

as_root=()
if [ "$(id -u)" -ne 0 ]; then
    as_root=(sudo -n)
fi
can_install() { command -v apt-get >/dev/null && "${as_root[@]}" true 2>/dev/null; }
apt() { "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -qq "$@"; }

install_missing() {
    if ! can_install; then
        echo "stepwatch needs these Debian packages, which only root can install:" \
            "${missing[*]}." >&2
        exit 1
    fi
    echo "Installing ${missing[*]}"
    local log
    log=$(mktemp)
    # The lists of a fresh machine are empty and those of an old one name packages that
    # are gone, so they are fetched, but only now that something is to be installed.
    if ! { apt update && apt install -y --no-install-recommends "${missing[@]}"; } \
        >"$log" 2>&1; then
        tail -n 20 "$log" >&2
        rm -f "$log"
        echo "Installing ${missing[*]} failed." >&2
        exit 1
    fi
    rm -f "$log"
}

# Packages that are good to have. What cannot be installed is asked for once, said, and left.
preloads() { [ -z "$(env LD_PRELOAD="$1" /bin/true 2>&1)" ]; }
install_mallocs() {
    local stamp=$VENV/.stamp-mallocs
    missing=()
    need libjemalloc2 preloads libjemalloc.so.2
    need libtcmalloc-minimal4 preloads libtcmalloc_minimal.so.4
    if [ ${#missing[@]} -eq 0 ] || [ -f "$stamp" ]; then
        return
    fi
    touch "$stamp"
    if ! can_install || ! { apt -o Acquire::http::Timeout=20 update &&
        apt install -y --no-install-recommends "${missing[@]}"; } >/dev/null 2>&1; then
        echo "NOT INSTALLED: ${missing[*]}; the tests that use them are SKIPPED." >&2
    fi
}

# --- Virtual environments ---------------------------------------------------------

# A stamp holds what was installed from: another Python or other requirements make it
# out of date.
wanted() { # wanted PYTHON NAME…: what the stamp says
    "$1" -c 'import sys; print(sys.version_info[:2], sys.base_prefix)'
    local name
    for name in "${@:2}"; do
        cat "tools/requirements-$name.txt"
    done
}

is_current() { # is_current STAMP TEXT
    [ -f "$1" ] && [ "$(cat "$1")" = "$2" ]
}

install_into() { # install_into ENVIRONMENT ARGUMENTS…: pip of the main environment does it
    "$VENV/bin/python" -m pip --python "$1/bin/python" install --quiet --quiet \
        --disable-pip-version-check "${@:2}"
}

fill_venv() { # fill_venv NAME: installs tools/requirements-NAME.txt, or fails
    local stamp=$VENV/.stamp-$1 want
    want=$(wanted "$PYTHON" build "$1")
    if is_current "$stamp" "$want"; then
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

# Packages that are good to have: all at once, and where that fails one by one, so that
# one that does not exist for this Python or cannot be reached does not keep away the
# rest.  Nothing is compiled: most of it is never imported.
# fill_optional ENVIRONMENT NAME WHY OPTIONS…: installs tools/requirements-NAME.txt
fill_optional() {
    local venv=$1 name=$2 why=$3 want line lost=()
    want=$(wanted "$venv/bin/python" "$name")
    if is_current "$venv/.stamp-$name" "$want"; then
        return
    fi
    echo "Installing tools/requirements-$name.txt into $venv; this may take minutes"
    if ! install_into "$venv" --no-compile "${@:4}" -r "tools/requirements-$name.txt" 2>/dev/null
    then
        while read -r line; do
            case $line in '' | '#'*) continue ;; esac
            if ! install_into "$venv" --no-compile "${@:4}" --retries 1 "$line" 2>/dev/null; then
                lost+=("${line%%;*}")
            fi
        done <"tools/requirements-$name.txt"
    fi
    if [ ${#lost[@]} -gt 0 ]; then
        echo "NOT INSTALLED in $venv: ${lost[*]}; $why." >&2
    else
        echo "$want" >"$venv/.stamp-$name"
    fi
}

# --- Further Pythons --------------------------------------------------------------

OLDEST=9
NEWEST=14

version_of() { "$1" -c 'import sys; print("%d.%d" % sys.version_info[:2])'; }

# Prints the path of a CPython of this version that an extension can be built for.
find_python() { # find_python VERSION
    local candidate
    for candidate in $(printf '%s\n' \
        "${PYENV_ROOT:-$HOME/.pyenv}/versions/$1".*/bin/python3 | sort -rV) \
        $(command -v "python$1" || true); do
        if [ -x "$candidate" ] && "$candidate" - "$1" 2>/dev/null <<'EOF'; then
import os, sys, sysconfig, venv

header = os.path.join(sysconfig.get_path("include"), "Python.h")
version = "%d.%d" % sys.version_info[:2]
# An ABI with flags (debug, free threads) is not what users have.
usable = sys.implementation.name == "cpython" and not sys.abiflags and os.path.exists(header)
if version != sys.argv[1] or not usable:
    sys.exit(1)
print(os.path.realpath(sys.executable))
EOF
            return
        fi
    done
}

make_venv() { # make_venv ENVIRONMENT PYTHON VERSION: with what the tests need, or one sentence
    local venv=$1 log
    log=$(mktemp)
    if { "$2" -m venv --without-pip --clear "$venv" &&
        install_into "$venv" -r tools/requirements-test.txt; } >"$log" 2>&1; then
        wanted "$venv/bin/python" test >"$venv/.stamp-test"
    else
        rm -rf "$venv"
        echo "Python $3 is left out, for its virtual environment could not be made:" \
            "$(tail -n 1 "$log")" >&2
    fi
    rm -f "$log"
}

# An environment .venv-3.X for each further Python: where there is one, there is an
# extension for it and its tests run.
make_further_venvs() {
    local minor version venv python main
    main=$(version_of "$PYTHON")
    for minor in $(seq $OLDEST $NEWEST); do
        version=3.$minor
        venv=.venv-$version
        if [ "$version" = "$main" ]; then
            rm -rf "$venv"
            continue
        fi
        case " ${PYTHONS-$version} " in *" $version "*) ;; *) continue ;; esac
        if [ -x "$venv/bin/python" ] &&
            is_current "$venv/.stamp-test" "$(wanted "$venv/bin/python" test)"; then
            continue
        fi
        python=$(find_python "$version")
        if [ -z "$python" ]; then
            rm -rf "$venv"
            continue
        fi
        echo "Creating $venv"
        make_venv "$venv" "$python" "$version" &
    done
    wait
}

# An environment .venv-bench-3.X with the packages that the benchmarks compare with.
make_bench_venvs() {
    local version venv python
    for python in "$PYTHON" .venv-3.1[123]/bin/python; do
        [ -x "$(command -v "$python")" ] || continue
        version=$(version_of "$python")
        venv=.venv-bench-$version
        case $version in 3.1[123]) ;; *) continue ;; esac
        if ! [ -x "$venv/bin/python" ]; then
            "$python" -m venv --without-pip --clear "$venv"
        fi
        fill_optional "$venv" bench "bench shows them as not measured"
    done
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
    case $group in
    demo) ;;
    extra)
        fill_optional "$VENV" test-extra "the tests that use them are SKIPPED"
        fill_optional "$VENV" test-alone "the tests that use them are SKIPPED" --no-deps
        ;;
    test | sanitize)
        fill_venv dev
        install_mallocs
        make_further_venvs
        ;;
    bench)
        fill_venv dev
        make_further_venvs
        make_bench_venvs
        ;;
    *)
        fill_venv dev
        ;;
    esac
done
