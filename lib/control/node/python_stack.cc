#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <string_view>

#include "base/json.h"
#include "base/program_file.h"
#include "base/text.h"
#include "node/proc_view.h"
#include "node/stack_collector.h"

namespace fleet {
namespace {

constexpr size_t kMaxFrames = 24, kMaxName = 120, kMaxReason = 200;

// "/usr/bin/python3.11"; "" if it cannot be read.
std::string executable_of(pid_t pid) {
  std::error_code error;
  return std::filesystem::read_symlink(proc_folder(pid) + "/exe", error).string();
}

std::string frame_text(const std::string& function, const std::string& file, int64_t line) {
  return function.substr(0, kMaxName) + " (" + file + ":" + std::to_string(line) + ")";
}

// py-spy prints "Error: Failed to ...", "Caused by:" and a backtrace of itself.
std::string reason_in(const std::string& printed, const std::string& debugger) {
  for (const std::string& line : split(printed, '\n')) {
    if (line.empty()) continue;
    return debugger + " printed no Python stack: " +
           (line.starts_with("Error: ") ? line.substr(7) : line).substr(0, kMaxReason);
  }
  return debugger + " printed no Python stack";
}

PythonFrames frames_of_py_spy(const std::string& printed, pid_t pid) {
  PythonFrames found;
  // Warnings of py-spy may come first.
  size_t begin = printed.find("[\n");
  if (begin == std::string::npos) begin = printed.find('[');
  const auto threads = Json::try_parse(printed.substr(std::min(begin, printed.size())));
  const auto is_main = [&](const Json& thread) {
    return thread.is_object() && (thread.value("os_thread_id", Json()) == Json(pid) ||
                                  thread.value("thread_name", Json()) == Json("MainThread"));
  };
  if (threads && threads->is_array()) {
    const auto main = std::find_if(threads->begin(), threads->end(), is_main);
    const Json frames = main == threads->end() ? Json() : main->value("frames", Json());
    for (const Json& frame : frames) {
      if (!frame.is_object() || found.frames.size() == kMaxFrames) continue;
      const auto text = [&](const char* key) {
        const Json value = frame.value(key, Json());
        return value.is_string() ? value.get<std::string>() : std::string("?");
      };
      const Json line = frame.value("line", Json());
      found.frames.push_back(frame_text(text("name"), text("filename"),
                                        line.is_number_integer() ? line.get<int64_t>() : 0));
    }
  }
  if (found.frames.empty()) found.missing = reason_in(printed, "py-spy");
  return found;
}

// Lines of py-bt: '  File "/data/train.py", line 12, in step'.
PythonFrames frames_of_gdb(const std::string& printed) {
  PythonFrames found;
  for (const std::string& raw : split(printed, '\n')) {
    const std::string_view line = trim(raw);
    constexpr std::string_view kFile = "File \"", kLine = "\", line ", kIn = ", in ";
    if (!line.starts_with(kFile) || found.frames.size() == kMaxFrames) continue;
    const size_t end = line.find(kLine), in = line.find(kIn, std::min(end, line.size()));
    long long number = 0;
    if (end == std::string_view::npos || in == std::string_view::npos) continue;
    const size_t digits = end + kLine.size();
    if (!parse_int(std::string(line.substr(digits, in - digits)), &number)) continue;
    found.frames.push_back(frame_text(std::string(line.substr(in + kIn.size())),
                                      std::string(line.substr(kFile.size(), end - kFile.size())),
                                      number));
  }
  if (!found.frames.empty()) return found;
  found.missing = "gdb found no Python frames; py-spy would show them (pip install py-spy)";
  return found;
}

}  // namespace

bool runs_python(pid_t pid) {
  const std::string path = executable_of(pid);
  return path.substr(path.rfind('/') + 1).starts_with("python");
}

PythonDebugger find_python_debugger(pid_t pid) {
  PythonDebugger found;
  const std::string number = std::to_string(pid);
  if (const std::string path = find_on_path("py-spy"); !path.empty()) {
    // Without pausing it: py-spy cannot pause a process that is stopped already.
    return {PythonDebugger::kPySpy, {path, "dump", "--json", "--nonblocking", "--pid", number}, {}};
  }
  const std::string script = "/usr/share/gdb/auto-load" + executable_of(pid) + "-gdb.py";
  const std::string gdb = find_on_path("gdb");
  if (!gdb.empty() && ::access(script.c_str(), R_OK) == 0) {
    return {PythonDebugger::kGdb,
            {gdb, "-nx", "-batch", "-iex", "set width 0", "-iex", "set debuginfod enabled off",
             "-p", number, "-ex", "py-bt"},
            {}};
  }
  found.missing =
      "py-spy on the PATH of fleetrun (pip install py-spy), or gdb with python3-dbg, would show "
      "its Python frames";
  return found;
}

PythonFrames python_frames_of(PythonDebugger::Kind kind, const std::string& printed, pid_t pid) {
  return kind == PythonDebugger::kPySpy ? frames_of_py_spy(printed, pid) : frames_of_gdb(printed);
}

}  // namespace fleet
