// Messages of the parsers, a million times a minute, would hide what is found.
#include "base/log.h"

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  spdlog::set_level(spdlog::level::off);
  return 0;
}
