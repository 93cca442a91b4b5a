# For the scripts beside it: two network namespaces, $a (10.77.0.1) and $b (10.77.0.2), joined by a cable, and a scratch folder
# $folder, which becomes the current one. All of it goes at the end. To be sourced.
skip() { echo "SKIP: $*"; exit 77; }
[ "$(id -u)" = 0 ] || skip "network namespaces need root"
command -v ip >/dev/null || skip "ip (iproute2) is not installed"
a=fleet_a_$$ b=fleet_b_$$
folder=$(mktemp -d)
clean_up() {
  jobs -p | xargs -r kill -9 2>/dev/null || true
  ip netns del "$a" 2>/dev/null || true
  ip netns del "$b" 2>/dev/null || true
  rm -rf "$folder" "/etc/netns/$a" "/etc/netns/$b"
}
trap clean_up EXIT
ip netns add "$a" 2>/dev/null || skip "this machine allows no network namespaces"
ip netns add "$b"
ip -n "$a" link add cable type veth peer name cable netns "$b" || skip "no veth here"
ip -n "$a" addr add 10.77.0.1/24 dev cable
ip -n "$b" addr add 10.77.0.2/24 dev cable
for n in "$a" "$b"; do ip -n "$n" link set lo up; ip -n "$n" link set cable up; done
cd "$folder"
