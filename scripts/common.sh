# shellcheck shell=bash
# Sourced by the scripts in this folder: strict mode, the repository root as working directory, a few helpers.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# Prints a progress line to standard error, so that standard output carries only the script's result.
say() { printf '== %s\n' "$*" >&2; }
die() { printf '%s: %s\n' "$(basename "$0")" "$*" >&2; exit 1; }

# What to do after a failure, for scripts that can be started again.
again="start it again: it resumes where it stopped"

# For `trap interrupted INT`: Ctrl-C.
interrupted() {
  progress_end
  printf '%s: interrupted; %s\n' "$(basename "$0")" "$again" >&2
  exit 130
}

# progress TEXT: how far a long command is: one line that changes on a terminal, elsewhere a line every 30 s.
progress() {
  if [ -t 2 ]; then
    printf '\r\033[K== %s' "$*" >&2
    progress_open=yes
  elif [ -z "${progress_at:-}" ] || [ $((SECONDS - progress_at)) -ge 30 ]; then
    say "$*"
    progress_at=$SECONDS
  fi
}
# Ends the line, so that other output starts on a new one.
progress_end() {
  [ -z "${progress_open:-}" ] || printf '\r\033[K' >&2
  progress_open=
}
# duration SECONDS: in words.
duration() {
  if [ "$1" -lt 90 ]; then echo "$1 s"; else echo "$((($1 + 30) / 60)) minutes"; fi
}

# existing FOLDER: the folder, or the one in which it will be made.
existing() {
  local folder=$1
  while [ ! -e "$folder" ]; do folder=$(dirname "$folder"); done
  echo "$folder"
}

# free_mb FOLDER: the megabytes that are free where the folder is, or will be.
free_mb() { df -Pk "$(existing "$1")" | awk 'END { print int($4 / 1024) }'; }

# die_if_full OUTPUT FOLDER...: names the folder that is full, if that is why a command with this output failed.
die_if_full() {
  local output=$1 folder free least='' where=''
  shift
  for folder in "$@"; do
    free=$(free_mb "$folder")
    [ -n "$least" ] && [ "$free" -ge "$least" ] || { least=$free where=$folder; }
  done
  # A linker whose output does not fit may end without a message.
  grep -qE 'No space left on device|Disk quota exceeded|enough free space' <<<"$output" || [ "$least" -lt 20 ] || return 0
  die "no space left in $where ($least MB are free now); make room there, then $again"
}

# Number of compile jobs: one per core, limited by memory (gRPC's and json's headers take about 1 GB per job).
job_count() {
  local cores memory
  cores=$(nproc)
  memory=$(awk '/^MemAvailable:/ {print int($2 / 1000000)}' /proc/meminfo 2>/dev/null || echo "$cores")
  [ "$memory" -ge 1 ] || memory=1
  echo $((cores < memory ? cores : memory))
}

# CPU-seconds of this script's commands that have ended.
cpu_seconds() { awk -v ticks="$(getconf CLK_TCK)" '{ print int(($16 + $17) / ticks) }' "/proc/$$/stat"; }

# within SECONDS TEXT COMMAND...: ends the command after so long, with a line that names TEXT and what still ran. Only what made a
# process group of its own survives.
within() {
  local limit=$1 text=$2 group watch status=0
  shift 2
  set -m  # a process group for each
  "$@" &
  group=$!
  {
    sleep "$limit"
    say "$text: not done after $limit s; it is ended while these run:"
    ps -eo pgid=,etimes=,args= | awk -v group="$group" '$1 == group { $1 = ""; print " " substr($0, 1, 300) }' >&2
    kill -KILL -- "-$group"
  } &
  watch=$!
  set +m
  trap 'kill -TERM -- "-$group" "-$watch" 2>/dev/null; exit 130' INT TERM  # which do not reach other groups
  wait "$group" || status=$?
  trap - INT TERM
  kill -TERM -- "-$watch" 2>/dev/null || true
  wait "$watch" 2>/dev/null || true
  return "$status"
}

# stage TEXT COMMAND...: says what it does and how long it took. FLEET_STAGE_LOG, if set: appends text, seconds and CPU-seconds.
# FLEET_STAGE_LIMITS, if set: seconds at most, "TEXT=SECONDS ...", for the stages that it names.
stage() {
  local text=$1 begun=$SECONDS cpu
  cpu=$(cpu_seconds)
  shift
  say "$text"
  if [[ " ${FLEET_STAGE_LIMITS:-} " =~ \ $text=([0-9]+)\  ]]; then
    within "${BASH_REMATCH[1]}" "$text" "$@"
  else
    "$@"
  fi
  say "$text: done in $((SECONDS - begun)) s"
  [ -z "${FLEET_STAGE_LOG:-}" ] || printf '%s\t%d\t%d\n' "$text" $((SECONDS - begun)) $(($(cpu_seconds) - cpu)) >>"$FLEET_STAGE_LOG"
}

# group_by_folder FILE...: groups of sources of one folder each that can be compiled as one (source_groups.awk), a line each.
group_by_folder() {
  printf '%s\n' "$@" | sed 's|/[^/]*$||' | sort -u | while read -r folder; do
    printf '%s\n' "$@" | grep -E "^$folder/[^/]*\$" | xargs awk -v size=8 -f scripts/source_groups.awk
  done
}

# group_if_new PRESET [OFF]: a folder's first build compiles sources in groups, which takes half of the time; with OFF single files,
# for a folder in which sources will change. FLEET_GROUP_SOURCES of the user comes first; a folder that exists stays as it is.
group_if_new() { [ -e "build/$1/CMakeCache.txt" ] || export FLEET_GROUP_SOURCES=${FLEET_GROUP_SOURCES:-${2:-ALL}}; }

# configure PRESET [CMAKE_OPTION...]: configures build/PRESET. FLEET_GROUP_SOURCES, if set: scripts/cmake/group_sources.cmake.
# FLEET_CUDA_UNOPTIMIZED, if set: scripts/cmake/options.cmake.
configure() {
  local preset=$1 output
  shift
  say "configure build/$preset"
  output=$(cmake --preset "$preset" ${FLEET_GROUP_SOURCES:+"-DFLEET_GROUP_SOURCES=$FLEET_GROUP_SOURCES"} \
    ${FLEET_CUDA_UNOPTIMIZED:+"-DFLEET_CUDA_UNOPTIMIZED=$FLEET_CUDA_UNOPTIMIZED"} "$@" 2>&1) || {
    printf '%s\n' "$output" >&2
    die_if_full "$output" "$PWD/build"
    die "cmake --preset $preset failed; run scripts/setup.sh if a package is missing"
  }
  grep -E '^-- CUDA' <<<"$output" >&2 || true
}

# build PRESET [TARGET...]: configures build/PRESET and builds the targets (default: everything).
build() {
  configure "$1"
  compile "$@"
}

# compile PRESET [TARGET...]: the same, in a folder that is configured.
compile() {
  local preset=$1
  shift
  say "build/$preset: ${*:-everything}"
  # Redirect to standard error: standard output carries only the script's result.
  local targets=()
  [ $# -eq 0 ] || targets=(--target "$@")
  cmake --build "build/$preset" -j "$(job_count)" "${targets[@]}" >&2
}
