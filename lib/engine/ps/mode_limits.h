// Limits of the modes of parameter servers.
#pragma once

#include <span>

#include "ps/placement.h"
#include "ps/served_model.h"
#include "ps/tables/table_settings.h"
#include "strategy/server_settings.h"

namespace fleet::ps {

// tables: those that the job has on servers. kUnsupported naming the setting. In async: norms of
// gradients that several servers have, which come together only in a step of all trainers. In geo:
// tables that may be larger than the memory of a trainer, which holds the rows that it has used,
// and admission, because the servers do not see the occurrences of ids.
void check_mode(ServerMode mode, const ServedModel& model, const Placement& placement,
                std::span<const TableSettings> tables);

}  // namespace fleet::ps
