#!/usr/bin/env bash
# The man page and the completion know every option that fleetrun's help tells, and complete what they should.
#
#   tests/package/pages_test.sh BUILD_FOLDER
set -euo pipefail
build=$1
fail() { echo "FAILED: $*"; exit 1; }
pages=$build/share
options=$("$build/bin/fleetrun" --help | sed '/^examples:/,$d' | grep -oE -- '--[a-z_]+' | sort -u)
[ "$(wc -l <<<"$options")" -gt 15 ] || fail "the help tells hardly an option"
for option in $options; do
  grep -q -- "${option//-/\\\\-}" "$pages/fleetrun.1" || fail "fleetrun.1 does not know $option"
  grep -q -- "$option" "$pages/fleetrun.bash" || fail "bash's completion does not know $option"
  grep -q -- "'$option" "$pages/_fleetrun" || fail "zsh's completion does not know $option"
done
grep -q '^\.TH FLEET-WORKER 1' "$pages/fleet-worker.1" || fail "no page of fleet-worker"
! command -v zsh >/dev/null || zsh -n "$pages/_fleetrun" || fail "zsh cannot read _fleetrun"

source "$pages/fleetrun.bash"
reply() {  # the completions of the last word
  COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMPREPLY=()
  _fleetrun 2>/dev/null || true
  echo "${COMPREPLY[*]}"
}
is() { [ "$1" = "$2" ] || fail "completed '$1', not '$2'"; }
is "$(reply fleetrun --nproc)" "--nproc_per_node="
is "$(reply fleetrun --log_level = WAR)" "WARNING"
is "$(reply fleetrun --log_level WAR)" "WARNING"
is "$(reply fleetrun --log_level =)" "DEBUG INFO WARNING ERROR"
cd "$(mktemp -d)"
touch job.json
mkdir logs
is "$(reply fleetrun --nproc_per_node = 2 --log_dir lo)" "logs"
is "$(reply fleetrun --nproc_per_node 2 job.js)" "job.json"
is "$(reply fleetrun job.json --nproc)" ""
rm -r "$PWD"
echo "ok: $(wc -l <<<"$options") options"
