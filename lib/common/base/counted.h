// Numbers with their noun: "1 rank", "2 ranks".
#pragma once

#include <cstdint>
#include <string>

namespace fleet {

// `noun`: in the singular, with a regular plural.
inline std::string counted(int64_t number, const std::string& noun) {
  return std::to_string(number) + " " + noun + (number == 1 ? "" : "s");
}

}  // namespace fleet
