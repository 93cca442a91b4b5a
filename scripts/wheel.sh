#!/usr/bin/env bash
# Packs the programs into wheels, so that pip installs them: dist/fleetrun-VERSION-py3-none-manylinux_2_35_MACHINE.whl, and
# with CUDA dist/fleetrun_cuda-... with the modules of the GPU backend. No Python is needed to build them. They run with glibc
# 2.35 and libstdc++ of GCC 12 or later (Debian 12, Ubuntu 22.04). Beside them SHA256SUMS, and in each wheel the libraries that it
# contains (scripts/sbom.sh), where PEP 770 has them.
#
#   scripts/wheel.sh [--build FOLDER] [--output FOLDER]
#
# --build   packs this existing build folder instead of configuring and building build/package
# --output  folder of the wheels; default dist
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

folder= output=dist
while [ $# -gt 0 ]; do
  case $1 in
    --build | --output) [ $# -ge 2 ] || die "$1 needs a value" ;;&
    --build) folder=$2 ;;
    --output) output=$2 ;;
    -h | --help) sed -n '2,/^source/{/^#/s/^# \{0,1\}//p}' "scripts/${0##*/}" && exit 0 ;;
    *) die "unknown option '$1'; use --build or --output" ;;
  esac
  shift 2
done
{ command -v zip && command -v openssl; } >/dev/null || scripts/setup.sh --build zip openssl
version=$(cat VERSION)
glibc=2.35
tag=py3-none-manylinux_${glibc/./_}_$(uname -m)

if [ -z "$folder" ]; then
  folder=build/package
  # Groups take less than half of the time of single files.
  FLEET_GROUP_SOURCES=${FLEET_GROUP_SOURCES:-ALL} build package portable_files
fi

staging=$(mktemp -d)
trap 'rm -rf "$staging"' EXIT
tree=$staging/tree
cmake --install "$folder" --component runtime --strip --prefix "$tree" >"$staging/log" 2>&1 || {
  tail -n 5 "$staging/log" >&2
  die "the build in $folder is incomplete; build its target portable_files"
}
# The C++ library is the system's, as in every manylinux wheel: Debian 12's own needs glibc 2.36.
rm -f "$tree"/lib/fleetrun/libstdc++.so.* "$tree"/lib/fleetrun/libgcc_s.so.*
# A zip file of pip's knows no links: a library gets the name under which programs look for it, fleetd is an entry point.
rm "$tree/bin/fleetd"
find "$tree/lib" -type l | while read -r link; do
  mv "$(readlink -f "$link")" "$link"
done

# Refuses what would not start there.
find "$tree/bin" "$tree/lib" -type f | while read -r file; do
  needs=$(objdump -T "$file" 2>/dev/null | grep -oE 'GLIBC_[0-9.]+' | sort -uV | tail -n 1 || true)
  [ "$(printf '%s\n' "GLIBC_$glibc" "$needs" | sort -V | tail -n 1)" = "GLIBC_$glibc" ] ||
    die "${file#"$tree/"} needs $needs, but the wheel promises glibc $glibc"
done

scripts/sbom.sh "$tree" >"$staging/sbom"

# write_wheel NAME SUMMARY [METADATA line...]: packs $staging/NAME.
write_wheel() {
  local name=$1 summary=$2 root=$staging/$1 info file
  shift 2
  info=$root/$name-$version.dist-info
  mkdir -p "$info"
  {
    printf '%s\n' "Metadata-Version: 2.1" "Name: ${name/_/-}" "Version: $version" "Summary: $summary" "Requires-Python: >=3.8" \
      "Description-Content-Type: text/markdown" "$@"
    printf '\n'
    cat README.md
  } >"$info/METADATA"
  printf '%s\n' "Wheel-Version: 1.0" "Generator: fleetrun wheel.sh" "Root-Is-Purelib: false" "Tag: $tag" >"$info/WHEEL"
  cp LICENSE "$info/LICENSE"
  mkdir "$info/sboms"
  cp "$staging/sbom" "$info/sboms/fleetrun.spdx.json"
  # RECORD: the path, the hash as base64 for URLs without padding, and the size of each file.
  (cd "$root" && find . -type f ! -name RECORD | LC_ALL=C sort | while read -r file; do
    printf '%s,sha256=%s,%s\n' "${file#./}" \
      "$(openssl dgst -sha256 -binary "$file" | base64 | tr '+/' '-_' | tr -d '=')" "$(stat -c %s "$file")"
  done >"$staging/RECORD"
  printf '%s,,\n' "$name-$version.dist-info/RECORD" >>"$staging/RECORD"
  mv "$staging/RECORD" "$info/RECORD")
  # Sorted names and one time, so that the same build gives the same bytes.
  find "$root" -exec touch -h -d "@${SOURCE_DATE_EPOCH:-315532800}" {} +
  mkdir -p "$output"
  file=$(cd "$output" && pwd)/$name-$version-$tag.whl
  rm -f "$file.part"
  (cd "$root" && find . -type f | LC_ALL=C sort | sed 's|^\./||' | TZ=UTC zip -q -X "$file.part" -@)
  mv "$file.part" "$file"
  say "$file: $(du -h "$file" | cut -f1)"
}

# pip copies NAME-VERSION.data/data to the root of the environment: bin, lib/fleetrun and share, as in every installation.
if compgen -G "$tree/lib/fleetrun/libfleet_*.so" >/dev/null; then
  modules=$staging/fleetrun_cuda/fleetrun_cuda-$version.data/data/lib/fleetrun
  mkdir -p "$modules"
  mv "$tree"/lib/fleetrun/libfleet_*.so "$modules/"
  write_wheel fleetrun_cuda "fleetrun's GPU backend (CUDA, cuDNN and NCCL come from the machine)" \
    "Requires-Dist: fleetrun (== $version)"
fi
main=$staging/fleetrun
mkdir -p "$main/fleetrun" "$main/fleetrun-$version.data" "$main/fleetrun-$version.dist-info"
cp scripts/wheel/*.py "$main/fleetrun/"
mv "$tree" "$main/fleetrun-$version.data/data"
printf '%s\n' "[console_scripts]" "fleetd = fleetrun.__main__:fleetd" >"$main/fleetrun-$version.dist-info/entry_points.txt"
write_wheel fleetrun "Starts and runs distributed training on one machine or a cluster" \
  "Provides-Extra: cuda" "Requires-Dist: fleetrun-cuda (== $version) ; extra == 'cuda'"
(cd "$output" && sha256sum -- *"-$version-$tag.whl" >SHA256SUMS.part && mv SHA256SUMS.part SHA256SUMS)
