#include "train/step_runner.h"

#include "base/error.h"

namespace fleet {

StepRunner::StepRunner(const Job& job, const Shape& image, Device& device,
                       const StepRunnerOptions& options)
    : device_(device) {
  const SessionOptions session{.rank = options.rank,
                               .world = options.world,
                               .nodes = options.nodes,
                               .seed = static_cast<uint64_t>(job.train.integer("seed")),
                               .backend = device.backend()};
  session_ = std::make_unique<Session>(job, image, session, device, options.communicator);
  if (options.store && options.world > 1) {
    session_->compare_plans(
        *options.store,
        std::chrono::milliseconds(static_cast<int64_t>(job.comm.number("timeout") * 1000)));
  }
  session_->open_links(device);
  executor().set_recording(job.train.boolean("cuda_graph"));
  executor().set_checking(job.train.boolean("check_nan_inf"));
  traffic_.emplace(session_->communicators());
  make_prefetcher();
  control_ =
      std::make_unique<RankCoordinator>(options.control ? options.control : options.communicator);
  watch_.emplace(executor(), device, *control_, options.rank, on_nan_of(job));
}

// The feeds, in the order of feed().
void StepRunner::make_prefetcher() {
  const Training& net = session_->training();
  std::vector<VarId> vars;
  for (VarId var : {net.image, net.pixels, net.flip, net.label, net.weight, net.sample_key,
                    net.learning_rate, net.class_weights, net.other_label, net.own_share}) {
    if (var != kNoVar) vars.push_back(var);
  }
  prefetcher_ = std::make_unique<DevicePrefetcher>(executor(), device_, vars);
}

void StepRunner::feed(const data::Batch& batch, const float& rate) {
  const Training& net = session_->training();
  feeds_.clear();
  for (const DevicePrefetcher::Feed& feed : {DevicePrefetcher::Feed{net.image, batch.images},
                                             {net.pixels, batch.pixels},
                                             {net.flip, batch.flips},
                                             {net.label, batch.labels},
                                             {net.weight, batch.weights},
                                             {net.sample_key, batch.keys},
                                             {net.learning_rate, std::span(&rate, 1)},
                                             {net.class_weights, batch.class_weights},
                                             {net.other_label, batch.other_labels},
                                             {net.own_share, batch.own_shares}}) {
    if (feed.var == kNoVar) continue;
    // An evaluation does not mix; these feeds come last, so they can be left out.
    const bool mixes = feed.var == net.other_label || feed.var == net.own_share;
    if (mixes && feed.data.size() == 0) continue;
    FLEET_CHECK(feed.data.size() > 0, "a batch without " + executor().program().var(feed.var).name);
    feeds_.push_back(feed);
  }
  prefetcher_->feed(feeds_);
}

void StepRunner::begin(int64_t steps) {
  sync_.emplace(executor(), steps);  // checkpoints are saved after a sync
  session_->broadcast_all();
}

void StepRunner::train(const data::Batch& batch, const StepInfo& info, double learning_rate) {
  FLEET_CHECK(sync_, "a step before begin()");
  const float rate = static_cast<float>(learning_rate);
  feed(batch, rate);
  const StepInfo prepared = session_->prepare(info, rate);
  watch_->step_begins(prepared);
  traffic_->step_begins();
  executor().run(prepared);
  traffic_->step_done();
  prefetcher_->release();
  executor().check_communicators();
}

MetricSums StepRunner::evaluate(const data::Batch& batch, int64_t steps) {
  const float no_rate = 0;
  feed(batch, no_rate);
  executor().run({.step = steps, .evaluate = true, .fetch = true});
  prefetcher_->release();
  return session_->read_metrics(true);
}

void StepRunner::sync_ranks(int64_t steps) {
  FLEET_CHECK(sync_, "an evaluation or a checkpoint before begin()");
  sync_->run(steps);
  session_->broadcast_statistics();
}

}  // namespace fleet
