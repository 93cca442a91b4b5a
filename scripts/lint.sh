#!/usr/bin/env bash
# Checks the sources without building them. Exits with 1 if a check fails.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

failures=0
check() {  # check WHAT COMMAND...: runs the command and records a failure
  local what=$1
  shift
  if "$@"; then
    echo "lint: $what: ok"
  else
    echo "lint: $what: FAILED"
    failures=$((failures + 1))
  fi
}

sources() { git ls-files -co --exclude-standard -- "$@" | while read -r file; do [ ! -e "$file" ] || echo "$file"; done; }

formatted() {
  command -v clang-format >/dev/null || die "clang-format is missing; run scripts/setup.sh"
  local files
  files=$(sources '*.h' '*.cc' '*.cu' '*.cuh' | while read -r file; do
    clang-format "$file" | cmp -s - "$file" || echo "  $file"
  done)
  [ -z "$files" ] || { printf 'not formatted (scripts/dev.sh fmt):\n%s\n' "$files"; return 1; }
}

# Warns about files over 600 lines; fails above 1000.
lengths() {
  sources 'lib/**' 'apps/**' 'tests/**' | grep -E '\.(h|cc|cu|cuh|proto|py|sh)$' | xargs -r wc -l |
    awk '$2 != "total" && $1 > 600 { print "  " $1 " lines: " $2; if ($1 > 1000) bad = 1 } END { exit bad }'
}

# Tracked files must not contain paths of a developer's machine.
portable() {
  ! sources . | grep -vE '^(scripts/lint\.sh|LICENSE)$' | tr '\n' '\0' | xargs -0 -r grep -nIE '(^|[^A-Za-z0-9_.])/(work|root|home)/[A-Za-z]'
}

shell_scripts() {
  command -v shellcheck >/dev/null || die "shellcheck is missing; run scripts/setup.sh"
  sources '*.sh' .ci/run | xargs -r shellcheck --format=gcc
}

check 'format' formatted
check 'layers' scripts/check_layers.sh
check 'file lengths' lengths
check 'machine paths' portable
check 'shell scripts' shell_scripts
check 'links of pages' scripts/check_links.sh
[ "$failures" -eq 0 ]
