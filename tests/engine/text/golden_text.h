// The values of scripts/make_golden_text.py.
#pragma once

#include <string>

#include "base/file.h"
#include "base/json.h"
#include "tests/test_paths.h"

namespace fleet::text::testing {

inline Json golden_text(const std::string& name) {
  return Json::parse(read_file(source_folder() + "/tests/golden/text/" + name + ".json"));
}

}  // namespace fleet::text::testing
