#!/usr/bin/env bash
# Builds the wheel of the current commit in two folders with names of different lengths, and checks that both have the same
# bytes. Takes two cold builds: ccache is off, because it would give both the same objects. Without CUDA.
#
#   scripts/check_reproducible.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export CCACHE_DISABLE=1
wheels=()
for folder in "$work/a" "$work/another/folder"; do
  git clone -q . "$folder"
  say "build in $folder"
  (cd "$folder" && cmake --preset package -DFLEET_CUDA=OFF >/dev/null && cmake --build build/package -j "$(job_count)" --target portable_files >&2 &&
    scripts/wheel.sh --build build/package)
  wheels+=("$(echo "$folder"/dist/fleetrun-*.whl)")
done
if cmp -s "${wheels[@]}"; then
  sha256sum "${wheels[@]}"
  echo "the same bytes in both folders"
  exit 0
fi
if command -v diffoscope >/dev/null; then diffoscope --max-report-size 20000 "${wheels[@]}" || true; fi
for file in fleetrun fleet-worker; do
  for wheel in "${wheels[@]}"; do unzip -p "$wheel" "*/bin/$file" | sha256sum | sed "s|-|$file in $wheel|"; done
done
die "the wheels differ"
