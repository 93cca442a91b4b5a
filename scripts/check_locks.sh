#!/usr/bin/env bash
# Checks the annotations of lib/common/base/mutex.h with clang: no guarded member is accessed without its lock.
#
#   scripts/check_locks.sh [BUILD_FOLDER [FILE...]]     default build/release, and all sources that can access such a member
#
# BUILD_FOLDER has the headers that protoc writes. Exits with 1 if an access is refused, with 77 without clang++-16 (clang 14
# cannot compile the standard library's ranges).
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

command -v clang++-16 >/dev/null || { echo "SKIP: check_locks needs clang++-16 (scripts/setup.sh clang-16)"; exit 77; }
build=${1:-build/release}
shift || true

# The sources that include mutex.h, and those that include a header of their own folder that leads to it: the annotated
# members are private.
locking_sources() {
  git ls-files -co --exclude-standard -- lib apps | grep -E '\.(h|cc)$' | while read -r file; do [ ! -e "$file" ] || echo "$file"; done |
    xargs grep -HoE '^#include "[^"]+"' | sed -E 's/^([^:]*):#include "(.*)"$/\1 \2/' | awk '
      function folder(path) { sub(/\/[^\/]*$/, "", path); return path }
      {
        file[NR] = $1; header[NR] = $2
        name[NR] = $1; sub(/^(lib\/[a-z]*|apps)\//, "", name[NR])
      }
      END {
        leads["base/mutex.h"]
        do {
          found = 0
          for (i = 1; i <= NR; ++i) {
            if (name[i] in leads || !(header[i] in leads)) continue
            if (header[i] == "base/mutex.h" || folder(header[i]) == folder(name[i])) { leads[name[i]]; found = 1 }
          }
        } while (found)
        for (i = 1; i <= NR; ++i) if (file[i] ~ /\.cc$/ && name[i] in leads && !printed[file[i]]++) print file[i]
      }'
}

if [ $# -eq 0 ]; then
  [ -e "$build/proto/gen/proto/control.grpc.pb.h" ] || die "$build has no generated headers; build it first"
  mapfile -t files < <(locking_sources | sort)
else
  files=("$@")
fi

# The definitions are those of the modules' CMakeLists.txt; the last folders are other libraries' headers, as this build found them.
flags=(-std=c++20 '-DFLEET_VERSION=""' -DBOOST_ASIO_SEPARATE_COMPILATION -Ilib/common -Ilib/control -Ilib/engine -I. "-I$build/proto/gen")
if [ -e "$build/compile_commands.json" ]; then
  mapfile -t -O "${#flags[@]}" flags < <(grep -oE -- '-isystem [^ "\\]+' "$build/compile_commands.json" | sort -u | sed 's/^-isystem /-isystem/')
fi

# check "FILE..." FLAG...: prints what clang refuses in FILE, one or several of one folder. Several are read as one source,
# because nearly all of the time goes to the headers that they share; if they cannot be, then each alone. A header that this
# machine lacks leaves a file unchecked.
check() {
  local files=() source output missing failed=0
  read -ra files <<<"$1"
  source=$1
  if [ ${#files[@]} -gt 1 ]; then
    source=$(mktemp "$work/XXXXXX.cc")
    printf '#include "%s"\n' "${files[@]/#/$PWD/}" >"$source"
  fi
  output=$(clang++-16 -fsyntax-only -Wno-everything -Wthread-safety -Werror=thread-safety \
    -fno-caret-diagnostics "${@:2}" "$source" 2>&1) && return
  if [ ${#files[@]} -gt 1 ] && grep -E 'error:' <<<"$output" | grep -qv -- '-Wthread-safety'; then
    for source in "${files[@]}"; do check "$source" "${@:2}" || failed=1; done
    return $failed
  fi
  missing=$(sed -n "s/.*fatal error: '\(.*\)' file not found.*/\1/p" <<<"$output")
  if [ -n "$missing" ]; then
    echo "not checked: $1 ($missing is missing)"
  else
    grep -E 'error:' <<<"$output" | sed "s|^$PWD/||"
    return 1
  fi
}
export -f check
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export work

failed=0
output=$(group_by_folder "${files[@]}" | tr '\n' '\0' | xargs -0 -P "$(nproc)" -I{} bash -c 'check "$@"' check {} "${flags[@]}") || failed=1
[ -z "$output" ] || printf '%s\n' "$output" | sort -u
[ "$failed" -eq 0 ] || die "hold the lock, or annotate the function with FLEET_REQUIRES (lib/common/base/mutex.h)"
echo "locks: $((${#files[@]} - $(grep -c '^not checked:' <<<"$output" || true))) sources checked"
