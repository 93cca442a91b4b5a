#include "comm/nccl/ids.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstring>
#include <memory>

#include "base/env.h"
#include "comm/nccl/library.h"

namespace fleet::nccl {
namespace {

std::string text_of(const sockaddr* address) {
  char text[INET6_ADDRSTRLEN] = "";
  if (address->sa_family == AF_INET) {
    ::inet_ntop(AF_INET, &reinterpret_cast<const sockaddr_in*>(address)->sin_addr, text,
                sizeof text);
  } else if (address->sa_family == AF_INET6) {
    ::inet_ntop(AF_INET6, &reinterpret_cast<const sockaddr_in6*>(address)->sin6_addr, text,
                sizeof text);
  }
  return text;
}

std::string bytes_of(const ncclUniqueId& id) { return {id.internal, sizeof id.internal}; }

// The store keys of a communicator's ids.
struct Keys {
  const std::string& name;
  std::string of(int index) const { return name + "/nccl/" + std::to_string(index); }
  std::string all() const { return name + "/nccl/all"; }
};

// On the first rank: concatenates its own id and those of the other makers.
std::optional<std::string> collect(const Keys& keys, std::string all, int ids, const IdWait& wait) {
  for (int index = 1; index < ids; ++index) {
    const auto id = wait.get(keys.of(index));
    if (!id) return std::nullopt;
    all += *id;
  }
  return all;
}

// The ranks that have not arrived. The first rank's id is in the store only together with all
// others.
std::vector<int> missing_makers(const Keys& keys, int ids, int ranks, const IdWait& wait) {
  std::vector<int> missing;
  for (int index = 1; index < ids; ++index) {
    if (!wait.get(keys.of(index))) missing.push_back(creator_of(index, ids, ranks));
  }
  if (missing.empty()) missing.push_back(0);
  return missing;
}

}  // namespace

ncclUniqueId make_unique_id() {
  ncclUniqueId id;
  const ncclResult_t result = ncclGetUniqueId(&id);
  if (result != ncclSuccess) throw error_of(result, "ncclGetUniqueId", nullptr);
  return id;
}

int ids_for(int ranks) {
  const auto share = std::max<long long>(1, env_int_or("FLEET_NCCL_RANKS_PER_ID", 128));
  return static_cast<int>((ranks + share - 1) / share);
}

int creator_of(int index, int ids, int ranks) {
  return static_cast<int>(static_cast<int64_t>(index) * ranks / ids);
}

std::vector<ncclUniqueId> exchange_ids(const std::string& name, int rank, int ranks, Store& store,
                                       const IdWait& wait) {
  const int ids = ids_for(ranks);
  const Keys keys{name};
  std::string own;
  for (int index = 0; index < ids; ++index) {
    if (creator_of(index, ids, ranks) != rank) continue;
    own = bytes_of(make_unique_id());
    if (rank != 0)
      // Each rank makes at most one id, because shares are not empty.
      store.set(keys.of(index), own);
  }
  std::optional<std::string> all = rank == 0 ? collect(keys, own, ids, wait) : wait.get(keys.all());
  if (all && rank == 0) store.set(keys.all(), *all);
  if (!all) throw wait.late(missing_makers(keys, ids, ranks, wait));
  FLEET_CHECK(all->size() == ids * sizeof(ncclUniqueId),
              "NCCL ids of " + std::to_string(all->size()) + " bytes");
  std::vector<ncclUniqueId> list(ids);
  std::memcpy(list.data(), all->data(), all->size());
  return list;
}

std::string interface_of(const ncclUniqueId& id) {
  // The layout is undocumented: a 64-bit number, then the socket address. It is used only if it is
  // an address of this machine.
  sockaddr_storage address{};
  std::memcpy(&address, id.internal + sizeof(uint64_t),
              std::min(sizeof address, sizeof id.internal - sizeof(uint64_t)));
  const std::string text = text_of(reinterpret_cast<const sockaddr*>(&address));
  ifaddrs* list = nullptr;
  if (text.empty() || ::getifaddrs(&list) != 0) return "";
  const std::unique_ptr<ifaddrs, void (*)(ifaddrs*)> owner(list, ::freeifaddrs);
  for (const ifaddrs* entry = list; entry; entry = entry->ifa_next) {
    if (entry->ifa_addr && text_of(entry->ifa_addr) == text) {
      return std::string(entry->ifa_name) + " (" + text + ")";
    }
  }
  return "";
}

}  // namespace fleet::nccl
