# shellcheck shell=bash
# Sourced by the scripts in this folder: two hosts, $a (10.77.0.1) and $b (10.77.0.2), joined by a cable.
source "$(dirname "${BASH_SOURCE[0]}")/../../../hosts.sh"
new_host a b
cable "$a" cable 10.77.0.1/24 "$b" cable 10.77.0.2/24
