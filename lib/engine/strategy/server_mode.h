// How trainers and parameter servers work together, by Paddle's keys a_sync and a_sync_configs and
// its variables FLAGS_communicator_* (python/paddle/distributed/ps/utils/public.py).
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "strategy/server_settings.h"
#include "strategy/strategy_file.h"

namespace fleet {

// Without a_sync, or with false, sync; with true async; with k_steps above 0 geo, unless a_sync is
// false. Only a set a_sync counts: the field's default is true. kUsage for contradictions and
// values out of range; kUnsupported naming each key with a value that is not supported: those of
// heterogeneous trainers, of servers on GPUs, and lr_decay_steps.
ServerSettings server_settings(const StrategyProto& proto);

// The given fields that this mode does not read, by their paths.
std::vector<std::string> unread_server_fields(const StrategyProto& proto, ServerMode mode);

// Whether it is one of Paddle's variables of servers without a key of their own
// (FLAGS_rpc_retry_times, ...).
bool is_server_variable(const std::string& name);
// `variable` gives their values, as base/env.h does. kUnsupported naming the first that does not
// have its default.
void check_server_variables(
    const std::function<std::optional<std::string>(const std::string&)>& variable);

}  // namespace fleet
