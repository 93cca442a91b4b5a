#!/usr/bin/env bash
# Installs the programs with their libraries, man pages, completion and job files: from sources, which it builds first, or from
# an unpacked tarball. The programs find their libraries by relative paths, so the folder can be moved.
#
#   scripts/install.sh [--prefix FOLDER] [--torchrun]
#                                             default /usr/local; e.g. $HOME/.local. --torchrun: also creates a link torchrun
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

prefix=/usr/local torchrun=
while [ $# -gt 0 ]; do
  case $1 in
    --prefix) [ $# -ge 2 ] || die "--prefix needs a folder"; prefix=$2; shift 2 ;;
    --prefix=*) prefix=${1#*=}; shift ;;
    --torchrun) torchrun=yes; shift ;;
    *) die "unknown option '$1'; use --prefix FOLDER or --torchrun" ;;
  esac
done
[[ $prefix == /* ]] || prefix=$OLDPWD/$prefix
mkdir -p "$prefix" 2>/dev/null && [ -w "$prefix" ] || die "$prefix is not writable; run this as root, or with --prefix \$HOME/.local"

if [ -e CMakeLists.txt ]; then
  cmake --preset package -DFLEET_STATIC_CONTROL=AUTO "-DFLEET_GROUP_SOURCES=${FLEET_GROUP_SOURCES:-ALL}" ${FLEET_CUDA_ARCHITECTURES:+"-DFLEET_CUDA_ARCHITECTURES=$FLEET_CUDA_ARCHITECTURES"} >/dev/null ||
    die "cmake --preset package failed; run scripts/setup.sh if a package is missing"
  cmake --build build/package -j "$(job_count)" >&2
  cmake --install build/package --component runtime --strip --prefix "$prefix" >/dev/null
else
  mkdir -p "$prefix"/{bin,lib/fleetrun,share}
  for program in fleetrun fleetd fleet-worker; do
    [ ! -e "bin/$program" ] || cp -af "bin/$program" "$prefix/bin/"
  done
  cp -a lib/fleetrun/. "$prefix/lib/fleetrun/"
  cp -a share/. "$prefix/share/"
fi
if [ "$torchrun" ]; then
  # Do not overwrite PyTorch's torchrun in the same folder.
  [ ! -e "$prefix/bin/torchrun" ] || [ -L "$prefix/bin/torchrun" ] || die "$prefix/bin/torchrun is another program; remove it first"
  ln -sfn fleetrun "$prefix/bin/torchrun"
fi
"$prefix/bin/fleetrun" --version >/dev/null || die "the installed $prefix/bin/fleetrun does not start"
say "installed $("$prefix/bin/fleetrun" --version | head -n 1) in $prefix"
case :$PATH: in *:"$prefix/bin":*) ;; *) say "add it to your PATH: export PATH=\"$prefix/bin:\$PATH\"" ;; esac
