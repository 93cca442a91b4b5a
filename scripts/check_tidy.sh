#!/usr/bin/env bash
# Runs clang-tidy with the checks of .clang-tidy over C++ sources of lib and apps.
#
#   scripts/check_tidy.sh                   the sources that differ from the last commit, or that it changed
#   scripts/check_tidy.sh all | FILE...     all sources (an hour on two cores), or these
#
# BUILD (default build/release) has the headers that protoc writes. A source that has passed with its present content is not checked
# again: build/lint/tidy lists them. Exits with 1 if a check fails, with 77 without clang-tidy-16.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

command -v clang-tidy-16 >/dev/null || { echo "SKIP: check_tidy needs clang-tidy-16 (scripts/setup.sh clang-tidy-16)"; exit 77; }
build=${BUILD:-build/release}
[ -e "$build/proto/gen/proto/control.grpc.pb.h" ] || { echo "SKIP: check_tidy needs the generated headers of $build; build it first"; exit 77; }

sources() { grep -E '^(lib|apps)/.*\.cc$' | sort -u | while read -r file; do [ ! -e "$file" ] || echo "$file"; done; }
case ${1:-} in
  "") mapfile -t files < <({ git diff --name-only HEAD~1 2>/dev/null; git ls-files -o --exclude-standard; } | sources) ;;
  all) mapfile -t files < <(git ls-files -co --exclude-standard | sources) ;;
  *) mapfile -t files < <(printf '%s\n' "$@" | sources) ;;
esac
[ ${#files[@]} -gt 0 ] || { echo "tidy: no source has changed"; exit; }

passed=build/lint/tidy
key="$(clang-tidy-16 --version | grep -oE 'version [0-9.]+') $(git hash-object .clang-tidy)"
mkdir -p build/lint
[ "$(head -n1 "$passed" 2>/dev/null)" = "$key" ] || echo "$key" >"$passed"

flags=(-std=c++20 '-DFLEET_VERSION=""' -DBOOST_ASIO_SEPARATE_COMPILATION -Ilib/common -Ilib/control -Ilib/engine -I. "-I$build/proto/gen")
mapfile -t -O "${#flags[@]}" flags < <(grep -oE -- '-isystem [^ "\\]+' "$build/compile_commands.json" | sort -u | sed 's/^-isystem /-isystem/')

# check PASSED FILE FLAG...: prints what clang-tidy refuses in FILE.
check() {
  local passed=$1 file=$2 content output
  content=$(git hash-object "$file")
  ! grep -qxF "$content $file" "$passed" || return 0
  if output=$(clang-tidy-16 --quiet "$file" -- "${@:3}" 2>&1); then
    echo "$content $file" >>"$passed"
  elif grep -q 'file not found \[clang-diagnostic-error\]' <<<"$output"; then
    echo "not checked: $file ($(sed -n "s/.*error: '\(.*\)' file not found.*/\1/p" <<<"$output" | head -n1) is missing)"
  else
    grep -E '(error|warning):' <<<"$output" | sed "s|^$PWD/||"
    return 1
  fi
}
export -f check

failed=0
output=$(printf '%s\0' "${files[@]}" | xargs -0 -P "$(nproc)" -I{} bash -c 'check "$@"' check "$passed" {} "${flags[@]}") || failed=1
[ -z "$output" ] || printf '%s\n' "$output" | sort -u
[ "$failed" -eq 0 ] || die "correct these, or write NOLINT(check) with the reason"
echo "tidy: $((${#files[@]} - $(grep -c '^not checked:' <<<"$output" || true))) sources checked"
