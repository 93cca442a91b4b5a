// A job's trace in Perfetto's format (proto/perfetto_trace.proto): ui.perfetto.dev opens it.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "viewing/trace/job_trace.h"

namespace fleet {

// Writes the file in pieces to `write`. Ranks whose node is not calibrated, or that are refused,
// must not be in the trace.
//
// Each rank is a process whose labels say how exact its times are; a process "launcher, node N" has
// what the launchers saw that belongs to no rank. Events that are much older than the rest are
// annotations of an instant at the beginning, so that the first view is not empty.
void write_perfetto(const JobTrace& trace, const std::function<void(std::string_view)>& write);

}  // namespace fleet
