#!/usr/bin/env bash
# Runs clang-tidy with the checks of .clang-tidy over C++ sources of lib and apps.
#
#   scripts/check_tidy.sh                   the sources that differ from the last commit, or that it changed
#   scripts/check_tidy.sh few               the dozen of these with the most new lines: a test of ctest
#   scripts/check_tidy.sh all | FILE...     all sources, or these
#
# JOBS (default: one per core): how many at a time. BUILD (default build/release) has the headers that protoc writes. A source that
# has passed with its present content is not checked again: build/lint/tidy lists them. Exits with 1 if a check fails, with 77
# without clang-tidy-16.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

command -v clang-tidy-16 >/dev/null || { echo "SKIP: check_tidy needs clang-tidy-16 (scripts/setup.sh clang-tidy-16)"; exit 77; }
build=${BUILD:-build/release}
[ -e "$build/proto/gen/proto/control.grpc.pb.h" ] || { echo "SKIP: check_tidy needs the generated headers of $build; build it first"; exit 77; }

existing() { grep -E '^(lib|apps)/.*\.cc$' | while read -r file; do [ ! -e "$file" ] || echo "$file"; done; }
sources() { sort -u | existing; }
# The most new lines first.
changed() { { git ls-files -o --exclude-standard; git diff --numstat HEAD~1 2>/dev/null | sort -rn | cut -f3; } | existing; }
case ${1:-} in
  "") mapfile -t files < <(changed) ;;
  few) mapfile -t files < <(changed | sed -n 1,12p) ;;
  all) mapfile -t files < <(git ls-files -co --exclude-standard | sources) ;;
  *) mapfile -t files < <(printf '%s\n' "$@" | sources) ;;
esac
[ ${#files[@]} -gt 0 ] || { echo "tidy: no source has changed"; exit; }

passed=build/lint/tidy
key="$(clang-tidy-16 --version | grep -oE 'version [0-9.]+') $(git hash-object .clang-tidy)"
mkdir -p build/lint
[ "$(head -n1 "$passed" 2>/dev/null)" = "$key" ] || echo "$key" >"$passed"

flags=(-std=c++20 '-DFLEET_VERSION=""' -DBOOST_ASIO_SEPARATE_COMPILATION -DSPDLOG_COMPILED_LIB -DSPDLOG_FMT_EXTERNAL -Ilib/common -Ilib/control -Ilib/engine -Iapps/fleetrun -I. "-I$build/proto/gen")
mapfile -t -O "${#flags[@]}" flags < <(grep -oE -- '-isystem [^ "\\]+' "$build/compile_commands.json" | sort -u | sed 's/^-isystem /-isystem/')

# check PASSED FILES FLAG...: prints what clang-tidy refuses in FILES, "FILE..." of one folder. Several are read as one source,
# because nearly all of the time goes to the headers that they share; if they cannot be, then each half alone.
check() {
  local passed=$1 files=() rest=() file source output halves=0
  read -ra files <<<"$2"
  for file in "${files[@]}"; do
    grep -qxF "$(git hash-object "$file") $file" "$passed" || rest+=("$file")
  done
  [ ${#rest[@]} -gt 0 ] || return 0
  source=${rest[0]}
  local options=(--quiet)
  if [ ${#rest[@]} -gt 1 ]; then
    source=$(mktemp "$PWD/build/lint/tidy_XXXXXX.cc")
    printf '#include "%s"\n' "${rest[@]/#/$PWD/}" >"$source"
    options+=('--checks=-bugprone-suspicious-include' '--header-filter=(lib|apps)/.*\.(h|cc)$')
  fi
  output=$(clang-tidy-16 "${options[@]}" "$source" -- "${@:3}" 2>&1) && output=
  [ ${#rest[@]} -eq 1 ] || rm "$source"
  if [ -z "$output" ]; then
    for file in "${rest[@]}"; do echo "$(git hash-object "$file") $file" >>"$passed"; done
  elif [ ${#rest[@]} -gt 1 ] && grep -q '\[clang-diagnostic-error\]' <<<"$output"; then
    local half=$((${#rest[@]} / 2))
    check "$passed" "${rest[*]:0:half}" "${@:3}" || halves=1
    check "$passed" "${rest[*]:half}" "${@:3}" || halves=1
    return $halves
  elif grep -q 'file not found \[clang-diagnostic-error\]' <<<"$output"; then
    echo "not checked: $source ($(sed -n "s/.*error: '\(.*\)' file not found.*/\1/p" <<<"$output" | head -n1) is missing)"
  else
    grep -E '(error|warning):' <<<"$output" | sed "s|^$PWD/||"
    return 1
  fi
}
export -f check

group_by_folder() {
  printf '%s\n' "$@" | sed 's|/[^/]*$||' | sort -u | while read -r folder; do
    printf '%s\n' "$@" | grep -E "^$folder/[^/]*\$" | xargs awk -v size=8 -f scripts/source_groups.awk
  done
}

failed=0
output=$(group_by_folder "${files[@]}" | tr '\n' '\0' | xargs -0 -P "${JOBS:-$(nproc)}" -I{} bash -c 'check "$@"' check "$passed" {} "${flags[@]}") || failed=1
[ -z "$output" ] || printf '%s\n' "$output" | sort -u
[ "$failed" -eq 0 ] || die "correct these, or write NOLINT(check) with the reason"
echo "tidy: $((${#files[@]} - $(grep -c '^not checked:' <<<"$output" || true))) sources checked"
