#!/usr/bin/env bash
# Builds the C core for 64-bit ARM on another machine and runs its tests under qemu-user: clock, files, recorder, reader,
# watchers. What only computes is left out, for it is slow there and says the same everywhere.
set -euo pipefail
cd "$(dirname "$0")/.."

meson=${1:?usage: tools/cross.sh MESON}
build=build-aarch64
sysroot=build-aarch64-sysroot

missing=()
command -v aarch64-linux-gnu-gcc >/dev/null || missing+=(gcc-aarch64-linux-gnu)
command -v qemu-aarch64 >/dev/null || missing+=(qemu-user)
if [ ${#missing[@]} -gt 0 ]; then
    echo "make cross needs these Debian packages: ${missing[*]}." >&2
    exit 1
fi

# Libraries of the other architecture are unpacked here: the packages of this machine stay as they are.
make_sysroot() {
    local work options
    work=$(mktemp -d)
    mkdir -p "$work/lists/partial" "$work/cache/archives/partial"
    options=(-qq -o APT::Architecture=arm64 -o APT::Architectures=arm64
        -o Dir::State::Lists="$work/lists" -o Dir::Cache="$work/cache"
        -o Dir::State::status=/dev/null -o APT::Sandbox::User=)
    if (apt-get "${options[@]}" update && cd "$work" && apt-get "${options[@]}" download \
        libcmocka0 libcmocka-dev libsqlite3-0 libsqlite3-dev) >"$work/log" 2>&1; then
        rm -rf "$sysroot"
        for package in "$work"/*.deb; do
            dpkg-deb -x "$package" "$sysroot"
        done
    else
        tail -n 5 "$work/log" >&2
        echo "The libraries for $build cannot be fetched." >&2
    fi
    rm -rf "$work"
}

if ! [ -e "$sysroot/usr/include/cmocka.h" ]; then
    make_sysroot
fi
[ -e "$sysroot/usr/include/cmocka.h" ] || exit 1

if ! [ -f "$build/build.ninja" ]; then
    # There is no C++ compiler in it, and no Python.
    "$meson" setup "$build" --cross-file tools/cross-aarch64.ini -Dwerror=true \
        -Dtests=auto -Dpython=disabled -Dbench=disabled >/dev/null
fi
"$meson" compile -C "$build" >"$build/compile.log" || {
    tail -n 40 "$build/compile.log" >&2
    exit 1
}
names=$("$meson" test -C "$build" --no-rebuild --list 2>/dev/null |
    sed -n 's/.*stepwatch:\([a-z0-9_]*\).*/\1/p' |
    grep -E '^(base|store|record|recorder|read|watch)_')
# The emulator has threads of its own and slow signals: limits are wide.
# shellcheck disable=SC2086  # one word a test
"$meson" test -C "$build" --no-rebuild --print-errorlogs --timeout-multiplier 5 $names
