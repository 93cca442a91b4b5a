#include "base/log.h"

#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/sink.h>
#include <unistd.h>

#include <algorithm>
#include <array>

#include "base/error.h"
#include "base/mutex.h"
#include "base/standard_error.h"
#include "base/terminal_text.h"
#include "base/text.h"

#if FMT_VERSION < 100000
template void fmt::detail::vformat_to<char>(fmt::detail::buffer<char>&, fmt::string_view,
                                            fmt::basic_format_args<fmt::format_context>,
                                            fmt::detail::locale_ref);
#endif

namespace fleet {
namespace {

// spdlog's own level names are lower-case.
class LevelName : public spdlog::custom_flag_formatter {
 public:
  void format(const spdlog::details::log_msg& message, const std::tm&,
              spdlog::memory_buf_t& line) override {
    const char* name = "DEBUG";
    if (message.level == spdlog::level::info) name = "INFO";
    if (message.level == spdlog::level::warn) name = "WARNING";
    if (message.level >= spdlog::level::err) name = "ERROR";
    while (*name) line.push_back(*name++);
  }
  std::unique_ptr<custom_flag_formatter> clone() const override {
    return std::make_unique<LevelName>();
  }
};

// Messages quote names and output of others, which must not control a terminal.
class SafeText : public spdlog::custom_flag_formatter {
 public:
  explicit SafeText(bool colors) : colors_(colors) {}
  void format(const spdlog::details::log_msg& message, const std::tm&,
              spdlog::memory_buf_t& line) override {
    const std::string text =
        escape_controls({message.payload.data(), message.payload.size()}, colors_);
    line.append(text.data(), text.data() + text.size());
  }
  std::unique_ptr<custom_flag_formatter> clone() const override {
    return std::make_unique<SafeText>(colors_);
  }

 private:
  bool colors_;
};

// Writes in colours if they are wanted, and never waits for a reader.
class StandardErrorSink : public spdlog::sinks::sink {
 public:
  explicit StandardErrorSink(bool colors) : colors_(colors) {}
  void log(const spdlog::details::log_msg& message) override {
    const MutexLock lock(mutex_);
    spdlog::memory_buf_t formatted;
    formatter_->format(message, formatted);
    std::string line(formatted.data(), formatted.size());
    if (colors_ && message.color_range_end > message.color_range_start) {
      line.insert(message.color_range_end, "\033[0m");
      line.insert(message.color_range_start, color_of(message.level));
    }
    write_standard_error(line);
  }
  void flush() override {}
  void set_pattern(const std::string& pattern) override {
    set_formatter(std::make_unique<spdlog::pattern_formatter>(pattern));
  }
  void set_formatter(std::unique_ptr<spdlog::formatter> formatter) override {
    const MutexLock lock(mutex_);
    formatter_ = std::move(formatter);
  }

 private:
  static const char* color_of(spdlog::level::level_enum level) {
    if (level >= spdlog::level::err) return "\033[31m\033[1m";
    if (level == spdlog::level::warn) return "\033[33m\033[1m";
    return level == spdlog::level::info ? "\033[32m" : "\033[36m";
  }

  const bool colors_;
  Mutex mutex_;
  std::unique_ptr<spdlog::formatter> formatter_ FLEET_GUARDED_BY(mutex_) =
      std::make_unique<spdlog::pattern_formatter>();
};

}  // namespace

void set_up_logging(const std::string& level, const std::string& process) {
  std::string name = level;
  std::transform(name.begin(), name.end(), name.begin(), ::toupper);
  const std::array<std::string, 4> names = {"DEBUG", "INFO", "WARNING", "ERROR"};
  const auto found = std::find(names.begin(), names.end(), name);
  if (found == names.end()) {
    throw Error(ErrorCode::kUsage, "unknown log level '" + level + "'", "--log_level",
                suggestion(name, names));
  }
  const spdlog::level::level_enum levels[] = {spdlog::level::debug, spdlog::level::info,
                                              spdlog::level::warn, spdlog::level::err};
  const bool colors = wants_colors(STDERR_FILENO);
  auto logger =
      std::make_shared<spdlog::logger>(process, std::make_shared<StandardErrorSink>(colors));
  auto formatter = std::make_unique<spdlog::pattern_formatter>();
  formatter->add_flag<LevelName>('*').add_flag<SafeText>('~', colors);
  formatter->set_pattern("%^%*%$ %Y-%m-%d %H:%M:%S,%e %n] %~");
  logger->set_formatter(std::move(formatter));
  logger->set_level(levels[found - names.begin()]);
  logger->flush_on(spdlog::level::warn);
  spdlog::set_default_logger(logger);
}

namespace {

struct Silenced {
  Mutex mutex;
  int number FLEET_GUARDED_BY(mutex) = 0;
  spdlog::level::level_enum level FLEET_GUARDED_BY(mutex) = spdlog::level::info;  // before
};

Silenced& silenced() {
  static Silenced all;
  return all;
}

}  // namespace

Silence::Silence() {
  Silenced& all = silenced();
  const MutexLock lock(all.mutex);
  if (all.number++ > 0) return;
  all.level = spdlog::get_level();
  spdlog::set_level(spdlog::level::off);
}

Silence::~Silence() {
  Silenced& all = silenced();
  const MutexLock lock(all.mutex);
  if (--all.number == 0) spdlog::set_level(all.level);
}

}  // namespace fleet
