// The placement of ids: each belongs to one of 1000 virtual shards, and each shard to one server.
#pragma once

#include <cstdint>

namespace fleet::ps {

inline constexpr int kVirtualShards = 1000;

// splitmix64's finaliser (Steele et al., OOPSLA 2014), as data::mix(), inlined. Structured ids
// (multiples, slot prefixes) become evenly distributed.
inline uint64_t mix_id(uint64_t id) {
  id += 0x9e3779b97f4a7c15u;
  id = (id ^ (id >> 30)) * 0xbf58476d1ce4e5b9u;
  id = (id ^ (id >> 27)) * 0x94d049bb133111ebu;
  return id ^ (id >> 31);
}

// The upper half of the mixed id chooses the shard; the lower half chooses the bucket in it.
inline int shard_of_mixed(uint64_t mixed) {
  return static_cast<int>(((mixed >> 32) * kVirtualShards) >> 32);
}
inline int shard_of(uint64_t id) { return shard_of_mixed(mix_id(id)); }

struct ShardRange {
  int first = 0;
  int end = kVirtualShards;  // behind the last
  int count() const { return end - first; }
  bool contains(int shard) const { return shard >= first && shard < end; }
};

// servers: 1..1000. Each server has a range of shards; sizes differ by at most one.
inline ShardRange shards_of_server(int server, int servers) {
  return {(kVirtualShards * server + servers - 1) / servers,
          (kVirtualShards * (server + 1) + servers - 1) / servers};
}
inline int server_of_shard(int shard, int servers) { return shard * servers / kVirtualShards; }
inline int server_of(uint64_t id, int servers) { return server_of_shard(shard_of(id), servers); }

}  // namespace fleet::ps
