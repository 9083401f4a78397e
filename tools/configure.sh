#!/usr/bin/env bash
# configure.sh MESON FOLDER OPTIONS…: configures a build folder, and configures it again
# only when the options or the Python are others than last time.
set -euo pipefail

meson=$1
folder=$2
shift 2

stamp=$folder/.options
want="$("$(dirname "$meson")/python" -c 'import sys; print(sys.version)') ${CC:-} ${CFLAGS:-} $*"
if [ -f "$folder/build.ninja" ] && [ -f "$stamp" ] && [ "$(cat "$stamp")" = "$want" ]; then
    exit 0
fi

mkdir -p "$folder"
log=$folder/.configure-log
# A folder that an older version of the project configured may not know an option: it is made anew.
if [ -f "$folder/build.ninja" ] && "$meson" setup "$folder" --reconfigure "$@" >"$log" 2>&1; then
    echo "$want" >"$stamp"
    exit 0
fi
rm -rf "$folder"
mkdir -p "$folder"
if ! "$meson" setup "$folder" "$@" >"$log" 2>&1; then
    cat "$log" >&2
    exit 1
fi
echo "$want" >"$stamp"
