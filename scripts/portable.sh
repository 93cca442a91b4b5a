#!/usr/bin/env bash
# Packs the release build, its GPU tests and their dependencies into a compressed tarball. It runs from any folder of a Linux
# with glibc 2.36 or later (Debian 12, Ubuntu 24.04), without packages. CUDA, cuDNN and NCCL come from the machine
# (scripts/cuda_libraries.sh finds them).
#
#   scripts/portable.sh [--arch "80;90"] [--output FILE] [--build FOLDER]
#
# --arch    GPU architectures (default: those of the preset `portable`)
# --output  tarball, .tar.xz or .tar.gz; default build/fleetrun-VERSION-linux-MACHINE.tar.xz
# --build   packs this existing build folder instead of configuring and building build/portable
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

version=$(cat VERSION)
folder= architectures=
output=build/fleetrun-$version-linux-$(uname -m).tar.xz
while [ $# -gt 0 ]; do
  case $1 in
    --arch | --output | --build) [ $# -ge 2 ] || die "$1 needs a value" ;;&
    --arch) architectures=$2 ;;
    --output) output=$2 ;;
    --build) folder=$2 ;;
    -h | --help) sed -n '2,/^source/{/^#/s/^# \{0,1\}//p}' "scripts/${0##*/}" && exit 0 ;;
    *) die "unknown option '$1'; use --arch, --output or --build" ;;
  esac
  shift 2
done
case $output in
  *.tar.xz) compress=(xz -T0 -6) ;;
  *.tar.gz) compress=(gzip -n9) ;;
  *) die "--output $output: end it in .tar.xz or .tar.gz" ;;
esac

if [ -z "$folder" ]; then
  folder=build/portable
  # Groups take less than half of the time of single files.
  cmake --preset portable "-DFLEET_GROUP_SOURCES=${FLEET_GROUP_SOURCES:-ALL}" ${architectures:+"-DFLEET_CUDA_ARCHITECTURES=$architectures"} >/dev/null ||
    die "cmake --preset portable failed; run scripts/setup.sh if a package is missing"
  cmake --build "$folder" -j "$(job_count)" --target portable_files >&2
elif [ -n "$architectures" ]; then
  die "--arch has no effect on an existing build; leave out --arch or --build"
fi

staging=$(mktemp -d)
trap 'rm -rf "$staging"' EXIT
top=$staging/fleetrun-$version
for component in runtime checks; do
  cmake --install "$folder" --component $component --strip --prefix "$top" >"$staging/log" 2>&1 || {
    tail -n 5 "$staging/log" >&2
    die "the build in $folder is incomplete; build its target portable_files"
  }
done
mkdir -p "$(dirname "$output")"
# Sort the files, drop the owner and set one time, so that the same build gives the same tarball.
tar -C "$staging" --sort=name --mtime="@${SOURCE_DATE_EPOCH:-315532800}" --owner=0 --group=0 --numeric-owner -cf - "fleetrun-$version" | "${compress[@]}" >"$output.part"
mv "$output.part" "$output"
say "$output: $(du -h "$output" | cut -f1), $(du -sh "$top" | cut -f1) unpacked"
