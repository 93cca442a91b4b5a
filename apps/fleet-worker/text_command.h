// Parts that the commands on texts share.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/config.h"

namespace fleet {

// The value of an option that the command cannot do without. kUsage naming it.
std::string required_path(const Settings& given, const std::string& key,
                          const std::string& command);
int64_t in_mib(int64_t bytes);
std::string count_text(int64_t count);       // "12.3 million"
void write_progress(std::string_view text);  // to standard error

}  // namespace fleet
