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

# Reads file names, prints those that CHECK has not passed with their present content. `passed CHECK` records that they have.
# build/lint/CHECK lists contents by hash; it is void after a change of KEY, such as the version of the tool.
not_passed() {  # not_passed CHECK KEY
  local list=build/lint/$1
  mkdir -p build/lint
  [ "$(head -n1 "$list" 2>/dev/null)" = "$2" ] || echo "$2" >"$list"
  sort -u >"$list.files"
  paste -d' ' <(git hash-object --stdin-paths <"$list.files") "$list.files" |
    awk 'NR == FNR { passed[$0] = 1; next } !($0 in passed)' "$list" - | tee "$list.new" | cut -d' ' -f2-
}
passed() { cat "build/lint/$1.new" >>"build/lint/$1"; }

formatted() {
  command -v clang-format >/dev/null || die "clang-format is missing; run scripts/setup.sh"
  local files
  files=$(sources '*.h' '*.cc' '*.cu' '*.cuh' |
    not_passed format "$(clang-format --version) $(git hash-object .clang-format)" |
    xargs -r -P "$(nproc)" -n 40 clang-format --dry-run 2>&1 | sed -nE 's/^([^: ]+):[0-9]+:.*(warning|error):.*/  \1/p' | sort -u)
  [ -z "$files" ] || { printf 'not formatted (scripts/dev.sh fmt):\n%s\n' "$files"; return 1; }
  passed format
}

# Warns about files over 600 lines; fails above 1000.
lengths() {
  sources 'lib/**' 'apps/**' 'tests/**' | grep -E '\.(h|cc|cu|cuh|proto|py|sh)$' | xargs -r wc -l |
    awk '$2 != "total" && $1 > 600 { print "  " $1 " lines: " $2; if ($1 > 1000) bad = 1 } END { exit bad }'
}

# A folder of the programs with more than a dozen files needs a README.md: what enters, what leaves, what to read first.
readmes() {
  sources 'lib/**' 'apps/**' | sed 's|/[^/]*$||' | sort | uniq -c |
    while read -r files folder; do
      [ "$files" -le 12 ] || [ -e "$folder/README.md" ] || echo "  $folder has $files files and no README.md"
    done | { ! grep .; }
}

# Tracked files must not contain paths of a developer's machine.
portable() {
  ! sources . | grep -vE '^(scripts/lint\.sh|LICENSE)$' | tr '\n' '\0' | xargs -0 -r grep -nIE '(^|[^A-Za-z0-9_.])/(work|root|home)/[A-Za-z]'
}

# Sources are compiled in groups, so an alias in one file must not have the name of a class of ours that another file means.
aliases() {
  ! sources 'lib/**' 'apps/**' 'tests/**' | grep -E '\.(h|cc)$' | tr '\n' '\0' | xargs -0 -r grep -nE '^using Json = '
}

shell_scripts() {
  command -v shellcheck >/dev/null || die "shellcheck is missing; run scripts/setup.sh"
  sources '*.sh' .ci/run | not_passed shell "$(shellcheck --version | sed -n 2p)" | xargs -r shellcheck --format=gcc || return 1
  passed shell
}

check 'format' formatted
check 'layers' scripts/check_layers.sh
check 'file lengths' lengths
check 'READMEs of folders' readmes
check 'machine paths' portable
check 'aliases' aliases
check 'shell scripts' shell_scripts
check 'links of pages' scripts/check_links.sh
check 'keys of flags' scripts/check_flags.sh
check 'English' scripts/check_english.sh
check 'prose in tests' scripts/count_prose_tests.sh
[ "$failures" -eq 0 ]
