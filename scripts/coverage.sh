#!/usr/bin/env bash
# Builds with counters, runs the tests, and prints which share of the lines of each module they executed.
#
#   scripts/coverage.sh [ctest options...]
#   scripts/coverage.sh -L unit
# build/coverage/report/index.html shows the lines. Processes that are killed count nothing.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

scripts/setup.sh gcovr
build coverage
find build/coverage -name '*.gcda' -delete
say "ctest"
# A failed test does not hide the figures: they count what ran.
ctest --test-dir build/coverage -j "$((2 * $(nproc)))" --output-on-failure "$@" >&2 || say "some tests failed"

say "gcovr"
mkdir -p build/coverage/report
gcovr --root . --object-directory build/coverage --filter 'lib/' --filter 'apps/' --exclude '.*\.pb\.(cc|h)$' \
  --exclude-throw-branches --gcov-ignore-parse-errors -j "$(nproc)" \
  --html-details build/coverage/report/index.html --csv build/coverage/report/lines.csv >/dev/null
# Columns of the CSV: filename, line_total, line_covered, ...
awk -F, 'NR > 1 { split($1, folder, "/"); module = folder[1] == "apps" ? "apps/" folder[2] : folder[1] "/" folder[2] "/" folder[3]
                  total[module] += $2; covered[module] += $3; all += $2; all_covered += $3 }
         END { for (module in total) printf "%-24s %6d lines  %5.1f %%\n", module, total[module], 100 * covered[module] / total[module] | "sort"
               close("sort"); printf "all: %d lines, %.1f %% executed\n", all, 100 * all_covered / all }' build/coverage/report/lines.csv
