#!/usr/bin/env bash
# A log disk that fills up, becomes read-only or goes away: the job goes on, and the verdict is kept elsewhere and said where.
# Usage: full_disk.sh FLEETRUN
set -euo pipefail
fleetrun=$1
skip() { echo "SKIP: $*"; exit 77; }
if [ -z "${FLEET_TEST_MOUNTS-}" ]; then
  export FLEET_TEST_MOUNTS=1
  how=(unshare --mount)
  [ "$(id -u)" = 0 ] || how=(unshare --user --map-root-user --mount)
  "${how[@]}" sh -c 'mount -t tmpfs none /mnt' 2>/dev/null || skip "no file system can be mounted here"
  exec "${how[@]}" "$0" "$fleetrun"
fi
folder=$(mktemp -d)
clean_up() { cd /; umount "$folder"/log "$folder"/log "$folder"/run 2>/dev/null || true; rm -rf "$folder"; }
trap clean_up EXIT
cd "$folder"
fail() { echo "FAILED: $*"; cat out; exit 1; }
expect() { grep -q -- "$2" "$1" || fail "$1 has no '$2'"; }
no_disk() {
  while umount log 2>/dev/null; do :; done
  rm -rf log
}
fresh_disk() {
  no_disk
  mkdir log
  mount -t tmpfs -o size=64k none log || skip "no tmpfs of that size"
}
export CUDA_VISIBLE_DEVICES= FLEET_RUNTIME_DIR=$folder/run
# run WHAT_HAPPENS: ranks wait until the disk is as WHAT_HAPPENS makes it, then write more, and rank 1 fails.
run() {
  local code=0
  rm -f ready.*
  "$fleetrun" --nproc_per_node=2 --job_id=disk sh -c ': >ready.$RANK; while [ ! -e go ]; do sleep 0.01; done
    echo more; test $RANK = 0 && exec sleep 1000; echo the last line; exit 7' >out 2>&1 &
  local pid=$!
  for _ in $(seq 3000); do [ -e ready.0 ] && [ -e ready.1 ] && break; sleep 0.01; done
  eval "$1"
  : >go
  wait $pid || code=$?
  rm -f go
  [ $code = 7 ] || fail "ended with $code"
  expect out "the last line"
}
# The line that says where, and what is there.
expect_elsewhere() {
  expect out "$1; the verdict is in $2"
  local verdict
  verdict=$(sed -n 's/.*the verdict is in \(.*\)$/\1/p' out)
  expect "$verdict" '"exit_code": 7'
  [ "$(grep -c "the verdict is in" out)" = 1 ] || fail "said more than once"
  last=$verdict
}

fresh_disk
run 'cat /dev/zero >log/full 2>/dev/null || true'
expect out "No space left on device; the job continues without logs"
[ "$(grep -c "the job continues without" out)" = 1 ] || fail "more than one warning"
expect_elsewhere "No space left on device" "$folder/run/"
[ ! -e log/verdict.json ] || fail "an unfinished verdict"
"$fleetrun" ls --fleetd_port=1 >ls.out 2>&1
expect ls.out "disk  failed (7) .* $folder/log "
"$fleetrun" status disk --fleetd_port=1 >status.out 2>&1 || true
expect status.out "verdict  $last"

# The verdict of an earlier run is not taken for this one's, and leaves its room.
fresh_disk
head -c 8000 /dev/zero | tr '\0' x >log/verdict.json
run 'cat /dev/zero >log/full 2>/dev/null || true'
expect log/verdict.json '"exit_code": 7'

fresh_disk
run 'mount -t tmpfs -o ro none log'
expect_elsewhere "Read-only file system" "$folder/run/"

no_disk
run 'rm -r log'
expect_elsewhere "No such file or directory" "$folder/run/"

# The runtime folder on a full disk as well.
rm -rf run && mkdir -m 700 run
mount -t tmpfs -o size=64k,mode=700 none run
run 'rm -r log; cat /dev/zero >run/full 2>/dev/null || true'
expect_elsewhere "No such file or directory" "/tmp/fleetrun.disk."
rm -f "$last"
echo "full, read-only and missing disks leave a verdict"
