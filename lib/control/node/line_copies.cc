#include "node/line_copies.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/error.h"
#include "base/log.h"
#include "base/owned_file.h"

namespace fleet {

void LineCopies::begin(const wire::CopiedLines& wanted) {
  wanted_ = wanted;
  file_.reset();
  if (!this->wanted()) return;
  try {
    file_ = open_owned_file(wanted_.path(), O_WRONLY | O_CREAT | O_APPEND);
  } catch (const Error& error) {
    warn_once(error.failure());
  }
}

void LineCopies::offer(std::string_view label, std::string_view line) {
  const bool matches = std::any_of(
      wanted_.filters().begin(), wanted_.filters().end(),
      [&](const std::string& text) { return line.find(text) != std::string_view::npos; });
  if (!matches || !file_) return;
  std::string copy;
  copy.append(label).append(line);
  if (!copy.ends_with('\n')) copy += '\n';
  if (::write(file_.get(), copy.data(), copy.size()) < 0) warn_once(std::strerror(errno));
}

void LineCopies::warn_once(const std::string& reason) {
  if (std::exchange(warned_, true)) return;
  spdlog::warn("{}: cannot be written: {}", wanted_.path(), reason);
}

}  // namespace fleet
