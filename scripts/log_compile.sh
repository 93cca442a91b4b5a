#!/usr/bin/env bash
# log_compile.sh LOG COMMAND...: runs a compiler and appends its CPU-seconds and its output file to LOG.
log=$1
shift
object=-
for ((i = 1; i < $#; ++i)); do
  [ "${!i}" != -o ] || { next=$((i + 1)) && object=${!next}; }
done
TIMEFORMAT='%U %S'
exec 3>&1 4>&2
times=$({ time "$@" >&3 2>&4; } 2>&1)
status=$?
read -r user system <<<"$times"
awk -v u="$user" -v s="$system" -v o="$object" 'BEGIN { printf "%.2f %s\n", u + s, o }' >>"$log"
exit $status
