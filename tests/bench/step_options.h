// The options that benchmarks of a whole training step share.
#pragma once

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "exec/backend.h"

namespace fleet::bench {

struct StepOptions {
  int rounds = 0;
  bool bf16 = false, profile = false, print_plan = false;

  // Takes argument *i if it is --bf16, --rounds N, --profile or --print_plan; false: it is not.
  bool take(int argc, char** argv, int* i) {
    const std::string word = argv[*i];
    if (word == "--rounds" && *i + 1 < argc) {
      rounds = std::max(1, std::atoi(argv[++*i]));
    } else if (word == "--bf16") {
      bf16 = true;
    } else if (word == "--profile") {
      profile = true;
    } else if (word == "--print_plan") {
      print_plan = true;
    } else {
      return false;
    }
    return true;
  }

  // Whether the CPU has what they ask for; else prints why not.
  bool can_run() const {
    std::string why;
    if (!bf16 || !low_precision_types("cpu", &why).empty()) return true;
    std::printf("SKIP: %s\n", why.c_str());
    return false;
  }
};

}  // namespace fleet::bench
