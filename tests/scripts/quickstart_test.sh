#!/usr/bin/env bash
# scripts/quickstart.sh and scripts/setup.sh with programs that only pretend: what they install, and what they say of failures.
set -euo pipefail
root=$(realpath "$(dirname "$0")/../..")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/repo/scripts" "$work/bin" "$work/state"
cp "$root"/scripts/{quickstart,setup,common}.sh "$work/repo/scripts/"
cd "$work/repo"
export PATH=$work/bin:$PATH STATE=$work/state
unset FLEET_GROUP_SOURCES

# pretend NAME: a program from standard input.
pretend() { { printf '#!/usr/bin/env bash\n'; cat; } >"$work/bin/$1"; chmod +x "$work/bin/$1"; }
# What is installed: the lines of the file `installed`.
pretend dpkg-query <<'END'
sed 's/^/installed /' "$STATE/installed"
echo "not-installed mold"
exit 1
END
pretend sudo <<'END'
exec "$@"
END
pretend dpkg <<'END'
echo "dpkg $*" >>"$STATE/calls"
rm -f "$STATE/interrupted"
END
pretend df <<'END'
printf 'Filesystem 1024-blocks Used Available Capacity Mounted\nx 1 1 %s 1%% /\n' "$(($(cat "$STATE/free") * 1000 * 1024 / 1000))"
END
# Does what the files in STATE say: `interrupted` by an earlier dpkg, lists that are `unknown`, an `install` that fails with a text.
pretend apt-get <<'END'
echo "apt-get $*" >>"$STATE/calls"
words=()
skip=
for word in "$@"; do
  case $word in
    -o) skip=1 ;;
    -*) ;;
    *) [ -n "$skip" ] || words+=("$word"); skip= ;;
  esac
done
if [ "${words[0]}" = update ]; then
  [ ! -e "$STATE/no_network" ] || { cat "$STATE/no_network"; exit 0; }
  rm -f "$STATE/unknown"
  exit 0
fi
[ ! -e "$STATE/unknown" ] || { printf 'E: Unable to locate package %s\n' "${words[@]:1}"; exit 100; }
if [[ " $* " == *" --print-uris "* ]]; then
  printf '%s\n' "0 upgraded, 113 newly installed, 0 to remove." "Need to get 163 MB of archives." \
    "After this operation, 697 MB of additional disk space will be used."
  exit 0
fi
[ ! -e "$STATE/interrupted" ] || { echo "E: dpkg was interrupted, you must manually run 'dpkg --configure -a' to correct the problem."; exit 100; }
[ ! -e "$STATE/hang" ] || sleep 20
[ ! -e "$STATE/install" ] || { cat "$STATE/install"; exit 100; }
# Progress goes to APT::Status-Fd, which the packages' scripts do not inherit; they print a line.
if [[ " $* " =~ \ APT::Status-Fd=([0-9]+)\  ]]; then
  status=${BASH_REMATCH[1]}
  printf '%s\n' "dlstatus:1:40.5:Retrieving file 3 of 113 (20s remaining)" "pmstatus:cmake:50.0:Unpacking cmake (amd64)" >&"$status"
  eval "exec $status>&-"
fi
echo "Setting up cmake ..." 2>/dev/null || { echo "E: Sub-process /usr/bin/dpkg returned an error code (1)" >&2; exit 100; }
printf '%s\n' "${words[@]:1}" >>"$STATE/installed"
END
pretend cmake <<'END'
echo "cmake $*" >>"$STATE/calls"
if [ "$1" = --preset ]; then mkdir -p build/release; exit 0; fi
echo "[0/2] Re-checking globbed directories..."
echo "[1/200] Building CXX object lib/a.cc.o"
[ ! -e "$STATE/hang" ] || sleep 20
[ ! -e "$STATE/compile" ] || { printf 'FAILED: lib/b.cc.o \nc++ -c b.cc\n'; cat "$STATE/compile"; exit 1; }
echo "[200/200] Linking CXX executable bin/fleetrun"
mkdir -p build/release/bin
printf '#!/bin/sh\necho "trained: $*"\n' >build/release/bin/fleetrun
chmod +x build/release/bin/fleetrun
END

case_name=
begin() {  # begin NAME: nothing is installed or built, and nothing fails
  case_name=$1
  rm -rf "$STATE" build
  mkdir "$STATE"
  : >"$STATE/installed"
  : >"$STATE/calls"
  echo 20000 >"$STATE/free"
}
fail() { printf 'FAILED: %s: %s; the output:\n' "$case_name" "$1"; cat "$work/output"; exit 1; }
# expect RC COMMAND...: its output is kept.
expect() {
  local wanted=$1 got=0
  shift
  "$@" >"$work/output" 2>&1 || got=$?
  [ "$got" = "$wanted" ] || fail "$* ended with $got instead of $wanted"
}
says() { grep -qF -- "$1" "$work/output" || fail "does not say: $1"; }
silent_of() { ! grep -qiF -- "$1" "$work/output" || fail "says: $1"; }
called() { grep -qE -- "$1" "$STATE/calls" || fail "did not run: $1"; }
not_called() { ! grep -qE -- "$1" "$STATE/calls" || fail "ran: $1"; }
one_line() { [ "$(grep -c "^$1" "$work/output")" = 1 ] || fail "not one line that begins with $1"; }

begin "only for the build"
expect 0 scripts/setup.sh --build extra
for package in g++ cmake ninja-build mold libgrpc++-dev extra; do grep -qx "$package" "$STATE/installed" || fail "no $package"; done
! grep -E 'gtest|gmock|benchmark|clang-format|shellcheck|nftables|iproute2|python3|curl|ccache' "$STATE/installed" || fail "a package of the tests"
says "113 with their dependencies: 163 MB to fetch, 697 MB on the disk"
says "fetching: 40 %"
expect 0 scripts/setup.sh
for package in libgtest-dev libbenchmark-dev clang-format shellcheck; do grep -qx "$package" "$STATE/installed" || fail "no $package"; done
! grep -qx cmake <(tail -n +26 "$STATE/installed") || fail "installed cmake twice"
expect 0 scripts/setup.sh
says "are installed"
expect 1 scripts/setup.sh --biuld
says "unknown option '--biuld'"

begin "lists of packages are missing"
: >"$STATE/unknown"
expect 0 scripts/setup.sh --build
called '^apt-get .*update'

begin "no network, no lists"
: >"$STATE/unknown"
echo "W: Failed to fetch http://packages.example/dists/InRelease  Temporary failure resolving 'packages.example'" >"$STATE/no_network"
expect 1 scripts/setup.sh --build
says "setup.sh: cannot fetch cmake, g++, "
says " more: there is no network, or it finds no servers by name; "
one_line setup.sh
silent_of packages.example

begin "a package cannot be fetched"
cat >"$STATE/install" <<'END'
Err:1 http://packages.example/debian bookworm/main amd64 mold amd64 1.10.1
  Could not connect to packages.example:80 (192.0.2.1), connection timed out
E: Failed to fetch http://packages.example/debian/pool/main/m/mold/mold_1.10.1%2bdfsg-1_amd64.deb  Could not connect to packages.example:80 (192.0.2.1), connection timed out
E: Unable to fetch some archives, maybe run apt-get update or try with --fix-missing?
END
expect 1 scripts/setup.sh --build
says "setup.sh: cannot fetch mold: the server of the packages cannot be reached; when that has changed, start it again"
silent_of packages.example
expect 1 scripts/quickstart.sh
says "cannot fetch mold"
not_called '^cmake'
rm "$STATE/install"
expect 0 scripts/quickstart.sh

begin "old lists"
echo "E: Failed to fetch http://packages.example/pool/main/m/mold/mold_1.0-1_amd64.deb  404  Not Found [IP: 192.0.2.1 80]" >"$STATE/install"
expect 1 scripts/setup.sh --build
called '^apt-get .*update'
says "cannot fetch mold: the server of the packages said 404 Not Found; "

begin "an unknown package"
: >"$STATE/unknown"
echo "E: Unable to locate package no-such" >"$STATE/install"
expect 1 scripts/setup.sh --build no-such
says "this system has no package no-such"

begin "an installation was interrupted"
: >"$STATE/interrupted"
expect 0 scripts/setup.sh --build
called '^dpkg --configure -a'
called '^apt-get .*--fix-broken'

begin "dpkg fails"
printf '%s\n' "dpkg: error processing package mold (--configure):" " installed mold package post-installation script failed" >"$STATE/install"
expect 1 scripts/setup.sh --build
says "cannot install mold: apt-get failed (see above)"

begin "another installation goes on"
echo "E: Could not get lock /var/lib/dpkg/lock-frontend. It is held by process 7 (apt)" >"$STATE/install"
expect 1 scripts/setup.sh --build
says "another program installs packages; wait"
called 'DPkg::Lock::Timeout=120'

begin "the disk gets full during the installation"
echo "dpkg: error processing archive /var/cache/apt/archives/mold_1.10_amd64.deb (--unpack): cannot copy extracted data: failed to write (No space left on device)" >"$STATE/install"
expect 1 scripts/setup.sh --build
says "setup.sh: no space left in /usr (20000 MB are free now); make room there, then start it again"

begin "not enough space for packages"
echo 850 >"$STATE/free"
expect 1 scripts/setup.sh --build
says "not enough space: 850 MB are free in /usr, but the packages need 861 MB"
not_called 'Status-Fd'

begin "not enough space for the build"
echo 200 >"$STATE/free"
expect 1 scripts/quickstart.sh
says "200 MB are free in $PWD, but the build needs 300 MB"
not_called .
mkdir build
expect 1 scripts/quickstart.sh
says "200 MB are free in $PWD/build, but the build needs 300 MB"

begin "the whole way"
expect 0 scripts/quickstart.sh --set train.epochs=1
says "== 1 of 3: install packages"
says "== 2 of 3: build"
says "build: 1 of 200 (0 %), about "
says "== 3 of 3: train"
[ "$(tail -n 1 "$work/output")" = "trained: --nproc_per_node=2 config/fashion_mnist.json --set train.epochs=1" ] || fail "the last line"
called '^cmake --preset release -DFLEET_GROUP_SOURCES=ALL .*-DFLEET_BUILD_TESTS=OFF$'
called '^cmake --build build/release .*--target fleetrun fleet-worker$'
grep -qx dataset-fashion-mnist "$STATE/installed" || fail "no data"
: >"$STATE/calls"
expect 0 env FLEET_GROUP_SOURCES=OFF scripts/quickstart.sh
says "are installed"
not_called '^apt-get'
called '^cmake --preset release -DFLEET_GROUP_SOURCES=OFF '
# The preset turns the tests on again.
grep -q '"name": "base"' "$root/CMakePresets.json" && grep -q '"FLEET_BUILD_TESTS": "ON"' "$root/CMakePresets.json" || fail "later builds have no tests"

begin "a source does not compile"
echo "lib/b.cc:1:1: error: expected something" >"$STATE/compile"
expect 1 scripts/quickstart.sh
says "lib/b.cc:1:1: error"
says "quickstart.sh: the build failed at lib/b.cc.o (see above); "
rm "$STATE/compile"
: >"$STATE/calls"
expect 0 scripts/quickstart.sh
not_called '^apt-get'

begin "the disk gets full during the build"
echo "lib/b.cc: fatal error: error writing to b.s: No space left on device" >"$STATE/compile"
expect 1 scripts/quickstart.sh
says "quickstart.sh: no space left in $PWD/build (20000 MB are free now); make room there, then start it again"

begin "memory"
echo "c++: fatal error: Killed signal terminated program cc1plus" >"$STATE/compile"
expect 1 scripts/quickstart.sh
says "not enough memory for lib/b.cc.o"

begin "the classifier of texts"
printf '#!/bin/sh\necho "classified: $*"\n' >scripts/classifier_demo.sh
chmod +x scripts/classifier_demo.sh
expect 0 scripts/quickstart.sh classifier --set train.epochs=1
[ "$(tail -n 1 "$work/output")" = "classified: --set train.epochs=1" ] || fail "the last line"
grep -qx dict-foldoc "$STATE/installed" || fail "no dictionary"

begin "photographs"
cp "$root/scripts/photos_demo.sh" scripts/
photos=$work/photos
expect 2 scripts/quickstart.sh photos
says "usage: photos DIR"
expect 2 scripts/quickstart.sh photos "$photos"
mkdir "$photos"
expect 2 scripts/quickstart.sh photos "$photos"
mkdir "$photos/cat"
touch "$photos"/cat/{1,2}.jpg
expect 2 scripts/quickstart.sh photos "$photos"
mkdir "$photos/dog"
expect 2 scripts/quickstart.sh photos "$photos"
touch "$photos/dog/1.JPG"
expect 2 scripts/quickstart.sh photos "$photos"
touch "$photos/dog/2.png"
expect 2 scripts/quickstart.sh photos "$photos" --weights no.pth
not_called .
(cd "$work" && expect 0 repo/scripts/quickstart.sh photos photos --set train.epochs=1)
says "trained: --nproc_per_node=2 build/photos/photos.json --set train.epochs=1"
says "trained: report output/photos/latest"
grep -q '"num_classes": 2' build/photos/photos.json && grep -qF "\"root\": \"$photos\"" build/photos/photos.json || fail "another job"
! grep -qE 'fashion|foldoc' "$STATE/installed" || fail "data that are not needed"
mkdir -p "$photos"/train "$photos"/val
mv "$photos"/{cat,dog} "$photos"/train
touch weights.pth
expect 0 scripts/quickstart.sh photos "$photos" --weights weights.pth
grep -qF "{\"weights\": \"$PWD/weights.pth\"}" build/photos/photos.json || fail "no weights"
grep -qF "\"test\": {\"folder\": \"$photos/val\"}" build/photos/photos.json || fail "no images to test"

begin "Ctrl-C during the installation"
: >"$STATE/hang"
expect 130 timeout --preserve-status -s INT 1 scripts/quickstart.sh
says "setup.sh: interrupted; start it again: it resumes where it stopped"
[ "$(grep -c interrupted "$work/output")" = 1 ] || fail "more than one line"

begin "Ctrl-C during the build"
expect 0 scripts/setup.sh --build dataset-fashion-mnist
: >"$STATE/hang"
expect 130 timeout --preserve-status -s INT 1 scripts/quickstart.sh
says "quickstart.sh: interrupted; start it again: it resumes where it stopped"
rm "$STATE/hang"
expect 0 scripts/quickstart.sh
echo "quickstart_test: ok"
