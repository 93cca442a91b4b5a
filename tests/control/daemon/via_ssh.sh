#!/usr/bin/env bash
# --via=ssh over a private sshd on two loopback addresses: exit code and verdict, signals, nothing left after a kill -9, and
# one clear line where a node cannot be had. Usage: via_ssh.sh FLEETRUN
set -euo pipefail
fleetrun=$1
skip() { echo "SKIP: $*"; exit 77; }
sshd=$(command -v sshd || echo /usr/sbin/sshd)
[ -x "$sshd" ] || skip "sshd (openssh-server) is not installed"
command -v ssh >/dev/null || skip "ssh (openssh-client) is not installed"
[ "$(id -u)" != 0 ] || mkdir -p /run/sshd
folder=$(mktemp -d)
chmod 755 "$folder"
daemons=()
clean_up() {
  kill "${daemons[@]}" 2>/dev/null || true
  jobs -p | xargs -r kill -9 2>/dev/null || true
  rm -rf "$folder"
}
trap clean_up EXIT
cd "$folder"
export CUDA_VISIBLE_DEVICES=
fail() { echo "FAILED: $*"; tail -n 40 ./*.out sshd.log 2>/dev/null; exit 1; }
expect() { grep -q -- "$2" "$1" || fail "$1 has no '$2'"; }

ssh-keygen -q -t ed25519 -N '' -f host_key && ssh-keygen -q -t ed25519 -N '' -f key
cp key.pub authorized_keys && chmod 600 authorized_keys
port=$((12000 + $$ % 17000))
for address in 127.0.0.1 127.0.0.2; do
  "$sshd" -D -E sshd.log -f /dev/null -h "$folder/host_key" -o ListenAddress=$address -o Port=$port -o UsePAM=no \
    -o PidFile=none -o AuthorizedKeysFile="$folder/authorized_keys" -o StrictModes=no -o PermitRootLogin=yes & daemons+=($!)
done
options="-F none -p $port -i $folder/key -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null -o LogLevel=ERROR"
read -ra words <<<"$options"
for ((i = 0; i < 200; ++i)); do ssh "${words[@]}" -o BatchMode=yes 127.0.0.2 true 2>probe.out && break; sleep 0.05; done
ssh "${words[@]}" -o BatchMode=yes 127.0.0.1 true 2>probe.out || skip "sshd does not let this user in: $(tail -n 1 probe.out)"

run() {  # run NAME ARGUMENTS...
  local name=$1; shift
  code=0
  timeout 100 "$fleetrun" --via=ssh --ips=127.0.0.1,127.0.0.2 --via_options="$options" "$@" >"$name.out" 2>&1 || code=$?
}
wait_for_ranks() {
  for rank in "$@"; do
    for ((i = 0; i < 1000; ++i)); do [ -e "ready.$rank" ] && break; sleep 0.02; done
    [ -e "ready.$rank" ] || fail "rank $rank did not start"
  done
}
# Everything of this test has the folder in its environment.
export FLEET_TEST_SSH=$folder
left() { grep -lsz "^FLEET_TEST_SSH=$folder\$" /proc/[0-9]*/environ 2>/dev/null | grep -v "/proc/$$/" | cut -d/ -f3 |
  while read -r pid; do
    grep -qs fleet-test-rank "/proc/$pid/cmdline" && echo "$pid"
  done || true; }

run met --nproc_per_node=2 --export=FLEET_TEST_SSH,GREETING=hello sh -c 'echo "$GREETING from $RANK of $WORLD_SIZE in $PWD"'
[ $code = 0 ] || fail "ended with $code"
expect met.out "\[rank 0 127.0.0.1\] hello from 0 of 4 in $folder"
expect met.out "\[rank 2 127.0.0.2\] hello from 2 of 4 in $folder"
echo "met"

run failed --nproc_per_node=2 sh -c 'test $RANK = 3 && { sleep 0.2; exit 7; }; exec sleep 100'
[ $code = 7 ] || fail "ended with $code instead of 7"
[ "$(grep -c "ABORT!!!" failed.out)" = 1 ] || fail "the verdict is not told once"
expect failed.out "rank 3 of 4 exited with"
expect failed.out "local rank 1 on node 1 (127.0.0.2"
echo "the failing rank's code, its verdict once"

script=': fleet-test-rank; : >ready.$RANK; while :; do sleep 0.05; done'
start() {
  rm -f ready.*
  "$fleetrun" --via=ssh --ips=127.0.0.1,127.0.0.2 --via_options="$options" --nproc_per_node=2 --export=FLEET_TEST_SSH \
    sh -c "$script" >"$1.out" 2>&1 & job=$!
  wait_for_ranks 0 1 2 3
}
all_gone() {
  for ((i = 0; i < 1000; ++i)); do [ -z "$(left)" ] && return; sleep 0.02; done
  fail "left behind: $(left)"
}
start stopped
[ "$(left | wc -l)" -ge 4 ] || fail "the ranks are not seen"
kill -TERM $job
code=0; wait $job || code=$?
[ $code = 143 ] || fail "ended with $code instead of 143"
all_gone
echo "a signal to it ends all"

start killed
kill -KILL $job
all_gone
echo "killed with -9, it leaves nothing"

start cut
read -ra children <"/proc/$job/task/$job/children" || true  # it has no newline
[ ${#children[@]} = 2 ] || fail "there should be two ssh, not ${children[*]}"
kill -KILL "${children[@]}"
code=0; wait $job || code=$?
[ $code = 113 ] || fail "ended with $code instead of 113"
expect cut.out "ssh to 127.0.0.[12]: the connection broke"
all_gone
echo "connections that break end the job"

code=0
"$fleetrun" --via=ssh --ips=127.0.0.1,127.0.0.3 --via_options="$options" touch made >unreachable.out 2>&1 || code=$?
[ $code = 112 ] || fail "an unreachable host: $code"
expect unreachable.out "ssh to 127.0.0.3: .*Connection refused"
run nothing --remote_fleetrun=/nowhere/fleetrun touch made
[ $code = 2 ] || fail "no fleetrun there: $code"
expect nothing.out "ssh to 127.0.0.1: fleetrun was not found"
run folder --chdir=/nowhere touch made
[ $code = 2 ] || fail "no folder there: $code"
expect folder.out "127.0.0.1: /nowhere: the working directory does not exist"
ssh-keygen -q -t ed25519 -N '' -f other_key
code=0
"$fleetrun" --via=ssh --ips=127.0.0.1 --via_options="${options/$folder\/key/$folder/other_key} -o IdentitiesOnly=yes" \
  touch made >denied.out 2>&1 || code=$?
[ $code = 112 ] || fail "a key that is not known: $code"
expect denied.out "ssh to 127.0.0.1: .*Permission denied"
[ ! -e made ] || fail "something was started"
echo "what is wrong with a node is said"
