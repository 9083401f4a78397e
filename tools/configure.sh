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
if [ -f "$folder/build.ninja" ]; then
    set -- --reconfigure "$@"
fi
if ! "$meson" setup "$folder" "$@" >"$log" 2>&1; then
    cat "$log" >&2
    exit 1
fi
echo "$want" >"$stamp"
