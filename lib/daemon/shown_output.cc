#include "daemon/shown_output.h"

#include <unistd.h>

namespace fleet {

ShownOutput::ShownOutput(boost::asio::io_context& loop, bool several)
    : output_(loop, STDOUT_FILENO), errors_(loop, STDERR_FILENO), several_(several) {}

void ShownOutput::on_room(const std::function<void()>& callback) {
  output_.on_room(callback);
  errors_.on_room(callback);
}

void ShownOutput::write(const std::string& node, bool error, std::string_view text) {
  if (!several_) return (error ? errors_ : output_).write(text);
  std::string& begun = begun_[{node, error}];
  begun += text;
  const size_t end = begun.rfind('\n');
  if (end == std::string::npos) return;
  write_lines(node, error, std::string_view(begun).substr(0, end + 1));
  begun.erase(0, end + 1);
}

void ShownOutput::write_lines(const std::string& node, bool error, std::string_view text) {
  if (!error) return output_.write(text);
  while (!text.empty()) {
    const size_t end = text.find('\n');
    errors_.write("[" + node + "] " + std::string(text.substr(0, end)) + "\n");
    if (end == std::string_view::npos) return;
    text.remove_prefix(end + 1);
  }
}

void ShownOutput::flush() {
  for (auto& [source, text] : begun_) {
    if (!text.empty()) write_lines(source.first, source.second, text + "\n");
    text.clear();
  }
}

}  // namespace fleet
