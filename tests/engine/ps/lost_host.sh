#!/usr/bin/env bash
# A parameter server and a trainer on two hosts: the cable between them is cut while data are under way, without an RST. Both notice it
# after about the peer timeout, 3 s here.
# Usage: lost_host.sh PS_TESTS
set -euo pipefail
tests=$1
source "$(dirname "$0")/../../hosts.sh"
new_host a b
cable "$a" cable 10.77.0.1/24 "$b" cable 10.77.0.2/24

host() {  # host NAMESPACE NAME
  FLEET_PS_TEST_HOST=10.77.0.1:7000 FLEET_PS_TEST_READY=$PWD/ready.$2 exec ip netns exec "$1" "$tests" \
    --gtest_also_run_disabled_tests --gtest_filter="LostHostMain.DISABLED_$2" >"$2.out" 2>&1
}
(host "$a" Listens) & first=$!
(host "$b" Connects) & second=$!
await_file ready.Listens
await_file ready.Connects
begun=$(date +%s%N)
ip -n "$a" link set cable down
wait $first || fail "the server ended with $?"
echo "the server noticed after $((($(date +%s%N) - begun) / 1000000)) ms at most"
wait $second || fail "the trainer ended with $?"
echo "the trainer noticed after $((($(date +%s%N) - begun) / 1000000)) ms at most"
