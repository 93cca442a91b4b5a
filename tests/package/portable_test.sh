#!/usr/bin/env bash
# Packs a build folder, unpacks it under a name with a blank, and runs a job of two ranks from there with an empty environment.
#
#   tests/package/portable_test.sh BUILD_FOLDER
set -euo pipefail
build=$1
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
fail() { echo "FAILED: $*"; exit 1; }

"$root/scripts/portable.sh" --build "$build" --output "$folder/fleetrun.tar.gz"
size=$(stat -c %s "$folder/fleetrun.tar.gz") most=$((64 << 20))
# Kernels without optimization are larger: then the rest is looked at.
if grep -qs '^FLEET_CUDA_UNOPTIMIZED:BOOL=ON' "$build/CMakeCache.txt" && [ -e "$build/bin/libfleet_cuda.so" ]; then
  size=$((size - $(gzip -n9 <"$build/bin/libfleet_cuda.so" | wc -c))) most=$((61 << 20))
fi
[ "$size" -le $most ] || fail "the tarball has $size bytes, more than $((most >> 20)) MiB"
mkdir "$folder/un packed"
tar -C "$folder/un packed" -xzf "$folder/fleetrun.tar.gz"
top=$(echo "$folder/un packed"/fleetrun-*)

# Only glibc may come from the machine.
for file in "$top"/bin/*; do
  head -c 4 "$file" | grep -q ELF || continue
  stray=$(env -i ldd "$file" | sed 's/ (0x.*//' | grep -v "$top" |
    grep -vE '^\s*(linux-vdso\.so\.1|lib(c|m|dl|rt|pthread|resolv)\.so\.[0-9]+ => .*|.*ld-linux[^ ]*)$' || true)
  [ -z "$stray" ] || fail "$file needs libraries of the machine: $stray"
done

# The control plane needs glibc alone, where the build says so.
if ! env -i ldd "$top/bin/fleetrun" | grep libstdc++ >/dev/null; then
  control=$(stat -c %s "$top/bin/fleetrun")
  [ "$control" -le $((15 << 20)) ] || fail "fleetrun has $control bytes, more than 15 MiB"
fi

cd "$top"
run() { env -i PATH=/usr/bin:/bin HOME="$folder" "$@" >"$folder/output" 2>&1 || { cat "$folder/output"; fail "$*"; }; }
job() {  # job DEVICE: three steps on it; the exit code is in $code
  code=0
  env -i PATH=/usr/bin:/bin HOME="$folder" bin/fleetrun --nproc_per_node=2 --log_dir="$folder/log" config/cifar10_resnet20.json \
    --set data.source=synthetic --set data.batch_size=8 --set train.max_steps=3 --set train.fetch_every=1 --set train.device="$1" \
    --set train.evaluate_every=0 --set train.output="$folder/output.$1" >"$folder/output" 2>&1 || code=$?
}
trains() { [ $code = 0 ] && grep -q 'worker_index: 0, step2 cost = ' "$folder/output"; }
job cpu
trains || { cat "$folder/output"; fail "no third step on cpu"; }
# Installed from the tarball into another folder, it runs there too.
run scripts/install.sh --prefix "$folder/prefix" --torchrun
run "$folder/prefix/bin/fleet-worker" --version
[ "$("$folder/prefix/bin/torchrun" --version)" = "$("$folder/prefix/bin/fleetrun" --version)" ] || fail "no torchrun was installed"
[ -e "$folder/prefix/share/man/man1/fleetrun.1" ] || fail "no man page was installed"
# The module for GPUs loads from where it was unpacked. Without a GPU a line says why the job cannot run.
job cuda
trains || { [ $code = 2 ] && grep -q 'cuda was asked for: ' "$folder/output"; } || { cat "$folder/output"; fail "train.device=cuda: $code"; }
if [ ! -e lib/fleetrun/libfleet_cuda.so ]; then
  echo "ok: $size bytes, without CUDA"
  exit 0
fi
! grep -q 'this build has no cuda backend' "$folder/output" || { cat "$folder/output"; fail "the module was not looked for"; }
! grep -q 'undefined symbol' "$folder/output" || { cat "$folder/output"; fail "the module does not fit the program"; }
echo "ok: $size bytes"
