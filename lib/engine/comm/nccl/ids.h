// The ids through which the ranks of an NCCL communicator find each other.
#pragma once

#include <nccl.h>

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "store/store.h"

namespace fleet::nccl {

// An id contains the address at which its maker listens until all ranks of the communicator have
// connected. The maker must live until then.
ncclUniqueId make_unique_id();
// The number of ids for a communicator of `ranks` ranks. The maker of each id serves a share of the
// ranks; with a single id, thousands would queue up. Environment variable FLEET_NCCL_RANKS_PER_ID
// (default 128).
int ids_for(int ranks);
// The rank that makes id `index` of `ids`: the first of its share.
int creator_of(int index, int ids, int ranks);

// How a rank waits for the ids of others.
struct IdWait {
  // The key's value; empty if it was not set in time.
  std::function<std::optional<std::string>(const std::string& key)> get;
  // The error if these ranks do not arrive.
  std::function<Error(const std::vector<int>& ranks)> late;
};
// Returns the ids of communicator `name`, identical on all its ranks. Makes and publishes the ids
// that this rank is responsible for. The first rank publishes all ids as one value, so that each
// rank of a large world asks the store once. Throws wait.late(makers of the missing ids).
std::vector<ncclUniqueId> exchange_ids(const std::string& name, int rank, int ranks, Store& store,
                                       const IdWait& wait);

// "eth0 (10.0.0.1)": the address at which the id's maker listens, which is the interface that NCCL
// bootstraps on. "" if unknown. Call it on the maker.
std::string interface_of(const ncclUniqueId& id);

}  // namespace fleet::nccl
