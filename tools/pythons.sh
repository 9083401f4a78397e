#!/usr/bin/env bash
# pythons.sh [SEPARATOR]: prints the paths of the further Pythons that tools/setup.sh has made
# environments for, oldest first. PYTHONS ("3.12 3.13") chooses among them; empty, none.
set -euo pipefail
cd "$(dirname "$0")/.."

found=()
for venv in $(printf '%s\n' .venv-3.* | sort -V); do
    version=${venv#.venv-}
    case " ${PYTHONS-$version} " in *" $version "*) ;; *) continue ;; esac
    if [ -x "$venv/bin/python" ]; then
        found+=("$PWD/$venv/bin/python")
    fi
done
IFS=${1:-$'\n'}
echo "${found[*]}"
