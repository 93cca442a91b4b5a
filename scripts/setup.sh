#!/usr/bin/env bash
# Installs the missing Debian 12 packages for building and testing. It can be run again at any time.
#
#   scripts/setup.sh [EXTRA_PACKAGE...]     also installs extra packages
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

packages=(
  build-essential cmake ninja-build ccache mold pkg-config git ca-certificates         # building
  libgrpc++-dev libprotobuf-dev protobuf-compiler protobuf-compiler-grpc libssl-dev    # rendezvous
  libcli11-dev nlohmann-json3-dev libspdlog-dev libboost-dev                           # arguments, job files, logs, Asio
  libdnnl-dev ocl-icd-opencl-dev                                                       # CPU kernels (oneDNN's CMake file asks for OpenCL)
  libgloo-dev                                                                          # transport between hosts
  libjpeg62-turbo-dev libpng-dev libwebp-dev libgif-dev zlib1g-dev                     # images, idx.gz
  libminizip-dev                                                                       # PyTorch's files of weights
  libgtest-dev libgmock-dev libbenchmark-dev iproute2 nftables python3 curl            # tests, benchmarks
  clang-format shellcheck                                                              # lint
)
packages+=("$@")

command -v dpkg-query >/dev/null || die "this is not a Debian system; install the equivalents of: ${packages[*]}"

missing=()
for package in "${packages[@]}"; do
  [ "$(dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null || true)" = installed ] || missing+=("$package")
done
if [ ${#missing[@]} -eq 0 ]; then
  say "setup: all ${#packages[@]} packages are installed"
  exit 0
fi

as_root=()
if [ "$(id -u)" != 0 ]; then
  command -v sudo >/dev/null || die "not root, and sudo is missing; run as root: apt-get install ${missing[*]}"
  as_root=(sudo)
fi
say "setup: installing ${#missing[@]} of ${#packages[@]} packages: ${missing[*]}"
install() {
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends "${missing[@]}"
}
update() { "${as_root[@]}" apt-get update -q; }
log=$(mktemp)
trap 'rm -f "$log"' EXIT
# If the package lists are missing or old, fetch them and try the installation once more.
if ! install >"$log" 2>&1 </dev/null; then
  say "setup: fetching the package lists"
  { update && install; } >"$log" 2>&1 </dev/null || {
    tail -n 20 "$log" >&2
    die "apt-get failed (see above); fix the cause and run scripts/setup.sh again"
  }
fi
say "setup: done"
