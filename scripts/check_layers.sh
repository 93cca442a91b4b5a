#!/usr/bin/env bash
# Checks the modules of lib/ against the table in docs/explanation/architecture.md: the includes of each module, the links of
# its CMake target, the places of third-party headers, and a few project rules. Within launch, tools may include starting, and
# starting may include planning. Prints one line per violation and exits with 1
# if there is one.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

sources() { git ls-files -co --exclude-standard -- "$@" | while read -r file; do [ ! -e "$file" ] || echo "$file"; done; }

cpp=$(sources lib apps | grep -E '\.(h|cc|cu|cuh)$' || true)
cmake=$(sources lib | grep -E 'CMakeLists\.txt$' || true)

tasks=$(sources lib/engine/models/tasks | sed -nE 's|.*/([a-z0-9_]+)\.cc$|\1|p' | paste -sd'|')

# shellcheck disable=SC2086  # the lists are split on purpose
awk -v tasks="$tasks" '
  function trim(s) { gsub(/^[ \t`]+|[ \t`]+$/, "", s); return s }

  # lib/engine/backend/cpu/relu.cc -> backend/cpu; lib/engine/comm/nccl/nccl.cc -> comm
  function module_of(path,   part) {
    split(path, part, "/")
    return part[3] == "backend" && part[4] !~ /\./ ? "backend/" part[4] : part[3]
  }
  # The stage of a path of launch: 1 planning, 2 starting, 3 tools, 4 its own folder; 0 for other modules.
  function stage_of(path,   part) {
    if (!match(path, /(^|\/)launch\//)) return 0
    split(substr(path, RSTART + RLENGTH), part, "/")
    return part[1] == "planning" ? 1 : part[1] == "starting" ? 2 : part[1] == "tools" ? 3 : 4
  }
  function allow(module, other) {
    if (other in seen) return
    seen[other]; allowed[module, other] = 1
    n_direct = split(direct[other], next_, " ")
    for (k = 1; k <= n_direct; k++) queue[++tail] = next_[k]
  }
  function close_table(   module, head) {
    for (module in direct) {
      delete seen; delete queue; head = 1; tail = 1; queue[1] = module
      while (head <= tail) allow(module, queue[head++])
    }
    closed = 1
  }
  function report(what) { printf "%s:%d: %s\n", FILENAME, FNR, what; bad = 1 }

  # --- the table ---------------------------------------------------------------------------------
  FILENAME == "docs/explanation/architecture.md" {
    if ($0 ~ /^\| *lib\/[a-z]+ *\|/) { in_table = 1; wing = $2; sub(/^lib\//, "", wing); next }
    if (in_table && $0 !~ /^\|/) in_table = 0
    if (!in_table || $0 ~ /^\|-/ || $0 ~ /^\| *-/) next
    split($0, cell, "|")
    n = split(cell[2], names, ",")
    for (i = 1; i <= n; i++) {
      list = cell[4]; gsub(/,/, " ", list)
      direct[trim(names[i])] = trim(list) == "-" ? "" : list
      wing_of[trim(names[i])] = wing
    }
    next
  }
  FNR == 1 && !closed {
    if (length(direct) == 0) { print "docs/explanation/architecture.md: the table of modules is missing"; bad = 1; exit }
    direct["proto"] = ""
    close_table()
    for (pair in allowed) {
      split(pair, ends, SUBSEP)
      if (wing_of[ends[2]] != "" && wing_of[ends[2]] != "common" && wing_of[ends[1]] != wing_of[ends[2]]) {
        print "docs/explanation/architecture.md: " ends[1] " may not depend on " ends[2] ": they are in different wings"; bad = 1
      }
    }
  }

  # --- the links of a target ----------------------------------------------------------------------
  FILENAME ~ /CMakeLists\.txt$/ {
    if ($0 ~ /^[ \t]*#/) next
    call = call " " $0
    while (match(call, /fleet_module\([^)]*\)/)) {
      text = substr(call, RSTART + 13, RLENGTH - 14)
      call = substr(call, RSTART + RLENGTH)
      words = split(text, word, /[ \t\n]+/)
      module = module_of(FILENAME); mode = ""
      for (i = 1; i <= words; i++) {
        if (word[i] ~ /^(DEPENDS|LINK|EXCLUDE|REGISTERS|FOLDERS)$/) { mode = word[i]; continue }
        other = word[i]; sub(/^backend_/, "backend/", other); sub(/^comm_.*/, "comm", other)
        if (mode == "DEPENDS" && other != "" && !((module, other) in allowed))
          report("module " module " may not depend on " other)
      }
    }
    next
  }

  # --- the includes of a file ---------------------------------------------------------------------
  {
    app = FILENAME ~ /^apps\//
    module = module_of(FILENAME)
    if (!app && module in direct && FILENAME !~ "^lib/" wing_of[module] "/")
      report(FILENAME " does not stand in lib/" wing_of[module] ", where the table has its module")
    if (!app && !(module in direct) && !(module in unknown)) {
      unknown[module]; report("lib/" module " is not in the table of modules (docs/explanation/architecture.md)")
    }
  }
  /^[ \t]*#[ \t]*include/ {
    if (match($0, /"[^"]*"/)) {
      header = substr($0, RSTART + 1, RLENGTH - 2)
      split(header, part, "/")
      other = part[1]
      if (other == "backend") other = "backend/" part[2]
      if (header ~ /\.pb\.h$/) other = "proto"
      if (header !~ /\//) { if (!app && header !~ /\.pb\.h$/) report("include \"" header "\" with its module: \"module/file.h\"") }
      else if (!app && other in direct && !((module, other) in allowed))
        report("module " module " may not include " header)
      if (module == "launch" && other == "launch" && stage_of(header) > stage_of(FILENAME))
        report("launch may include only from tools to starting to planning, not " header)
      if (app && module ~ /^(fleetrun|fleetd)$/ && wing_of[other] == "engine")
        report("the launcher must not use the engine: " header)
    }
    if (match($0, /[<"][^>"]*[>"]/)) {
      header = substr($0, RSTART + 1, RLENGTH - 2)
      owner = ""
      if (header ~ /^nccl.*\.h$/) owner = "^lib/engine/comm/nccl/|^lib/engine/comm/nccl[^/]*$"
      else if (header ~ /^(cudnn|cublas|cuda|nvtx|nvml)/) owner = "^lib/engine/backend/cuda/|^lib/engine/comm/nccl"
      else if (header ~ /^gloo\//) owner = "^lib/engine/comm/gloo"
      else if (header ~ /^(dnnl|oneapi)/) owner = "^lib/engine/backend/cpu/"
      else if (header ~ /^(grpc|grpcpp)\// || header ~ /\.grpc\.pb\.h$/) owner = "^lib/(common/transport|control/rendezvous|control/daemon|engine/ps/transport)/"
      else if (header ~ /^CLI\//) owner = "^apps/|^lib/common/base/read_options"
      else if (header ~ /^boost\/asio/) owner = "^lib/(common/transport/(event_loop|loop_descriptor|asio|tcp_listener|http_message|http_server)|control/launch/starting/proxies|control/viewing/web/https)\\.cc$"
      else if (header ~ /^boost\//) owner = "^lib/(control|common/transport)/|^apps/(fleetrun|fleetd)/"
      else if (header ~ /^nlohmann\//) owner = "^lib/common/base/json_text\\.cc$"
      else if (header ~ /^spdlog\//) owner = "^lib/common/base/log\\.|^lib/common/base/"
      else if (header == "zlib.h") owner = "^lib/engine/(data/|text/gzip_text)"
      else if (header ~ /^(jpeglib|turbojpeg|jerror|png|gif_lib|tiffio|webp\/.*)\.h$/) owner = "^lib/engine/data/"
      else if (header ~ /^rocksdb\//) owner = "^lib/engine/ps/tables/rocksdb_store"
      else if (header ~ /^minizip\//) owner = "^lib/engine/train/zip_file"
      else if (header ~ /^openssl\//) owner = "^lib/common/transport/(certificates|datagram_heartbeats)"
      else if (header ~ /^omp\.h$/) owner = "^lib/(common/base|engine/(comm|backend/cpu|data))/"
      if (owner != "" && FILENAME !~ owner) report("only its adapter may include <" header ">")
    }
  }
  # --- project rules ------------------------------------------------------------------------------
  /^[ \t]*#[ \t]*(if|ifdef|ifndef|elif).*(CUDA|CUDNN|NCCL|DNNL|GLOO)/ && FILENAME !~ /^lib\/engine\/(backend|comm\/(nccl|gloo))\// {
    report("no #ifdef for a backend in shared code: CMake adds the folder or leaves it out")
  }
  /[=!]= *"(cpu|cuda)"/ && FILENAME !~ /^lib\/(engine\/backend\/|engine\/exec\/backend\.|control\/launch\/)/ {
    report("no == \"cpu\" or \"cuda\" outside the registry of backends: ask BackendDef (exec/backend.h) or the Device")
  }
  FILENAME ~ /^(lib|apps)\// && FILENAME !~ /^lib\/engine\/models\/tasks\// && $0 ~ "[=!]= *\"(" tasks ")\"|\"(" tasks ")\" *[=!]=" {
    report("no comparison with a task: it declares what differs (models/task.h)")
  }
  /(^|[^A-Za-z0-9_.>])(std::)?exit\(/ && !app && $0 !~ /^[ \t]*\/\// { report("no exit() in lib/: throw fleet::Error") }
  /std::((recursive_|shared_|timed_)*mutex|condition_variable|(lock_guard|unique_lock|scoped_lock|shared_lock)[^_A-Za-z])/ &&
      FILENAME !~ /^lib\/common\/base\/(mutex\.h|static_log\.cc)$/ {
    report("no std::mutex: use Mutex, MutexLock and CondVar of base/mutex.h, whose use the compiler checks")
  }
  END { exit bad }
' docs/explanation/architecture.md $cmake $cpp
