#!/usr/bin/env bash
# Entry point for developers.
#
#   scripts/dev.sh fmt              formats every C++ file in place
#   scripts/dev.sh lint             checks format, layers, file lengths, READMEs, machine paths, links, scripts, English; takes seconds, builds nothing
#   scripts/dev.sh build [PRESET]   builds everything; PRESET: dev (default), release, asan, tsan, cuda
#   scripts/dev.sh test [PRESET]    builds, then runs every test that this machine supports
#   scripts/dev.sh bench [NAME]     runs one benchmark, or lists them
#   scripts/dev.sh all [PRESET]     lints, builds and tests, as CI does
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

usage() { sed -n '2,/^source/{/^#/s/^# \{0,1\}//p}' "scripts/$(basename "$0")"; }

command=${1:-help}
[ $# -eq 0 ] || shift
case $command in
  fmt) git ls-files -z -co --exclude-standard '*.h' '*.cc' '*.cu' '*.cuh' | xargs -0 -r clang-format -i ;;
  lint) exec scripts/lint.sh ;;
  build) build "${1:-dev}" ;;
  test)
    group_if_new "${1:-dev}" OFF
    exec scripts/test.sh "${@:-dev}"
    ;;
  bench) exec scripts/bench.sh "$@" ;;
  all)
    scripts/lint.sh
    exec scripts/test.sh "${@:-release}"
    ;;
  help | -h | --help) usage ;;
  *)
    usage >&2
    die "unknown command '$command'"
    ;;
esac
