#!/usr/bin/env bash
# The man page and the completion know every option that fleetrun's help tells, and complete what they should.
#
#   tests/package/pages_test.sh BUILD_FOLDER
set -euo pipefail
build=$1
fail() { echo "FAILED: $*"; exit 1; }
has() { grep -q -- "$2" <<<"$1"; }  # has TEXT PATTERN; behind a pipe, a grep that has seen enough would look like a failure
pages=$build/share
version=$("$build/bin/fleetrun" --version)
has "$version" "^fleetrun $(cat "$(dirname "$0")/../../VERSION")$" || fail "--version prints '$version'"
has "$version" '^\(commit [0-9a-f]*\(-dirty\)\?\|unknown commit\), [A-Za-z]* [0-9.]*, \(CUDA [0-9.]*\|without CUDA\)$' || fail "--version prints '$version'"
options=$("$build/bin/fleetrun" --help | sed '/^examples:/,$d' | grep -oE -- '--[a-z_]+' | sort -u)
[ "$(wc -l <<<"$options")" -gt 15 ] || fail "the help tells hardly an option"
for option in $options; do
  grep -q -- "${option//-/\\\\-}" "$pages/fleetrun.1" || fail "fleetrun.1 does not know $option"
  grep -q -- "$option" "$pages/fleetrun.bash" || fail "bash's completion does not know $option"
  grep -q -- "'$option" "$pages/_fleetrun" || fail "zsh's completion does not know $option"
  grep -q -- " -l ${option#--}" "$pages/fleetrun.fish" || fail "fish's completion does not know $option"
done
grep -q '^\.TH FLEET-WORKER 1' "$pages/fleet-worker.1" || fail "no page of fleet-worker"
commands=$("$build/bin/fleetrun" --help | sed -n 's/^  fleetrun \([a-z_]*\)  .*/\1/p' | tail -n +1)
[ "$(wc -l <<<"$commands")" -ge 10 ] || fail "the help tells hardly a command"
for command in $commands; do
  grep -q "^\.SS fleetrun $command" "$pages/fleetrun.1" || fail "fleetrun.1 does not know the command $command"
  grep -q "^  \[$command\]=" "$pages/fleetrun.bash" || fail "bash's completion does not know the command $command"
  grep -q "^_fleetrun_$command()" "$pages/_fleetrun" || fail "zsh's completion does not know the command $command"
  for option in $("$build/bin/fleetrun" "$command" --help | grep -oE '^  (-[a-z], )?--[a-z_]+' | grep -oE -- '--.*'); do
    has "$(sed -n "s/^  \[${command}\]=//p" "$pages/fleetrun.bash")" "${option}[= ]" || fail "$command $option: not in bash's completion"
    has "$(sed -n "/^_fleetrun_${command}()/,/^}/p" "$pages/_fleetrun")" "'$option" || fail "$command $option: not in zsh's completion"
    has "$(grep "'__fleetrun_in $command'" "$pages/fleetrun.fish")" " -l ${option#--}" || [ "$command" = start ] ||
      fail "$command $option: not in fish's completion"
  done
done
sed -n 's/^| \([0-9]*\) |.*/\1/p' "$(dirname "$0")/../../docs/reference/exit_codes.md" | while read -r code; do
  has "$(sed -n '/^\.SH EXIT STATUS/,/^\.SH FILES/p' "$pages/fleetrun.1")" "^.fB$code.fR" || fail "fleetrun.1 does not know the exit code $code"
done
for page in fleetrun.1 fleetrun.bash fleetrun.fish _fleetrun; do
  ! grep -qE 'over_stdio|stand.{0,2}_in|control_pipe' "$pages/$page" || fail "$page tells what is between programs"
done
! command -v zsh >/dev/null || zsh -n "$pages/_fleetrun" || fail "zsh cannot read _fleetrun"
if command -v fish >/dev/null; then
  offered() {  # what fish offers for a line
    PATH=$build/bin:$PATH HOME=$(mktemp -d) fish --no-config -c "source '$pages/fleetrun.fish'; complete -C '$1'" | cut -f1
  }
  has "$(offered 'fleetrun --nproc')" '^--nproc_per_node' || fail "fish does not complete --nproc"
  has "$(offered 'fleetrun sto')" '^stop$' || fail "fish does not complete the command stop"
  has "$(offered 'fleetrun stop --gr')" '^--grace' || fail "fish does not complete stop --grace"
  has "$(offered 'fleetrun --nproc-per-node 2 --max_r')" '^--max_restart' || fail "fish takes the value of an option for the program"
  ! has "$(offered 'fleetrun train.py --max_r')" '^--max_restart' || fail "fish completes fleetrun's options after the program"
fi

source "$pages/fleetrun.bash"
[ "$(complete -p fleetrun)" = "complete -o filenames -F _fleetrun fleetrun" ] || fail "bash completes nothing: $(complete -p fleetrun)"
reply() {  # the completions of the last word
  COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMPREPLY=()
  _fleetrun 2>/dev/null || true
  echo "${COMPREPLY[*]}"
}
is() { [ "$1" = "$2" ] || fail "completed '$1', not '$2'"; }
is "$(reply fleetrun --nproc)" "--nproc_per_node="
is "$(reply fleetrun --nproc-per-n)" "--nproc_per_node="
is "$(reply fleetrun --log_level = WAR)" "WARNING"
is "$(reply fleetrun --log-level = WAR)" "WARNING"
is "$(reply fleetrun --log-level WAR)" "WARNING"
is "$(reply fleetrun --log_level WAR)" "WARNING"
is "$(reply fleetrun --log_level =)" "DEBUG INFO WARNING ERROR"
cd "$(mktemp -d)"
touch job.json
mkdir logs
is "$(reply fleetrun --nproc_per_node = 2 --log_dir lo)" "logs"
is "$(reply fleetrun --nproc_per_node 2 job.js)" "job.json"
is "$(reply fleetrun job.json --nproc)" ""
is "$(reply fleetrun -- --nproc)" ""
# Programs of this machine may begin with the same letters.
is "$(reply fleetrun sta | tr ' ' '\n' | grep -xE 'status|stacks' | sort)" "stacks
status"
is "$(reply fleetrun logs --f)" "--follow --fleetd= --fleetd_port= --fleetd_secret_file="
is "$(reply fleetrun logs nightly -f --ra)" "--rank="
is "$(reply fleetrun ls --nproc)" ""
is "$(reply fleetrun ls --format = j)" "json"
is "$(reply fleetrun stacks --format '')" "text json"
is "$(reply fleetrun stop --k)" "--kill"
is "$(reply fleetrun simulate --gpu)" "--gpus_per_node="
is "$(reply fleetrun debug --rank 3 --att)" "--attach"
is "$(reply fleetrun debug --rank 3 -- gd | tr ' ' '\n' | grep -cx ls || true)" "0"
is "$(reply fleetrun help sec)" "secret"
is "$(reply fleetrun secret --)" "--show --new --help"
is "$(reply fleetrun doctor --format t)" "table"
is "$(reply fleetrun doctor --rdzv_t)" "--rdzv_timeout="
is "$(reply fleetrun doctor job.js)" "job.json"
is "$(reply fleetrun --dry_run --format = s)" "shell"
# The jobs of this host, as `fleetrun ls` has them.
mkdir bin
printf '#!/bin/sh\n[ "$*" = ls ] && printf "JOB STATE\\nnightly running\\nother running\\n"\n' >bin/fleetrun
chmod +x bin/fleetrun
is "$(reply "$PWD/bin/fleetrun" stop ni)" "nightly"
is "$(reply "$PWD/bin/fleetrun" attach '')" "nightly other"
rm -r "$PWD"
echo "ok: $(wc -l <<<"$options") options"
