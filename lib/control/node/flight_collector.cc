#include "node/flight_collector.h"

#include <algorithm>
#include <thread>
#include <utility>

namespace fleet {
namespace {

constexpr std::chrono::milliseconds kPollInterval{20};
// Of the limit: to read the dumps that come at the last moment.
constexpr std::chrono::milliseconds kReadTime{300};

}  // namespace

FlightCollector::~FlightCollector() {
  if (!search_) return;
  search_->cancel();
  search_->wait_until_ended(std::chrono::steady_clock::now() + std::chrono::seconds(1));
}

void FlightCollector::collect(const std::vector<Target>& targets, const std::string& folder,
                              std::chrono::milliseconds limit, Done on_done) {
  if (on_done_) return;
  on_done_ = std::move(on_done);
  deadline_ = std::chrono::steady_clock::now() + limit;
  // A search that a disk has blocked is not joined by another one.
  if (!search_ || search_->ended()) {
    search_ =
        std::make_shared<FlightSearch>(targets, folder, std::max(limit - kReadTime, limit / 2));
    std::thread([search = search_] { search->run(); }).detach();
  }
  poll_later();
}

void FlightCollector::poll_later() {
  timer_.after(kPollInterval, [this] { poll(); });
}

void FlightCollector::poll() {
  if (search_->ended() || std::chrono::steady_clock::now() >= deadline_) {
    return std::exchange(on_done_, nullptr)(search_->results());
  }
  poll_later();
}

}  // namespace fleet
