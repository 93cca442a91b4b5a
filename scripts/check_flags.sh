#!/usr/bin/env bash
# Every key that docs/reference/timm_flags.md names is one of job_keys.md, or of strategies.md with the prefix "strategy.".
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
page=docs/reference/timm_flags.md
named=$(grep -oE '`(model|data|optimizer|learning_rate|train|checkpoint|predict|strategy)\.[a-z0-9_.]+' "$page" | tr -d "\`" | grep -vx train.py | sort -u)
known=$({
  grep -oE '`(model|data|optimizer|learning_rate|train|checkpoint|predict)\.[a-z0-9_.]+' docs/reference/job_keys.md
  sed -nE 's/^\| `([a-z0-9_.]+)`.*/`strategy.\1/p' docs/reference/strategies.md
} | tr -d '`' | sort -u)
[ "$(wc -l <<<"$named")" -gt 50 ] || die "$page names hardly a key"
unknown=$(comm -23 <(echo "$named") <(echo "$known") | tr '\n' ' ')
[ -z "$unknown" ] || die "$page names keys that do not exist: $unknown"
