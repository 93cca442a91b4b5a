// Parameter servers, and the trainers' use of them, in the live table. Pure.
#pragma once

#include <vector>

#include "transport/control_messages.h"

namespace fleet {

// Between two reports of a server.
wire::LiveServer live_server(const wire::ServerReport& from, const wire::ServerReport& to);
// Between two reports of a trainer, of which the second one has `servers`.
wire::LiveServerUse live_server_use(const RankSteps& from, const RankSteps& to);
// Two reports of a trainer.
struct UsePeriod {
  const wire::ServerUse *from, *to;
};
// Adds the milliseconds of an update for which this server leaves a request of a trainer without an
// answer, for each server in `report`, for the trainer that waits least. Marks the slowest server,
// if there are several.
void add_answer_times(const std::vector<UsePeriod>& uses, LiveReport* report);

}  // namespace fleet
