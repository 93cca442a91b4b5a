// Two-level sums over any transport, with ranks in groups of equal size.
#pragma once

#include <memory>
#include <string>

#include "comm/communicator.h"

namespace fleet {

// all_reduce runs as three operations on the stream: reduce to the first rank of each group,
// all_reduce among the first ranks, broadcast within each group. Everything else goes through
// `flat`.
class TwoLevelCommunicator : public Communicator {
 public:
  // Collective over the ranks of `flat`, which must outlive it. Ranks 0 to group_size - 1 form the
  // first group. kUsage unless group_size is above 1 and divides flat's size into several groups.
  static std::unique_ptr<TwoLevelCommunicator> make(Communicator& flat, int group_size);

  int rank() const override { return flat_.rank(); }
  int size() const override { return flat_.size(); }
  std::string name() const override;  // "nccl in groups of 8"
  Buffer allocate(size_t bytes) override { return flat_.allocate(bytes); }
  std::unique_ptr<Communicator> split(std::span<const int> ranks) override {
    return flat_.split(ranks);
  }

  void issue(const CollectiveCall& call, Stream& stream) override;
  void set_group_name(const std::string& name) override;
  void abort(const Error& why) override;
  void throw_if_failed() const override;
  void launched(Stream& stream) override;
  std::optional<Traffic> traffic() const override;

 private:
  TwoLevelCommunicator(Communicator& flat, std::unique_ptr<Communicator> inner,
                       std::unique_ptr<Communicator> outer);

  Communicator& flat_;
  const std::unique_ptr<Communicator> inner_;  // within this group
  const std::unique_ptr<Communicator> outer_;  // among the groups' first ranks; null on the others
};

// Whether the transport already sums inside each host first. Groups would only repeat that.
bool reduces_within_hosts_first(const Communicator& communicator);

}  // namespace fleet
