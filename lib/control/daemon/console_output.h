// Writes the output of the nodes' launchers to this process's standard output and error.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "base/terminal_text.h"
#include "node/console.h"
#include "node/line_splitter.h"
#include "rendezvous/event_loop.h"

namespace fleet {

// Passes the output of a single node through. With several nodes, writes whole lines and prefixes
// those of launchers with their node; ranks' lines have a prefix already. Never blocks. Not thread
// safe.
class ConsoleOutput {
 public:
  // kRunningJob: standard output is that of the program. kHistory: recorded output goes to standard
  // output, without control sequences on a terminal.
  enum class Kind { kRunningJob, kHistory };
  ConsoleOutput(EventLoop& loop, bool several, Kind kind = Kind::kRunningJob);
  void write(const std::string& node, bool error, std::string_view text);
  void flush();  // writes incomplete lines
  bool full() const { return output_.full() || errors_.full(); }
  bool idle() const { return output_.idle() && errors_.idle(); }
  void on_drained(const std::function<void()>& callback);

 private:
  Console& console(bool error) { return error && kind_ == Kind::kRunningJob ? errors_ : output_; }

  Console output_, errors_;
  bool several_;
  Kind kind_;
  using Source = std::pair<std::string, bool>;
  std::map<Source, LineSplitter> lines_;
  std::map<Source, TerminalFilter> filters_;
};

}  // namespace fleet
