#!/usr/bin/env bash
# Checks that the sources compile for aarch64, on a machine of another kind and without arm64's packages: a cross compiler
# parses the files of lib/ and apps/. Then it builds the unit tests that depend on the processor, and qemu runs them.
#
#   scripts/check_aarch64.sh [--quick] [--build FOLDER] [--jobs N] [FILE...]
#
# --quick   of the files, only those that use instructions, memory orders or system calls
# --build   build folder that has the headers generated from proto/ (default: the first below build/)
# --jobs    files at a time (default: one per core, limited by memory)
# FILE      only these files, and no tests
#
# Exits with 77 if the cross compiler is missing (apt-get install g++-aarch64-linux-gnu qemu-user-static).
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

quick=0 build= jobs=$(job_count) files=()
while [ $# -gt 0 ]; do
  case $1 in
    --build | --jobs) [ $# -ge 2 ] || die "$1 needs a value" ;;&
    --quick) quick=1 && shift ;;
    --build) build=$2 && shift 2 ;;
    --jobs) jobs=$2 && shift 2 ;;
    -h | --help) sed -n '2,/^source/{/^#/s/^# \{0,1\}//p}' "scripts/${0##*/}" && exit 0 ;;
    -*) die "unknown option '$1'; use --quick, --build or --jobs" ;;
    *) files+=("$1") && shift ;;
  esac
done
compiler=aarch64-linux-gnu-g++
command -v $compiler >/dev/null || { echo "SKIP: $compiler is missing (Debian: g++-aarch64-linux-gnu)"; exit 77; }
if [ -z "$build" ]; then
  for header in build/*/proto/gen/proto/control.pb.h; do
    [ ! -e "$header" ] || { build=${header%/proto/gen/*} && break; }
  done
fi
work=${build:-build}/aarch64
mkdir -p "$work"
results=$(mktemp -d "$work/check.XXXXXX")
trap 'rm -rf "$results"' EXIT

# Third-party headers of this machine: they do not depend on the processor. All of /usr/include would hide the cross
# compiler's own headers.
mkdir "$results/include" "$results/multiarch"
for name in absl boost CLI fmt gloo google grpc grpcpp minizip nlohmann oneapi openssl rocksdb spdlog webp 'dnnl*' gif_lib.h jerror.h \
            jmorecfg.h jpeglib.h 'png*.h' 'tiff*.h' zconf.h zlib.h; do
  for header in /usr/include/$name; do
    [ ! -e "$header" ] || ln -s "$header" "$results/include/"
  done
done
for name in jconfig.h openssl; do
  header=/usr/include/$(g++ -print-multiarch)/$name
  [ ! -e "$header" ] || ln -s "$header" "$results/multiarch/"
done

# The flags of scripts/cmake/options.cmake, and the definitions that the packages and modules give their users.
flags=(-std=c++20 -O1 -fopenmp -fsigned-char -ffp-contract=off -Wall -Wextra -Wno-maybe-uninitialized
       -Wno-missing-field-initializers "-DFLEET_VERSION=\"$(cat VERSION)\"" -DBOOST_ASIO_SEPARATE_COMPILATION
       -DSPDLOG_COMPILED_LIB -DSPDLOG_SHARED_LIB -DSPDLOG_FMT_EXTERNAL -I. -Ilib/common -Ilib/control -Ilib/engine -Iapps/fleetrun
       ${build:+"-I$build/proto/gen"} -isystem "$results/include" -isystem "$results/multiarch" -isystem /usr/local/cuda/include)

# check_file FILE: its messages go into a file named after the result.
check_file() {
  local name=${1//\//-} needs
  if $compiler "${flags[@]}" -fsyntax-only "$1" >"$results/log-$name" 2>&1; then
    mv "$results/log-$name" "$results/passed-$name"
    return
  fi
  # Only these headers may be missing: those of another package would be a mistake in the list above.
  needs=$(sed -nE 's/.*fatal error: ((proto|cu[a-z]+|nccl)[^:]*): No such file.*/\1/p' "$results/log-$name")
  if [ -n "$needs" ]; then
    echo "$1: $needs" >"$results/skipped-$name"
  else
    mv "$results/log-$name" "$results/failed-$name"
  fi
}

# check_files FILE...: reads them as one source, because nearly all of the time goes to the headers that they share; if this does
# not pass, reads each alone.
check_files() {
  local file source
  source=$(mktemp "$results/group-XXXXXX.cc")
  printf '#include "%s"\n' "${@/#/$PWD/}" >"$source"
  if [ $# -gt 1 ] && $compiler "${flags[@]}" -fsyntax-only "$source" >"$source.log" 2>&1; then
    mv "$source.log" "$results/passed-${1//\//-}"  # warnings
    for file in "${@:2}"; do : >"$results/passed-${file//\//-}"; done
  else
    for file in "$@"; do check_file "$file"; done
  fi
}

depends='__x86_64__|__builtin_(ia32|cpu|convertvector)|FLEET_X86_HAS|vector_size|norm_runs\.h|arm_acle|asm volatile|spin_pause'
depends+='|memory_order|control_block\.h|syscall\(|::clone\('
chosen=("${files[@]}")
if [ ${#chosen[@]} -eq 0 ]; then
  mapfile -t chosen < <(git ls-files -co --exclude-standard -- 'lib/*.cc' 'apps/*.cc')
  [ $quick -eq 0 ] || mapfile -t chosen < <(printf '%s\n' "${chosen[@]}" | xargs grep -lE "$depends")
fi
say "aarch64: ${#chosen[@]} files, $jobs at a time"
running=0
while read -ra group; do
  if [ $running -eq "$jobs" ]; then
    wait -n || true
    running=$((running - 1))
  fi
  check_files "${group[@]}" &
  running=$((running + 1))
done < <(group_by_folder "${chosen[@]}")
wait

count() { find "$results" -name "$1-*" | wc -l; }
find "$results" \( -name 'failed-*' -o -name 'passed-*' \) -size +0 -exec cat {} + >&2
if [ "$(count skipped)" -gt 0 ]; then
  echo "SKIP: $(count skipped) files need generated headers (--build FOLDER) or CUDA's:" \
       "$(find "$results" -name 'skipped-*' -exec cat {} + | sed 's/.*: //' | sort -u | tr '\n' ' ')"
fi
[ "$(count failed)" -eq 0 ] || { echo "FAILED: $(count failed) of ${#chosen[@]} files do not compile for aarch64"; exit 1; }
echo "ok: $(count passed) files compile for aarch64"
[ ${#files[@]} -eq 0 ] || exit 0

# The tests, in one static program.
googletest=/usr/src/googletest/googletest
qemu=
if [ "$(uname -m)" != aarch64 ]; then
  qemu=$(command -v qemu-aarch64-static || command -v qemu-aarch64 || true)
  [ -n "$qemu" ] || { echo "SKIP: no unit tests for aarch64: qemu-aarch64-static is missing (Debian: qemu-user-static)"; exit 0; }
fi
[ -e $googletest/src/gtest-all.cc ] || { echo "SKIP: no unit tests for aarch64: $googletest is missing (Debian: googletest)"; exit 0; }
sources=(lib/common/base/crc32c.cc tests/common/base/{crc32c,cpu}_test.cc
         lib/engine/comm/reduce{,_avx2,_avx512,_baseline}.cc tests/engine/comm/reduce_test.cc
         lib/engine/exec/normal_deviates.cc tests/engine/exec/normal_deviates_test.cc)
printf '#include "%s"\n' "${sources[@]/#/$PWD/}" >"$results/tests.cc"
$compiler "${flags[@]}" -w -I$googletest/include -c "$results/tests.cc" -o "$results/tests.o"
$compiler -std=c++20 -w -I$googletest -I$googletest/include -static -pthread "$results/tests.o" \
  $googletest/src/{gtest-all,gtest_main}.cc -o "$results/tests" 2>"$results/link" || { cat "$results/link" >&2; exit 1; }
# Without the tests of the kernels for AVX2 and AVX-512.
${qemu:+"$qemu"} "$results/tests" --gtest_brief=1 --gtest_filter='-Isa/*/1:Isa/*/2'
