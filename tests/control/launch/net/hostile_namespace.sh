#!/usr/bin/env bash
# Two nodes that share a secret, and a third host that has not got it: while the job forms and while it runs, that one
# tries to join with another secret and with none, to talk TLS without a certificate, noise, many idle connections, and
# floods of greetings. The job goes on and ends well; the stranger is told why at once, and gets few connections at a time;
# the secret stands nowhere that it does not belong.
# Usage: hostile_namespace.sh FLEETRUN HELPER FLOOD
set -euo pipefail
fleetrun=$1 helper=$2 flood=$3
source "$(dirname "$0")/two_nodes.sh"
new_host x
cable "$a" outside 10.78.0.1/24 "$x" cable 10.78.0.3/24
ip -n "$x" route add 10.77.0.0/24 via 10.78.0.1
mkdir home.x home.none
secret=correct-horse-battery-staple-4711

node() {  # node NAMESPACE NAME PROGRAM...: the same line on both
  local namespace=$1 name=$2
  shift 2
  FLEET_JOB_SECRET=$secret HOME=$folder/home.none CUDA_VISIBLE_DEVICES='' exec ip netns exec "$namespace" "$fleetrun" \
    --ips="10.77.0.1, 10.77.0.2" --log_dir="log.$name" --rdzv_timeout=100 "$@" >"$name.out" 2>&1
}
stranger() {  # stranger NAME OPTIONS...: a fleetrun that wants to be node 1
  local name=$1
  shift
  HOME=$folder/home.x CUDA_VISIBLE_DEVICES='' timeout 60 ip netns exec "$x" "$fleetrun" --nnodes=2 --rank=1 \
    --master=10.77.0.1:6768 --log_dir="log.$name" "$@" true >"$name.out" 2>&1
}
attack() {  # attack WHEN
  local code=0
  stranger "other.$1" || code=$?
  [ $code = 2 ] || fail "a node with another secret ended with $code"
  expect "other.$1.out" "is not the job's"
  code=0
  stranger "open.$1" --insecure || code=$?
  [ $code = 2 ] || fail "a node without a secret ended with $code"
  expect "open.$1.out" "give --insecure on every node or on none"
  if command -v openssl >/dev/null; then
    # Again where it was turned away as one of too many.
    for ((i = 0; i < 100; ++i)); do
      ip netns exec "$x" timeout 20 openssl s_client -connect 10.77.0.1:6768 -alpn h2 -ign_eof <<<"PRI * HTTP/2.0" \
        >"openssl.$1.out" 2>&1 || true
      grep -q "certificate required\|unexpected eof\|alert" "openssl.$1.out" && break
      sleep 0.1
    done
    [ "$i" -lt 100 ] || fail "openssl was not refused"
  fi
  # Noise, and more silent connections than files may be open by default: they stay while the job goes on.
  ip netns exec "$x" bash -c 'exec 3<>/dev/tcp/10.77.0.1/6768; head -c 100000 /dev/urandom >&3' 2>/dev/null || true
  ip netns exec "$x" bash -c 'ulimit -Sn 4096; for i in {1..1500}; do exec {fd}<>/dev/tcp/10.77.0.1/6768; done; exec sleep 100' &
}

script='env; echo up >"ready.$RANK"; while [ ! -e go ]; do sleep 0.05; done; exec "$0" store'
(node "$a" a sh -c "$script" "$helper") & first=$!
await a.out "waiting for 10.77.0.2"
attack forming
# While greetings pour in, half ones and whole ones, the second node comes, and both start.
flood() { while ip netns exec "$x" "$flood" 10.77.0.1:6768 600 1000; do :; done >flood.out 2>&1; }
flood & flooding=$!
await flood.out "turned away"
(node "$b" b sh -c "$script" "$helper") & second=$!
await ready.0 up
await ready.1 up
kill "$flooding"
awk '{ away += $(NF - 2) } END { exit !(away > 100) }' flood.out || fail "the flood came in: $(cat flood.out)"
expect a.out "refused connections from 10.78.0.3"
grep -lsa "[c]${secret#c}" /proc/[0-9]*/cmdline && fail "the secret is in the list of processes"
attack running
: >go
wait $first || fail "node 0 ended with $?"
wait $second || fail "node 1 ended with $?"
expect a.out "refused connections from\|refused a connection"
expect log.b/workerlog.0 "sum 1"
expect log.b/workerlog.0 "FLEET_CREDENTIALS="
expect log.a/verdict.json success
grep -rl "$secret" . && fail "the secret has been written down"
[ ! -e home.none/.config ] || fail "a secret was made although one was given"
echo "the stranger stayed outside"

# Secrets that others may read, and those that are none.
refused() {  # refused TEXT OPTIONS...
  local text=$1 code=0
  shift
  FLEET_JOB_SECRET='' HOME=$folder/home.none "$fleetrun" --ips=127.0.0.1,127.0.0.2 --host=127.0.0.1 "$@" true \
    >refused.out 2>&1 || code=$?
  [ $code = 2 ] || fail "ended with $code: $*"
  expect refused.out "$text"
}
echo "$secret" >open.secret
chmod 644 open.secret
refused "other users may read" --secret_file=open.secret
echo short >short.secret
chmod 600 short.secret
refused "has 16 to 4096 characters" --secret_file=short.secret
refused "no such file" --secret_file=none.secret
refused "contradicts --insecure" --secret_file=short.secret --insecure
echo "what is no secret is refused"
