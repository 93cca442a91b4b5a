#include "base/log.h"

#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/stdout_color_sinks.h>

#include <algorithm>
#include <array>

#include "base/error.h"
#include "base/text.h"

namespace fleet {
namespace {

// spdlog's own names are in small letters.
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

}  // namespace

void set_up_logging(const std::string& level, const std::string& who) {
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
  auto logger = std::make_shared<spdlog::logger>(
      who, std::make_shared<spdlog::sinks::stderr_color_sink_mt>());
  auto formatter = std::make_unique<spdlog::pattern_formatter>();
  formatter->add_flag<LevelName>('*').set_pattern("%^%*%$ %Y-%m-%d %H:%M:%S,%e %n] %v");
  logger->set_formatter(std::move(formatter));
  logger->set_level(levels[found - names.begin()]);
  logger->flush_on(spdlog::level::warn);
  spdlog::set_default_logger(logger);
}

}  // namespace fleet
