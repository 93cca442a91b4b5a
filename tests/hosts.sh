# shellcheck shell=bash
# Hosts for scripts that need several: network namespaces, cables and switches between them, and a scratch folder $folder, which
# becomes the current one. All of it goes at the end. Where a machine has no such thing the script is skipped (77). To be sourced.
skip() { echo "SKIP: $*"; exit 77; }
fail() { echo "FAILED: $*"; tail -n 60 ./*.out 2>/dev/null; exit 1; }
expect() { grep -q -- "$2" "$1" || fail "$1 has no '$2'"; }
soon() {  # soon WHAT COMMAND...: until it succeeds
  local what=$1 i
  shift
  for ((i = 0; i < 3000; ++i)); do "$@" && return; sleep 0.02; done
  fail "$what"
}
await() { soon "$1 has no '$2'" grep -qs -- "$2" "$1"; }  # await FILE TEXT
await_file() { soon "$1 is not there" test -e "$1"; }

[ "$(id -u)" = 0 ] || skip "network namespaces need root"
command -v ip >/dev/null || skip "ip (iproute2) is not installed"
folder=$(mktemp -d)
hosts=()
clean_up() {
  exec 2>/dev/null  # bash names each job that it kills
  jobs -p | xargs -r kill -9 2>/dev/null || true
  for host in "${hosts[@]}"; do
    for ((i = 0; i < 100; ++i)); do  # until none of their processes writes to the folder
      pids=$(ip netns pids "$host") && [ -n "$pids" ] || break
      xargs kill -9 <<<"$pids" || true
      sleep 0.02
    done
    ip netns del "$host" 2>/dev/null || true; rm -rf "/etc/netns/$host"
  done
  rm -rf "$folder"
}
trap clean_up EXIT
cd "$folder" || exit

new_host() {  # new_host VARIABLE...: a namespace each, its name in the variable
  local variable
  for variable in "$@"; do
    printf -v "$variable" 'fleet_%s_%s' "$variable" $$
    ip netns add "${!variable}" 2>/dev/null || skip "this machine allows no network namespaces"
    hosts+=("${!variable}")
    # In a chroot they can be made, but not entered.
    ip -n "${!variable}" link set lo up 2>/dev/null || skip "this machine's network namespaces cannot be entered"
  done
}
new_switch() {  # new_switch VARIABLE BRIDGE...: a namespace with bridges
  local bridge
  new_host "$1"
  for bridge in "${@:2}"; do
    ip -n "${!1}" link add "$bridge" type bridge 2>/dev/null || skip "no bridge here"
    ip -n "${!1}" link set "$bridge" up
  done
}
cable() {  # cable HOST DEVICE ADDRESS/BITS HOST DEVICE ADDRESS/BITS: joins two hosts
  ip -n "$1" link add "$2" type veth peer name "$5" netns "$4" || skip "no veth here"
  ip -n "$1" addr add "$3" dev "$2"
  ip -n "$4" addr add "$6" dev "$5"
  ip -n "$1" link set "$2" up
  ip -n "$4" link set "$5" up
}
plug() {  # plug HOST DEVICE ADDRESS/BITS SWITCH BRIDGE PORT: joins a host to a bridge
  ip -n "$1" link add "$2" type veth peer name "$6" netns "$4" || skip "no veth here"
  ip -n "$1" addr add "$3" dev "$2"
  ip -n "$1" link set "$2" up
  ip -n "$4" link set "$6" master "$5" up
}
