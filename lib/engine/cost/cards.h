// Rates of GPUs by name, for estimates on a machine without one.
#pragma once

#include <string>
#include <vector>

#include "cost/rates.h"

namespace fleet {

// "h200", "h100", ...
std::vector<std::string> card_names();

// Nominal rates: data sheets' dense figures x 0.8 for products and x 0.9 for memory, as in
// scripts/gpu/roofline.py. Case and a leading "nvidia " do not matter. kUsage for an unknown name.
MachineRates rates_of_card(const std::string& name);

// Bytes a second of an all_reduce among the GPUs of one node (bus bandwidth), as NCCL's ring
// reaches it; an estimate.
double card_link_bytes(const std::string& name);

}  // namespace fleet
