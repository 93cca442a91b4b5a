// What the nodes' launchers show, on this one's standard output and error.
#pragma once

#include <boost/asio/io_context.hpp>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "base/terminal_text.h"
#include "node/console.h"

namespace fleet {

// Of one node it goes out as it comes. Of several, whole lines: those of launchers with their node
// before them (ranks' own lines have it already). Never blocks. Not thread safe.
class ShownOutput {
 public:
  // A job that runs: standard output is its program's. What was kept of one and asked for goes to
  // standard output, and commands no terminal.
  enum class Of { kRunningJob, kKept };
  ShownOutput(boost::asio::io_context& loop, bool several, Of of = Of::kRunningJob);
  void write(const std::string& node, bool error, std::string_view text);
  void flush();  // lines that have no end yet
  bool full() const { return output_.full() || errors_.full(); }
  bool idle() const { return output_.idle() && errors_.idle(); }
  void on_room(const std::function<void()>& callback);

 private:
  Console& console(bool error) { return error && of_ == Of::kRunningJob ? errors_ : output_; }
  void write_lines(const std::string& node, bool error, std::string_view text);

  Console output_, errors_;
  bool several_;
  Of of_;
  using Source = std::pair<std::string, bool>;
  std::map<Source, std::string> begun_;  // lines without an end
  std::map<Source, TerminalFilter> filters_;
};

}  // namespace fleet
