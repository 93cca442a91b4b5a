#include "node/line_copies.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/log.h"

namespace fleet {

void LineCopies::begin(const CopiedLines& wanted) {
  wanted_ = wanted;
  file_.reset();
  if (!this->wanted()) return;
  file_ =
      UniqueFd(::open(wanted_.path.c_str(),
                      O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0644));
  if (!file_) complain(errno);
}

void LineCopies::offer(std::string_view label, std::string_view line) {
  const bool matches = std::any_of(
      wanted_.filters.begin(), wanted_.filters.end(),
      [&](const std::string& text) { return line.find(text) != std::string_view::npos; });
  if (!matches || !file_) return;
  std::string copy;
  copy.append(label).append(line);
  if (!copy.ends_with('\n')) copy += '\n';
  if (::write(file_.get(), copy.data(), copy.size()) < 0) complain(errno);
}

void LineCopies::complain(int reason) {
  if (std::exchange(complained_, true)) return;
  spdlog::warn("{}: cannot be written: {}", wanted_.path, std::strerror(reason));
}

}  // namespace fleet
