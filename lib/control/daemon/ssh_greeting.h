// The start of a node's output over ssh. The start files of its shell may print something before
// fleetrun runs, such as an echo in ~/.bashrc. What follows the greeting is fleetrun's.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

#include "base/file.h"

namespace fleet {

class EventLoop;

// The node's script prints this line just before it becomes fleetrun.
inline constexpr std::string_view kSshGreeting = "fleetrun over_stdio follows\n";

// Finds the greeting in bytes that arrive in pieces.
class GreetingFinder {
 public:
  // Returns how many of these bytes precede the end of the greeting: all until it is found.
  size_t take(std::string_view bytes);
  bool found() const { return found_; }
  // Whether the output is too long to come from startup files.
  bool gives_up() const;
  // The output before the greeting.
  const std::string& printed() const { return seen_; }

 private:
  std::string seen_;
  bool found_ = false;
};

// Reads the socket up to the greeting. Calls `done` once, on the loop's thread: with the socket, or
// with none if it ended before, and what the node printed.
void await_greeting(EventLoop& loop, UniqueFd socket,
                    std::function<void(UniqueFd socket, const std::string& printed)> done);

}  // namespace fleet
