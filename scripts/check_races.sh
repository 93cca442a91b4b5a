#!/usr/bin/env bash
# Runs tests of the control plane's concurrent classes with the thread sanitizer, without a build of its own: these classes and
# their tests are compiled as one source, and everything else comes from a build without sanitizers. 20 CPU-seconds.
# scripts/test.sh tsan runs the tests of the engine so.
#
#   scripts/check_races.sh [BUILD_FOLDER]     default build/release, where rendezvous_tests must be built
#
# Exits with 1 if a test fails or the sanitizer reports a race, with 77 if the compiler cannot make such programs.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

build=$(realpath "${1:-build/release}")
work=$build/races
mkdir -p "$work"
# None of them uses gRPC: its library is not instrumented.
sources=(lib/common/base/{log,thread}.cc
         lib/control/rendezvous/{client,job_host,kv_state,local_transport}.cc lib/common/transport/ticker.cc
         tests/control/rendezvous/{kv_state,local_nodes_race,local_transport}_test.cc
         tests/common/transport/{queued_writer,ticker}_test.cc)
printf '#include "%s"\n' "${sources[@]}" >"$work/races.cc"

# A race that must be reported.
cat >"$work/probe.cc" <<'END'
#include <thread>
int value;
int main() { std::thread thread([] { value = 1; }); value = 2; thread.join(); }
END
g++ -fsanitize=thread "$work/probe.cc" -o "$work/probe" 2>/dev/null && ! output=$("$work/probe" 2>&1) && grep -q 'data race' <<<"$output" ||
  { echo "SKIP: check_races needs the thread sanitizer of g++ (libtsan), and a kernel on which it runs"; exit 77; }

# The flags of one of the tests, and the libraries of their program.
command -v ninja >/dev/null && [ -e "$build/build.ninja" ] || { echo "SKIP: check_races needs a build by ninja"; exit 77; }
commands=$(ninja -C "$build" -t commands bin/rendezvous_tests)
read -ra compile < <(grep -m1 'rendezvous_tests\.dir/.* -c ' <<<"$commands" | grep -oE -- '-(I|D)[^ ]+|-isystem [^ ]+' | xargs)
link=$(tail -n1 <<<"$commands")
link=${link#* -o bin/rendezvous_tests }
link=${link%% && :*}
# Without what is compiled here.
own=races/
for folder in lib/common/{base,transport} lib/control/rendezvous; do
  library=$folder/libfleet_$(basename "$folder").a
  cp "$build/$library" "$work/"
  for source in "${sources[@]}"; do
    [ "$(dirname "$source")" != "$folder" ] || ar d "$work/$(basename "$library")" "$(basename "$source").o"
  done
  link=${link// $library / $own$(basename "$library") }
done
read -ra libraries <<<"$link"

# -O1 and line tables only: a report names lines, and nothing more is needed. -Wno-tsan: Asio's fences do not replace its locks.
g++ -std=c++20 -O1 -g1 -fsanitize=thread -Wno-tsan -I. "${compile[@]}" -c "$work/races.cc" -o "$work/races.o"
# Where sources were compiled in groups, the libraries still define them: the first definition counts, the one compiled here.
(cd "$build" && g++ -fsanitize=thread -Wl,--allow-multiple-definition races/races.o -o races/races "${libraries[@]}")
TSAN_OPTIONS="suppressions=$PWD/tests/tsan_suppressions.txt exitcode=66 ${TSAN_OPTIONS:-}" "$work/races" --gtest_brief=1
