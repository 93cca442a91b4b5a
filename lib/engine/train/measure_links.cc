#include "train/measure_links.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "base/clock.h"
#include "comm/two_level.h"
#include "train/job_facts.h"

namespace fleet {
namespace {

// The largest is as large as the groups of gradients are by default, too large for most caches.
constexpr size_t kMinBytes = size_t{4} << 10, kMaxBytes = size_t{32} << 20;
constexpr double kLongestTransfer = 0.5, kLongest = 1.5;  // seconds
constexpr int kMaxRounds = 5;

// A communicator with the buffers of its messages.
struct Lane {
  Communicator* communicator;
  std::unique_ptr<Stream> stream;
  Buffer buffer;
};

Lane lane_of(Device& device, Communicator& communicator, bool accelerator) {
  // A named stream of the host has a thread, as those of a step's collectives.
  Lane lane{&communicator, device.make_stream("link"), communicator.allocate(kMaxBytes)};
  if (!accelerator) std::memset(lane.buffer.data(), 0, kMaxBytes);  // touches the pages
  return lane;
}

size_t next_size(size_t bytes) {
  return bytes < kMaxBytes ? std::min(4 * bytes, kMaxBytes) : bytes + 1;
}

// A message on each lane, at the same time.
void transfer(const std::vector<Lane>& lanes, size_t bytes) {
  for (const Lane& lane : lanes) {
    const View view{lane.buffer.data(), bytes / sizeof(float), DType::kFloat32};
    lane.communicator->all_reduce(view, view, ReduceOp::kSum, *lane.stream);
  }
  for (const Lane& lane : lanes) {
    lane.stream->synchronize();
    lane.communicator->throw_if_failed();
  }
}

// Each size in several rounds, as long as the time allows; all ranks stop after the same size.
std::vector<TransferSample> measure(const std::vector<Lane>& lanes, RankCoordinator& control,
                                    bool accelerator) {
  std::vector<TransferSample> samples;
  transfer(lanes, kMinBytes);  // connections are made
  double last = 0, all = 0;
  for (size_t bytes = kMinBytes; bytes <= kMaxBytes; bytes = next_size(bytes)) {
    if (4 * last > kLongestTransfer || all > kLongest) break;
    const int rounds = last > kLongestTransfer / 20 ? 2 : kMaxRounds;
    std::vector<double> seconds;
    const double used = processor_seconds();
    for (int round = 0; round < rounds; ++round) {
      const double start = monotonic_seconds();
      transfer(lanes, bytes);
      seconds.push_back(monotonic_seconds() - start);
    }
    const double busy = accelerator ? 0 : (processor_seconds() - used) / rounds;
    std::sort(seconds.begin(), seconds.end());
    const std::vector<double> own = {seconds[seconds.size() / 2], busy};
    TransferSample sample{.bytes = static_cast<double>(bytes)};
    for (const std::vector<double>& other : control.by_rank(own)) {
      sample.seconds = std::max(sample.seconds, other[0]);
      sample.busy = std::max(sample.busy, other[1]);
    }
    sample.busy = std::min(sample.busy, sample.seconds);
    last = sample.seconds;
    all += last * rounds;
    samples.push_back(sample);
  }
  return samples;
}

std::vector<int> all_of(const Communicator& communicator) {
  std::vector<int> ranks(static_cast<size_t>(communicator.size()));
  std::iota(ranks.begin(), ranks.end(), 0);
  return ranks;
}

}  // namespace

std::vector<LinkRates> measure_links(Device& device, Communicator& communicator,
                                     RankCoordinator& control, const LinkPlaces& places) {
  std::vector<LinkRates> links;
  const auto add = [&](const std::string& name, const std::vector<Lane>& lanes) {
    LinkRates link{.transport = name, .ranks = places.ranks, .nodes = places.nodes};
    link.communicators = static_cast<int>(lanes.size());
    link.all_reduce = measure(lanes, control, places.accelerator);
    links.push_back(std::move(link));
  };
  std::vector<Lane> lanes;
  lanes.push_back(lane_of(device, communicator, places.accelerator));
  add(communicator.name(), lanes);
  const std::unique_ptr<Communicator> second = communicator.split(all_of(communicator));
  lanes.push_back(lane_of(device, *second, places.accelerator));
  add(communicator.name(), lanes);
  // One message takes no longer than two: where it seemed to, something else was in the way.
  for (size_t i = 0; i < std::min(links[0].all_reduce.size(), links[1].all_reduce.size()); ++i) {
    TransferSample& one = links[0].all_reduce[i];
    one.seconds = std::min(one.seconds, links[1].all_reduce[i].seconds);
    one.busy = std::min(one.busy, one.seconds);
  }
  lanes.clear();
  const int here = places.ranks / std::max(places.nodes, 1);
  if (places.nodes > 1 && here > 1 && places.ranks % here == 0 &&
      !reduces_within_hosts_first(communicator)) {
    const auto grouped = TwoLevelCommunicator::make(communicator, here);
    lanes.push_back(lane_of(device, *grouped, places.accelerator));
    add(grouped->name(), lanes);
    lanes.clear();
  }
  return links;
}

}  // namespace fleet
