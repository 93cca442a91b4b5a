#!/usr/bin/env bash
# scripts/source_groups.awk: each file is in one group, files that would disturb each other are in different ones, and a new file
# changes no group but its own.
set -euo pipefail
root=$(realpath "$(dirname "$0")/../..")
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
fail() { echo "FAILED: $*"; exit 1; }
groups() { awk -v size=8 -f "$root/scripts/source_groups.awk" "$@"; }
together() { groups "$1" "$2" | grep -q ' '; }
# inside NAME LINE...: a file with these lines in an unnamed namespace.
inside() { printf '%s\n' 'namespace fleet {' 'namespace {' "${@:2}" '}  // namespace' '}  // namespace fleet' >"$1"; }

inside a.cc 'int count(const std::string& text, int from) {' '  return 1;' '}' 'using Clock = std::chrono::steady_clock;' \
       'constexpr int kFirst = 1, kLimit = 2;'
for line in 'size_t count(int x) { return x; }' 'struct count {' 'constexpr int count = 5;' 'std::map<int, std::string> count;' \
            '#define count 1' 'using count = int;' 'enum class count { kA };' 'class count : public B {' 'const char* const count[] = {' \
            'using Clock = std::chrono::system_clock;' 'bool Clock(int x) {' \
            '[[noreturn]] void count(int x) {' 'constexpr int kOther = 1, kLimit = 2;'; do
  inside b.cc "$line"
  ! together a.cc b.cc || fail "one group although both declare a name: $line"
done
for line in 'using Clock = std::chrono::steady_clock;' 'int counted(int count) {' '  int count = 5;' 'using ::testing::count;'; do
  inside b.cc "$line"
  together a.cc b.cc || fail "two groups without need: $line"
done
# Outside of an unnamed namespace, functions are overloads or would not link.
echo 'int count(const std::string& text) {' >b.cc
together a.cc b.cc || fail "two groups without need: a function outside"
echo 'const char* count(int x) {' >b.cc
together a.cc b.cc || fail "two groups without need: a function outside, of a constant"
echo 'static int count(int x) {' >b.cc
! together a.cc b.cc || fail "one group although both have a static function"

echo '#include <linux/tcp.h>' >b.cc
! together a.cc b.cc || fail "one group although one has a header of the kernel"

rm ./*
for i in $(seq 1 40); do inside "file_$i.cc" "int value_$i = 1;"; done
groups ./*.cc >before
[ "$(tr ' ' '\n' <before | sort)" = "$(printf '%s\n' ./*.cc | sort)" ] || fail "not each file in one group"
[ "$(wc -l <before)" -le 8 ] || fail "$(wc -l <before) groups of 40 files that go together"
inside file_new.cc 'int value_new = 1;'
groups ./*.cc >after
changed=$(comm -13 <(sort before) <(sort after) | wc -l)
[ "$changed" -eq 1 ] || fail "a new file changes $changed groups"
echo "ok"
