// Notes for the user about PyTorch's flight recorder, in addition to the waits that it shows.
#pragma once

#include <string>
#include <vector>

#include "transport/control_messages.h"

namespace fleet {

// From Stacks::collectives: where the dumps are, which ranks wrote none and why, and how to switch
// the recorder on. A line each, at most eight; none without PyTorch ranks.
std::vector<std::string> flight_notes(const Stacks& all);

}  // namespace fleet
