// Fuzz targets: each feeds untrusted bytes to one of our parsers.
//
//   FLEET_FUZZ(pmi) { parse(bytes); }
//
// A target takes `bytes`, a std::string_view. It may end with a fleet::Error. Any other exception,
// a crash, a sanitizer's report, a hang or too much memory is a finding. The target registers
// itself for replay.cc; where FLEET_LIBFUZZER is defined it is libFuzzer's as well.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace fleet::fuzz {

struct Target {
  const char* name;
  void (*run)(std::string_view bytes);
};

inline std::vector<Target>& targets() {
  static std::vector<Target> all;
  return all;
}

inline bool add_target(const char* name, void (*run)(std::string_view bytes)) {
  targets().push_back({name, run});
  return true;
}

// Runs a parser that may refuse its input.
template <typename Parser>
void attempt(const Parser& parser) {
  try {
    parser();
  } catch (const Error&) {
  }
}

// A condition that holds for every input. Ends the process: an Error would not be a finding.
inline void require(bool condition, const char* what) {
  if (condition) return;
  std::fprintf(stderr, "not true: %s\n", what);
  std::abort();
}

// Values that are read for the sanitizers' sake: no compiler leaves the reading out.
inline void use(unsigned value) {
  static volatile unsigned used;
  used = value;
  (void)used;
}

// Takes a prefix off the input: for targets that need a number besides the bytes.
inline uint8_t take_byte(std::string_view* bytes) {
  if (bytes->empty()) return 0;
  const auto first = static_cast<uint8_t>(bytes->front());
  bytes->remove_prefix(1);
  return first;
}

}  // namespace fleet::fuzz

#ifdef FLEET_LIBFUZZER
#define FLEET_FUZZ_ENTRY(name)                                               \
  extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {  \
    const std::string_view bytes(reinterpret_cast<const char*>(data), size); \
    ::fleet::fuzz::attempt([&] { fleet_fuzz_##name(bytes); });               \
    return 0;                                                                \
  }
#else
#define FLEET_FUZZ_ENTRY(name)
#endif

#define FLEET_FUZZ(name)                                       \
  static void fleet_fuzz_##name(std::string_view bytes);       \
  [[maybe_unused]] static const bool fleet_fuzz_added_##name = \
      ::fleet::fuzz::add_target(#name, fleet_fuzz_##name);     \
  FLEET_FUZZ_ENTRY(name)                                       \
  static void fleet_fuzz_##name(std::string_view bytes)
