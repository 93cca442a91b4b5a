// The ids with which the ranks of an NCCL communicator find each other.
#pragma once

#include <nccl.h>

#include <functional>
#include <string>
#include <vector>

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

// The ids of communicator `name`, alike on all of its ranks: makes those that are this rank's to
// make, publishes them in the store, and waits for the others by wait(key, rank that makes it).
std::vector<ncclUniqueId> exchange_ids(
    const std::string& name, int rank, int ranks, Store& store,
    const std::function<std::string(const std::string& key, int maker)>& wait);

// "eth0 (10.0.0.1)": where the id's maker listens, which is the interface that NCCL starts on. ""
// where it cannot be told. To be called by the maker.
std::string interface_of(const ncclUniqueId& id);

}  // namespace fleet::nccl
