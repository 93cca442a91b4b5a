#!/usr/bin/env bash
# scripts/cmake/link.sh ends a linker that hangs, and starts it again.
set -euo pipefail
link=$(cd "$(dirname "$0")/../../scripts/cmake" && pwd)/link.sh
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { echo "FAILED: $*"; exit 1; }

# expect STATUS STARTS TEXT COMMAND...: the command's exit code, how often it was started, and a part of what is said.
expect() {
  local status=$1 starts=$2 text=$3 got=0
  shift 3
  : >"$work/starts"
  "$link" 1 sh -c "echo >>'$work/starts'; $*" >"$work/said" 2>&1 || got=$?
  [ "$got" = "$status" ] || fail "'$*' gave $got, not $status: $(cat "$work/said")"
  [ "$(wc -l <"$work/starts")" = "$starts" ] || fail "'$*' was started $(wc -l <"$work/starts") times, not $starts"
  grep -q "$text" "$work/said" || fail "'$*' did not say '$text': $(cat "$work/said")"
}
expect 0 1 linked 'echo linked'
expect 1 1 undefined 'echo undefined reference; exit 1'
# Hangs the first time, in a child that holds the output open as mold's does.
expect 0 2 'did not end within 1 s' "[ \$(wc -l <'$work/starts') = 2 ] || { sleep 100 & wait; }"
expect 124 3 'did not end within 2 s' "echo \$\$ >>'$work/hung'; sleep 100 & echo \$! >>'$work/hung'; wait"
while read -r pid; do
  for ((try = 0; try < 50; ++try)); do
    case $(sed 's/.*) //; s/ .*//' "/proc/$pid/stat" 2>/dev/null) in '' | Z | X) continue 2 ;; esac
    sleep 0.1
  done
  fail "a linker that hung was left running"
done <"$work/hung"
