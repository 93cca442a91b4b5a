#!/usr/bin/env bash
# Installs the Debian 12 packages that are missing. It can be run again at any time, also after it was interrupted.
#
#   scripts/setup.sh [OPTION...] [EXTRA_PACKAGE...]     for building, testing and lint; also installs extra packages
#
# --build          only what the build of fleetrun and fleet-worker needs
# --keep-free MB   stops before it installs anything if fewer megabytes would stay free
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

packages=(
  g++ cmake ninja-build mold pkg-config git                                            # building; git: the commit of --version
  libgrpc++-dev libprotobuf-dev protobuf-compiler protobuf-compiler-grpc libssl-dev    # rendezvous
  libcli11-dev nlohmann-json3-dev libspdlog-dev libboost-dev                           # arguments, job files, logs, Asio
  libdnnl-dev ocl-icd-opencl-dev                                                       # CPU kernels (oneDNN's CMake file asks for OpenCL)
  libgloo-dev                                                                          # transport between hosts
  libjpeg62-turbo-dev libpng-dev libwebp-dev libgif-dev libtiff-dev zlib1g-dev         # images, idx.gz
  libminizip-dev                                                                       # PyTorch's files of weights
  librocksdb-dev                                                                       # sparse tables larger than memory
)
developer_packages=(
  build-essential ccache                                                               # building again and again
  libgtest-dev libgmock-dev libbenchmark-dev iproute2 nftables python3                 # tests, benchmarks
  curl ca-certificates                                                                 # tests of `fleetrun data get`
  clang-format shellcheck                                                              # lint
)
keep_free=0
while [[ ${1:-} == -* ]]; do
  case $1 in
    --build) developer_packages=() ;;
    --keep-free) [[ ${2:-} =~ ^[0-9]+$ ]] || die "--keep-free needs a number of megabytes"; keep_free=$2; shift ;;
    -h | --help) sed -n '2,/^source/{/^#/s/^# \{0,1\}//p}' "scripts/${0##*/}" && exit 0 ;;
    *) die "unknown option '$1'; use --build or --keep-free" ;;
  esac
  shift
done
packages+=("${developer_packages[@]}" "$@")

command -v dpkg-query >/dev/null || die "this is not a Debian system; install the equivalents of: ${packages[*]}"

# Exits with 1 if there are packages that it does not know.
installed=$(dpkg-query -W -f='${db:Status-Status} ${Package}\n' "${packages[@]}" 2>/dev/null | sed -n 's/^installed //p' || true)
mapfile -t missing < <(printf '%s\n' "${packages[@]}" | grep -vxF -f <(printf '%s\n' "$installed"))
if [ ${#missing[@]} -eq 0 ]; then
  say "setup: all ${#packages[@]} packages are installed"
  exit 0
fi

as_root=()
if [ "$(id -u)" != 0 ]; then
  command -v sudo >/dev/null || die "not root, and sudo is missing; run as root: apt-get install ${missing[*]}"
  as_root=(sudo)
fi
say "setup: missing ${#missing[@]} of ${#packages[@]} packages: ${missing[*]}"
log=$(mktemp)
trap 'rm -f "$log" "$log.update"' EXIT
trap interrupted INT

# Messages in English, no questions.
quietly() { "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive LC_ALL=C "$@" </dev/null 2>&1; }
# Waits for another installation: that of automatic upgrades usually ends within two minutes. Descriptor 3 is a copy of standard
# output for APT::Status-Fd: apt-get closes the one given there in dpkg, and packages' scripts need standard output.
apt_get() { quietly sh -c 'exec apt-get -q -y -o DPkg::Lock::Timeout=120 -o Dpkg::Use-Pty=0 "$@" 3>&1' sh "$@"; }
# What lacks a dependency fails here, and is finished by apt-get.
configure_unpacked() { quietly dpkg --configure -a --force-confold || true; }

# Shows the progress that apt-get reports between its other lines, which go to the log.
show_packages() {
  trap '' INT  # until apt-get ends
  local line percent text begun='' left
  while IFS= read -r line; do
    case $line in
      dlstatus:*)
        IFS=: read -r _ _ percent text <<<"$line"
        progress "setup: fetching: ${percent%.*} %, ${text,}" ;;
      pmstatus:*)
        IFS=: read -r _ _ percent text <<<"$line"
        percent=${percent%.*} begun=${begun:-$SECONDS} left=
        [ "$percent" -lt 5 ] || left=", about $(duration $(((SECONDS - begun) * (100 - percent) / percent))) left"
        progress "setup: installing: $percent %$left: ${text,}" ;;
      *) printf '%s\n' "$line" >>"$log" ;;
    esac
  done
  progress_end
}

# Says how much is to be fetched and installed, and whether that fits.
plan() {
  apt_get install --no-install-recommends --print-uris "${missing[@]}" >"$log" || return 1
  local count fetched used
  count=$(sed -nE 's/.* ([0-9]+) newly installed.*/\1/p' "$log")
  fetched=$(sed -nE 's|^Need to get ([0-9.,]+ .?B)(/.*)? of archives.*|\1|p' "$log")
  used=$(sed -nE 's/^After this operation, ([0-9.,]+ .?B) of additional disk space.*/\1/p' "$log")
  [ -n "$fetched" ] && [ -n "$used" ] || return 0
  say "setup: ${count:-${#missing[@]}} with their dependencies: $fetched to fetch, $used on the disk"
  local needed free
  needed=$(printf '%s\n' "$fetched" "$used" | tr -d , |
    awk -v keep="$keep_free" '{ sum += $1 * ($2 == "GB" ? 1000 : $2 == "MB" ? 1 : 0) } END { print int(sum + keep + 1) }')
  free=$(free_mb /usr)
  [ "$free" -ge "$needed" ] ||
    die "not enough space: $free MB are free in /usr, but the packages$([ "$keep_free" = 0 ] || echo " and the build") need $needed MB; make room there, then $again"
}

install() {
  : >"$log"
  apt_get install --no-install-recommends -o APT::Status-Fd=3 "${missing[@]}" | show_packages
}

# Did apt-get say this?
logged() { grep -qE -- "$1" "$log"; }

not_listed='Unable to locate package|has no installation candidate'

# The first names of standard input, as a list.
names() { sort -u | awk 'NR <= 6 { list = list (NR > 1 ? ", " : "") $1 } END { print list (NR > 6 ? " and " NR - 6 " more" : "") }'; }

# Why a package could not be fetched, without the names of servers.
why_not_fetched() {
  local status
  if logged "[Rr]esolv"; then echo "there is no network, or it finds no servers by name"
  elif logged 'Network is unreachable|[Cc]ould not connect|[Uu]nable to connect|Connection (refused|failed|timed out)|timed out'; then
    echo "the server of the packages cannot be reached"
  else
    status=$(sed -nE 's/^(E|W|Err).* ([45][0-9]{2} +[A-Za-z ]+).*/\2/p' "$log" | head -n 1 | tr -s ' ' | sed 's/ *$//;s/ \[.*//;s/ IP$//')
    echo "the server of the packages said ${status:-something unexpected (see above)}"
  fi
}

failed() {
  local list
  die_if_full "$(cat "$log")" /usr /var/cache/apt /tmp
  ! logged 'Could not get lock|Unable to (acquire|lock)' ||
    die "another program installs packages; wait until it has ended, then $again"
  list=$({ sed -nE 's|^E: Failed to fetch [^ ]*/([^_/ ]+)_[^/ ]*\.deb.*|\1|p' "$log"
           sed -nE "s/^E: (Unable to locate package ([^ ]+)|Package '([^']+)' has no installation candidate)/\2\3/p" "$log"; } | names)
  if logged 'Failed to fetch|Unable to fetch'; then
    logged '[Rr]esolv|[Cc]onnect|unreachable|timed out' || tail -n 10 "$log" >&2
    die "cannot fetch ${list:-the lists of packages}: $(why_not_fetched); when that has changed, $again"
  fi
  [ -z "$list" ] || die "this system has no package $list; it needs the sources of Debian 12 (/etc/apt)"
  list=$(sed -nE 's/^dpkg: error processing (package|archive) ([^ ]+) .*/\2/p' "$log" | sed -E 's|.*/||; s/_.*//' | names)
  tail -n 20 "$log" >&2
  die "${list:+cannot install $list: }apt-get failed (see above); fix the cause, then $again"
}

# Each remedy is tried once. An attempt continues from the packages that earlier ones fetched and installed.
repaired='' updated=''
until plan && install; do
  if [ -z "$repaired" ] && logged 'dpkg was interrupted|[Uu]nmet dependencies|--fix-broken'; then
    repaired=yes
    say "setup: finishing an installation that was interrupted"
    { configure_unpacked && apt_get install --fix-broken; } >"$log" || failed
  elif [ -z "$updated" ] && logged "$not_listed|404 +Not Found"; then
    updated=yes
    say "setup: fetching the lists of packages"
    # Lists that cannot be fetched are only warnings here. They count if packages are not found afterwards.
    { apt_get update || true; } | sed -n '/^[WE]: /p' >"$log.update"
  else
    ! logged "$not_listed" || cat "$log.update" >>"$log"
    failed
  fi
done
say "setup: done"
