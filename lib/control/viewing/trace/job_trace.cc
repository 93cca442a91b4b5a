#include "viewing/trace/job_trace.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <utility>

#include "base/counted.h"
#include "base/text.h"

namespace fleet {
namespace {

// The text up to the separator, which it removes too.
std::string_view take_field(std::string_view* line) {
  const size_t end = std::min(line->find('\t'), line->size());
  const std::string_view field = line->substr(0, end);
  line->remove_prefix(std::min(end + 1, line->size()));
  return field;
}

void read_line(std::string_view line, RankTrace* into) {
  const std::string_view what = take_field(&line);
  long long number = 0;
  if (!parse_int(take_field(&line), &number) || number < 0 || number > UINT32_MAX) return;
  if (what == "track") into->tracks[static_cast<uint32_t>(number)] = take_field(&line);
  if (what != "name") return;
  ActivityName& name = into->names[static_cast<uint32_t>(number)];
  name.category = take_field(&line);
  name.name = take_field(&line);
  name.detail = take_field(&line);
  name.key = take_field(&line);
}

}  // namespace

void RankTrace::add(const wire::TracePiece& piece) {
  text += piece.text();
  text_bytes += piece.text().size();
  size_t begin = 0;
  for (size_t end; (end = text.find('\n', begin)) != std::string::npos; begin = end + 1) {
    read_line(std::string_view(text).substr(begin, end - begin), this);
  }
  text.erase(0, begin);
  const size_t count = piece.records().size() / sizeof(TraceRecord);
  const size_t before = records.size();
  records.resize(before + count);
  std::memcpy(records.data() + before, piece.records().data(), count * sizeof(TraceRecord));
}

std::optional<TraceReport> TraceCollection::ask(const TraceRequest& request) {
  if (ended_) return std::nullopt;
  try {
    return ask_(request);
  } catch (const Error& error) {
    ended_ = error;
    return std::nullopt;
  }
}

void TraceCollection::begin(int steps) {
  steps_ = steps;
  TraceRequest request;
  request.set_kind(TraceRequest::BEGIN);
  request.set_steps(steps);
  const TraceReport report = ask_(request);
  silent_.assign(report.silent().begin(), report.silent().end());
  take_status(report, true);
}

void TraceCollection::take_status(const TraceReport& report, bool begins) {
  for (const TraceAnswer& answer : report.answers()) {
    const wire::NodeTrace& status = answer.node();
    if (!begins && !trace_.nodes.contains(answer.node_rank())) continue;
    TracedNode& node = trace_.nodes[answer.node_rank()];
    node.node_rank = answer.node_rank();
    node.hostname = status.hostname();
    // The best comparison so far holds for the whole trace: clocks do not drift much within it.
    if (status.has_host_ns() && (!node.calibrated || status.error_ns() < node.clock.error_ns)) {
      node.calibrated = true;
      node.clock = {status.host_ns() - status.own_ns(), status.error_ns()};
    }
    node.realtime.assign(status.realtime().begin(), status.realtime().end());
    (begins ? node.events : node.later).assign(status.events().begin(), status.events().end());
    for (int i = 0; i < status.ranks_size(); ++i) {
      const auto found = std::ranges::find_if(trace_.ranks, [&](const RankTrace& rank) {
        return rank.node_rank == answer.node_rank() && rank.index == i;
      });
      if (found != trace_.ranks.end()) {
        found->rank = status.ranks(i);
      } else if (begins) {
        RankTrace& added = trace_.ranks.emplace_back();
        added.rank = status.ranks(i);
        added.node_rank = answer.node_rank();
        added.index = i;
      }
    }
  }
}

bool TraceCollection::awaited(const RankTrace& rank) const {
  const TracedRank& status = rank.rank;
  return !status.ended() && status.refused().empty() &&
         (status.state() == TracedRank::REQUESTED || status.state() == TracedRank::RECORDING);
}

bool TraceCollection::poll() {
  TraceRequest request;
  request.set_kind(TraceRequest::STATUS);
  const auto report = ask(request);
  if (!report) return false;
  take_status(*report, false);
  for (RankTrace& rank : trace_.ranks) read(&rank);
  return !ended_ &&
         std::ranges::any_of(trace_.ranks, [this](const RankTrace& rank) { return awaited(rank); });
}

// All that the last status named.
void TraceCollection::read(RankTrace* rank) {
  while (rank->text_bytes < rank->rank.text_bytes() ||
         rank->records.size() < rank->rank.records()) {
    TraceRequest request;
    request.set_kind(TraceRequest::READ);
    request.set_node_rank(rank->node_rank);
    request.set_index(rank->index);
    request.set_text_at(rank->text_bytes);
    request.set_records_at(rank->records.size());
    const auto report = ask(request);
    if (!report || report->answers_size() == 0) return;
    const wire::TracePiece& piece = report->answers(0).piece();
    const bool any = !piece.text().empty() || piece.records().size() >= sizeof(TraceRecord);
    if (!any) return;  // the next one is being written
    rank->add(piece);
  }
}

TraceProgress TraceCollection::progress() const {
  TraceProgress progress;
  for (const RankTrace& rank : trace_.ranks) {
    if (rank.rank.state() == TracedRank::NONE) continue;
    const int64_t steps = rank.rank.steps_done();
    progress.min_steps = progress.ranks == 0 ? steps : std::min(progress.min_steps, steps);
    ++progress.ranks;
    if (!awaited(rank)) ++progress.done;
  }
  return progress;
}

std::string TraceCollection::name_of(const RankTrace& rank) const {
  return (rank.rank.server() ? "server " : "rank ") + std::to_string(rank.rank.rank()) + " (node " +
         std::to_string(rank.node_rank) + ")";
}

void TraceCollection::refuse_uncalibrated() {
  std::erase_if(trace_.ranks, [this](const RankTrace& rank) {
    std::string why = rank.rank.refused();
    if (!trace_.nodes.at(rank.node_rank).calibrated) {
      why = "its node's clock has not been compared with the rendezvous host's";
    }
    if (why.empty()) return false;
    missing_.push_back(name_of(rank) + " is left out: " + why);
    return true;
  });
}

void TraceCollection::note_incomplete() {
  for (const RankTrace& rank : trace_.ranks) {
    const TracedRank& status = rank.rank;
    if (status.state() == TracedRank::NONE) continue;
    if (status.dropped() > 0) {
      missing_.push_back(name_of(rank) + ": " + std::to_string(status.dropped()) +
                         " activities did not fit; trace fewer steps");
    }
    if (status.state() == TracedRank::DONE && status.steps_done() >= steps_) continue;
    const std::string done = std::to_string(status.steps_done()) + " of " +
                             counted(static_cast<int>(steps_), "step") + " recorded";
    missing_.push_back(name_of(rank) + ": " + done + (status.ended() ? "; its process ended" : ""));
  }
}

void TraceCollection::finish() {
  TraceRequest request;
  request.set_kind(TraceRequest::END);
  ask(request);
  for (const int node : silent_) {
    missing_.push_back("node " + std::to_string(node) + " did not answer: its ranks are missing");
  }
  refuse_uncalibrated();
  note_incomplete();
  if (ended_) missing_.push_back("the job no longer answers: " + ended_->failure());
}

}  // namespace fleet
