// The ids with which the ranks of an NCCL communicator find each other.
#pragma once

#include <nccl.h>

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "store/store.h"

namespace fleet::nccl {

// An id contains the address at which its maker listens until all ranks of the communicator came:
// the maker must live so long.
ncclUniqueId make_unique_id();
// How many ids a communicator of so many ranks begins with. The maker of each answers a share of
// the ranks: with one id alone, thousands would queue up. Environment FLEET_NCCL_RANKS_PER_ID
// (128).
int ids_for(int ranks);
// The rank that makes id `index` of so many: the first of its share.
int maker_of(int index, int ids, int ranks);

// How a rank waits for the others' ids.
struct IdWait {
  // The key's value; nothing where it has not been set in time.
  std::function<std::optional<std::string>(const std::string& key)> get;
  std::function<Error(const std::vector<int>& ranks)> late;  // what these ranks not coming is
};
// The ids of communicator `name`, alike on all of its ranks: makes and publishes those that are
// this rank's to make. The first rank publishes all of them as one value, so that in a large world
// each rank asks the store once. Throws wait.late(the makers whose ids are missing).
std::vector<ncclUniqueId> exchange_ids(const std::string& name, int rank, int ranks, Store& store,
                                       const IdWait& wait);

// "eth0 (10.0.0.1)": where the id's maker listens, which is the interface that NCCL starts on. ""
// where it cannot be told. To be called by the maker.
std::string interface_of(const ncclUniqueId& id);

}  // namespace fleet::nccl
