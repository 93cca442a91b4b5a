#include "diagnosis/bottleneck_actions.h"

#include <algorithm>
#include <cmath>

#include "base/number_text.h"

namespace fleet {
namespace {

// Data threads that are always busy make batches a little late all the same.
constexpr double kSpare = 1.1;

// Remedies for users of the engine. No other line of this module names its settings.
constexpr struct {
  const char* prefetch = "set data.async to true";
  const char* data_threads = "data.threads ";  // 2 -> 4
  const char* decode_less = "decode less (data.cache=decoded, or smaller images by fleetrun pack)";
  const char* send_less =
      "strategy.fp16_allreduce halves the bytes sent, strategy.gradient_merge sends less often";
  const char* exchange_less_often =
      "a larger data.batch_size, or strategy.gradient_merge, exchanges gradients less often";
  const char* fewer_threads = "start fewer ranks or threads (OMP_NUM_THREADS, data.threads)";
} kRemedies;
// Remedies for users of other programs.
constexpr struct {
  const char* prefetch =
      "load batches in more processes (num_workers of a DataLoader), or from a faster disk";
  const char* send_less =
      "send less (gradients in 16 bits), or exchange gradients less often (accumulate them)";
  const char* fewer_threads = "start fewer ranks or threads (OMP_NUM_THREADS)";
} kProgramRemedies;

std::string fewer_threads(const RankTimes& rank) {
  return rank.reported ? kProgramRemedies.fewer_threads : kRemedies.fewer_threads;
}

std::string label(const RankTimes& rank) {
  return "rank " + std::to_string(rank.rank) + " (local rank " + std::to_string(rank.local_rank) +
         ") on node " + std::to_string(rank.node_rank);
}

}  // namespace

std::string percent_text(double share) { return std::to_string(std::lround(100 * share)) + " %"; }

std::string input_action(const RankTimes& rank, bool full) {
  if (rank.reported) return kProgramRemedies.prefetch;
  const double left = rank.step - rank.input;  // in which the next batch has to be made
  const double share = rank.input / rank.step;
  if (rank.data_threads == 0) {
    return std::string(kRemedies.prefetch) +
           ": batches are made while the model computes, which hides up to " +
           percent_text(std::min(share, left / rank.step)) + " of the step";
  }
  const bool reads = rank.mostly_reads();
  const int most = reads ? 64 : std::max(static_cast<int>(rank.cores), 1);
  const int wanted = static_cast<int>(std::ceil(kSpare * rank.making / std::max(left, 1.0)));
  const int threads = std::min(wanted, most);
  std::string more;
  if (threads > rank.data_threads && !full) {
    const double rest = std::max(0.0, rank.making / threads - left);
    const double hidden = std::clamp((rank.input - rest) / rank.step, 0.0, share);
    more = kRemedies.data_threads + std::to_string(rank.data_threads) + " -> " +
           std::to_string(threads) + " would hide " + percent_text(hidden) + " of the step";
  }
  if (reads) {
    return "the data threads spend " + percent_text(rank.reading / rank.making) +
           " of their time reading: copy the data to a faster disk" +
           (more.empty() ? "" : ", or " + more);
  }
  if (!more.empty()) return more;
  return std::string("the data threads use all cores: ") + kRemedies.decode_less +
         ", or give each rank more cores";
}

std::string communication_action(const RankTimes& rank, int nnodes) {
  const std::string send_less = rank.reported ? kProgramRemedies.send_less : kRemedies.send_less;
  if (nnodes > 1) return send_less + "; or use a faster network";
  if (rank.reported) return send_less;
  return kRemedies.exchange_less_often;
}

std::string straggler_action(const RankTimes& rank, const RankTimes& usual, double usual_input,
                             double excess) {
  const std::string who = label(rank);
  if (rank.input - usual_input >= excess / 2) {
    return who + " waits for its input: look at its disk and its data; " + input_action(rank);
  }
  if (rank.delayed >= kMuchDelay * rank.step) {
    const std::string share = percent_text(rank.delayed / rank.step);
    if (rank.throttled) {
      return "the CPU quota of " + who + " stops it for " + share + " of its step: raise it";
    }
    if (rank.has_its_cores()) {
      return who + " runs more threads than it has cores, and has no core for " + share +
             " of its step: give it more cores, or " + fewer_threads(rank);
    }
    if (rank.nice > 0) {
      return who + " has no core for " + share + " of its step and runs with nice " +
             std::to_string(rank.nice) + ": renice it, or stop the other processes on its cores";
    }
    return who + " has no core for " + share +
           " of its step: stop the other processes on its cores";
  }
  // Under full load, a power limit lowers the clocks of healthy GPUs, too.
  if (!rank.slow_gpu.empty() && rank.slow_gpu != usual.slow_gpu) {
    return "the clock of the GPU of " + who + " is lowered (" + rank.slow_gpu +
           "): check its cooling and its power limit";
  }
  return "look at the clock rate, the memory and the cores of " + who + "; fleetrun stacks";
}

std::string host_action(const RankTimes& rank) {
  const std::string share = percent_text(rank.delayed / rank.step);
  if (rank.throttled) {
    return "the CPU quota of " + number_text(rank.quota, 3) + " cores stops the ranks for " +
           share + " of the step: raise it, or start fewer ranks";
  }
  if (rank.has_its_cores()) {
    return "the ranks run more threads than they have cores, and have no core for " + share +
           " of the step: " + fewer_threads(rank);
  }
  if (!rank.others) {
    return "the ranks have no core for " + share +
           " of the step: stop other processes on this host, or " + fewer_threads(rank);
  }
  return "the ranks have no core for " + share + " of the step, and other processes use " +
         percent_text(*rank.others) + " of the busy time of their cores: stop these, or " +
         fewer_threads(rank);
}

}  // namespace fleet
