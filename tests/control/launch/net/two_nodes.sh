# shellcheck shell=bash
# For the scripts beside it: two hosts, $a (10.77.0.1) and $b (10.77.0.2), joined by a cable. To be sourced.
source "$(dirname "${BASH_SOURCE[0]}")/../../../hosts.sh"
new_host a b
cable "$a" cable 10.77.0.1/24 "$b" cable 10.77.0.2/24
