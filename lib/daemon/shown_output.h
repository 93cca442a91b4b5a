// What several nodes' launchers show, on this one's standard output and error.
#pragma once

#include <boost/asio/io_context.hpp>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "node/console.h"

namespace fleet {

// Of one node it goes out as it comes. Of several, whole lines: those of standard error with their
// node before them (ranks' own lines have it already). Never blocks. Not thread safe.
class ShownOutput {
 public:
  ShownOutput(boost::asio::io_context& loop, bool several);
  void write(const std::string& node, bool error, std::string_view text);
  void flush();  // lines that have no end yet
  bool full() const { return output_.full() || errors_.full(); }
  bool idle() const { return output_.idle() && errors_.idle(); }
  void on_room(const std::function<void()>& callback);

 private:
  void write_lines(const std::string& node, bool error, std::string_view text);

  Console output_, errors_;
  bool several_;
  std::map<std::pair<std::string, bool>, std::string> begun_;  // lines without an end, by source
};

}  // namespace fleet
