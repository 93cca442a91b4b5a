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

int maker_of(int index, int ids, int ranks) {
  return static_cast<int>(static_cast<int64_t>(index) * ranks / ids);
}

std::vector<ncclUniqueId> exchange_ids(
    const std::string& name, int rank, int ranks, Store& store,
    const std::function<std::string(const std::string& key, int maker)>& wait) {
  const int ids = ids_for(ranks);
  const auto key = [&](int index) { return name + "/nccl/" + std::to_string(index); };
  std::vector<ncclUniqueId> all(ids);
  for (int index = 0; index < ids; ++index) {
    if (maker_of(index, ids, ranks) != rank) continue;
    all[index] = make_unique_id();
    store.set(key(index), std::string_view(all[index].internal, sizeof all[index]));
  }
  for (int index = 0; index < ids; ++index) {
    const int maker = maker_of(index, ids, ranks);
    if (maker == rank) continue;
    const std::string id = wait(key(index), maker);
    FLEET_CHECK(id.size() == sizeof all[index],
                "an NCCL id of " + std::to_string(id.size()) + " bytes");
    std::memcpy(all[index].internal, id.data(), id.size());
  }
  return all;
}

std::string interface_of(const ncclUniqueId& id) {
  // Not documented: a 64-bit number, then the socket address. So it is believed only where it is an
  // address of this machine.
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
