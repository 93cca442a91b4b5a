#include "train/rank_times.h"

#include <algorithm>
#include <cmath>

#include "comm/peer_wait_timer.h"
#include "tensor/host.h"

namespace fleet {
namespace {

// Lines of large jobs are long.
double seconds_between_lines(size_t ranks) {
  return std::max(2.0, static_cast<double>(ranks) / 20);
}

// Microseconds are precise enough, and short.
double rounded(double seconds) { return std::round(seconds * 1e6) / 1e6; }

// The time in which this thread waited for other ranks, or for its own collectives.
int64_t collective_wait_ns() { return host_wait_ns() + PeerWaitTimer::on_this_thread_ns(); }

double total(const MovingAverage& average) {
  return average.overall_mean() * static_cast<double>(average.count());
}

}  // namespace

void RankTimes::collect(const StepMeter& meter, int64_t waited_ns, RankCoordinator& control) {
  const Sums now = {static_cast<double>(meter.batch_time().count()), total(meter.batch_time()),
                    total(meter.data_time()), static_cast<double>(waited_ns) / 1e9};
  const double own[] = {now.steps - before_.steps, now.batch - before_.batch,
                        now.data - before_.data, now.waited - before_.waited};
  before_ = now;
  const auto all = control.by_rank(own);
  ranks_.resize(all.size());
  for (size_t rank = 0; rank < all.size(); ++rank) {
    ranks_[rank].steps += all[rank][0];
    ranks_[rank].batch += all[rank][1];
    ranks_[rank].data += all[rank][2];
    ranks_[rank].waited += all[rank][3];
  }
}

std::optional<EventLine> RankTimes::take_line(int64_t step, double now, bool all) {
  const bool due = all || now - written_ >= seconds_between_lines(ranks_.size());
  if (!due || ranks_.empty() || !(ranks_[0].steps > 0)) return std::nullopt;
  std::vector<double> batch, data, waited;
  for (const Sums& rank : ranks_) {
    const double steps = std::max(rank.steps, 1.0);
    batch.push_back(rounded(rank.batch / steps));
    data.push_back(rounded(rank.data / steps));
    waited.push_back(rounded(rank.waited / steps));
  }
  ranks_.clear();
  written_ = now;
  EventLine line("ranks");
  line.add("step", step)
      .add("batch_time", std::move(batch))
      .add("data_time", std::move(data))
      .add("wait_time", std::move(waited));
  return line;
}

void StepTotalsMeter::step_begins() { waited_before_ = collective_wait_ns(); }

const StepTotals& StepTotalsMeter::step_done(int64_t step, const StepMeter& meter,
                                             const data::Batch& batch,
                                             const data::ReaderWork& work) {
  constexpr double kNs = 1e9;
  totals_.waited = PeerWaitTimer::total_ns();
  totals_.samples = std::llround(meter.samples());
  totals_.time = std::llround(kNs * meter.batch_time().total());
  totals_.input += std::llround(kNs * batch.data_time);
  totals_.making = work.making_ns;
  totals_.reading = work.reading_ns;
  if (host_waits_) {
    const int64_t waited = collective_wait_ns() - waited_before_;
    totals_.exposed = std::max<int64_t>(totals_.exposed, 0) + waited;
    recent_waits_[static_cast<size_t>(step) % recent_waits_.size()] = waited;
    totals_.exchange += *std::ranges::min_element(recent_waits_);
  }
  return totals_;
}

}  // namespace fleet
