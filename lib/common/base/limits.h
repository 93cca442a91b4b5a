// The limits of a machine and a user that make a system call fail.
#pragma once

#include <exception>
#include <string>

namespace fleet {

// The request that a system call refused. kProcess: a process or a thread. kWatch: inotify. kPort:
// a port that the system chooses. kOther: anything else.
enum class Wanted { kOther, kProcess, kWatch, kPort };

// For Error::next(): the limit behind this errno, its present value, and how to raise it. "" if no
// limit explains the error. Throws nothing.
std::string limit_behind(int error, Wanted wanted = Wanted::kOther);

// The text of another library's exception, with the limit behind it: std::system_error and
// std::bad_alloc do not name any.
std::string text_with_limit(const std::exception& error);

}  // namespace fleet
