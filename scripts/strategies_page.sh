#!/usr/bin/env bash
# Regenerates the generated part of docs/reference/strategies.md from the registry of meta-optimizers.
#
#   scripts/strategies_page.sh [BUILD_FOLDER]     default build/release
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

worker=${1:-build/release}/bin/fleet-worker
[ -x "$worker" ] || die "$worker is missing; build its target fleet-worker"
page=docs/reference/strategies.md
generated=$(mktemp)
trap 'rm -f "$generated" "$generated.page"' EXIT
"$worker" --print_flags=markdown >"$generated"
awk -v generated="$generated" '
  /^<!-- end of what is generated -->$/ { skipped = 0 }
  !skipped { print }
  /^<!-- generated: scripts\/strategies_page.sh -->$/ {
    while ((getline line <generated) > 0) print line
    skipped = 1
  }' "$page" >"$generated.page"
cp "$generated.page" "$page"
