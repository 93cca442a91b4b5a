// The tables of fleetrun ls and status.
#include <algorithm>
#include <cmath>
#include <ctime>

#include "base/clock.h"
#include "base/number_text.h"
#include "base/one_line.h"
#include "base/terminal_text.h"
#include "base/text.h"
#include "base/text_table.h"
#include "daemon/job_info.h"

namespace fleet {
namespace {

// Limits of cells, in characters.
constexpr size_t kLongestId = 40, kLongestCause = 120, kLongestLine = 1000;
constexpr int kInfoLossDigits = 4;

std::string time_of(const JobInfo& job, double now) {
  if (job.record().started() <= 0 || job.killed()) return "-";
  const double until = job.phase() == JobInfo::ENDED ? job.ended() : now;
  return format_duration(std::max(0.0, std::floor(until - job.record().started())));
}

// STEP, LOSS and ETA of a job; "-" where it is not known.
struct ProgressCells {
  std::string step = "-", loss = "-", eta = "-";
};
ProgressCells progress_of(const JobInfo& job, double now) {
  ProgressCells cells;
  if (!job.record().has_progress()) return cells;
  const wire::JobProgress& progress = job.record().progress();
  cells.step = std::to_string(progress.step());
  if (progress.target() > 0) cells.step += "/" + std::to_string(progress.target());
  if (progress.has_loss()) cells.loss = number_text(progress.loss(), kInfoLossDigits);
  if (progress.has_seconds_left() && job.phase() != JobInfo::ENDED) {
    const double left = progress.seconds_left() - (now - progress.unix_time());
    cells.eta = format_duration(std::max(0.0, std::floor(left)));
  }
  return cells;
}

std::string command_of(const JobInfo& job) {
  return one_line(join(texts(job.record().command()), " "), 60);
}

// In local time: "14:03:07" of today, "11-27 14:03" of another day. `whole`: with date and seconds,
// for a reader on any day.
std::string started_text(double started, double now, bool whole) {
  constexpr double kLast = 1e12;  // far in the future, and far from an overflow
  if (!(started > 0 && started < kLast && now < kLast)) return "-";
  const auto then = static_cast<std::time_t>(started), today = static_cast<std::time_t>(now);
  std::tm start = {}, present = {};
  if (!::localtime_r(&then, &start) || !::localtime_r(&today, &present)) return "-";
  const bool same_day = start.tm_year == present.tm_year && start.tm_yday == present.tm_yday;
  char text[64];
  const char* format = whole ? "%Y-%m-%d %H:%M:%S" : same_day ? "%H:%M:%S" : "%m-%d %H:%M";
  return {text, std::strftime(text, sizeof text, format, &start)};
}

// A run in the table of jobs.
struct JobRow {
  const JobInfo* job;
  ProgressCells progress;
  std::string state, started, time, verdict;
};

JobRow row_of(const JobInfo& job, double now, const JobsView& view) {
  const std::string text = failure_text(job.record().verdict());
  return {.job = &job,
          .progress = progress_of(job, now),
          .state = state_of(job),
          .started = started_text(job.record().started(), now, view.columns == 0),
          .time = time_of(job, now),
          .verdict = one_line(text.substr(0, text.find('\n')), kLongestCause)};
}

std::string positive(int64_t number) { return number > 0 ? std::to_string(number) : "-"; }

constexpr const char *kBold = "1", *kRed = "31", *kGreen = "32", *kYellow = "33";

const char* style_of_state(const JobRow& row) {
  const JobInfo::Phase phase = row.job->phase();
  if (phase == JobInfo::RUNNING) return kGreen;
  if (phase != JobInfo::ENDED) return kYellow;
  return row.job->killed() || row.state.starts_with("failed") ? kRed : "";
}

struct JobColumn {
  enum class When { kAlways, kProgress, kVerdict };  // the rows that have a value
  TableColumn shown;
  std::string (*text)(const JobRow&);
  const char* (*style)(const JobRow&) = nullptr;
  When when = When::kAlways;
};

const std::vector<JobColumn>& job_columns() {
  using enum JobColumn::When;
  static const std::vector<JobColumn> all = {
      {{.title = "JOB", .importance = 100, .least = 16},
       [](const JobRow& row) { return one_line(row.job->record().job_id(), kLongestId); }},
      {{.title = "STATE", .importance = 99},
       [](const JobRow& row) { return row.state; },
       style_of_state},
      {{.title = "NODES", .importance = 30},
       [](const JobRow& row) { return std::to_string(row.job->record().nnodes()); }},
      {{.title = "RANKS", .importance = 40},
       [](const JobRow& row) { return positive(row.job->record().world_size()); }},
      {{.title = "STARTED", .importance = 90}, [](const JobRow& row) { return row.started; }},
      {{.title = "TIME", .importance = 80}, [](const JobRow& row) { return row.time; }},
      {{.title = "STEP", .importance = 75},
       [](const JobRow& row) { return row.progress.step; },
       nullptr,
       kProgress},
      {{.title = "LOSS", .importance = 55},
       [](const JobRow& row) { return row.progress.loss; },
       nullptr,
       kProgress},
      {{.title = "ETA", .importance = 65},
       [](const JobRow& row) { return row.progress.eta; },
       nullptr,
       kProgress},
      {{.title = "PID", .importance = 70},
       [](const JobRow& row) { return positive(row.job->record().pid()); }},
      {{.title = "LOGS", .importance = 20, .least = 12, .path = true},
       [](const JobRow& row) { return one_line(row.job->record().log_dir(), kLongestLine); }},
      {{.title = "COMMAND", .importance = 60, .least = 12},
       [](const JobRow& row) { return command_of(*row.job); }},
      {{.title = "VERDICT"}, [](const JobRow& row) { return row.verdict; }, nullptr, kVerdict}};
  return all;
}

std::string verdict_line(const JobRow& row, const JobsView& view) {
  const std::string line = cut_to_columns("  " + row.verdict, view.columns);
  return view.colors ? std::string("\x1b[") + kRed + "m" + line + "\x1b[0m" : line;
}

// Escapes the ranks' lines so that they can only appear as text.
std::string shown_lines(const std::string& text) {
  std::string shown;
  for (size_t at = 0, end = 0; end != std::string::npos; at = end + 1) {
    end = text.find('\n', at);
    shown += one_line(text.substr(at, end - at), kLongestLine) + "\n";
  }
  return shown;
}

}  // namespace

std::string jobs_table(const std::vector<JobInfo>& jobs, double now, const JobsView& view) {
  std::vector<JobRow> rows;
  for (const auto& run : runs_of(jobs)) rows.push_back(row_of(most_informed(run), now, view));
  const bool counts =
      std::ranges::any_of(jobs, [](const JobInfo& job) { return job.record().has_progress(); });
  const bool failed =
      std::ranges::any_of(rows, [](const JobRow& row) { return !row.verdict.empty(); });
  std::vector<TableColumn> columns;
  std::vector<std::vector<TableCell>> cells(rows.size());
  for (const JobColumn& column : job_columns()) {
    if (column.when == JobColumn::When::kProgress && !counts) continue;
    // On a terminal, a verdict has a line of its own.
    if (column.when == JobColumn::When::kVerdict && (!failed || view.columns > 0)) continue;
    columns.push_back(column.shown);
    if (view.colors) columns.back().style = kBold;
    for (size_t i = 0; i < rows.size(); ++i) {
      const bool styled = view.colors && column.style;
      cells[i].push_back({column.text(rows[i]), styled ? column.style(rows[i]) : ""});
    }
  }
  const FittedTable table = fitted_table(columns, cells, view.columns);
  std::string text = table.lines[0] + "\n";
  for (size_t i = 0; i < rows.size(); ++i) {
    text += table.lines[i + 1] + "\n";
    if (view.columns > 0 && !rows[i].verdict.empty()) text += verdict_line(rows[i], view) + "\n";
  }
  return text;
}

std::string job_status(const std::vector<JobInfo>& parts, double now) {
  const JobInfo& job = authoritative_part(parts);
  const JobRecord& record = job.record();
  const auto line = [](const std::string& text) { return one_line(text, kLongestLine); };
  std::vector<std::vector<std::string>> facts = {
      {"job", line(record.job_id())},
      {"state", state_of(job) + (job.detached() ? ", detached" : "")},
      {"started", started_text(record.started(), now, true)},
      {"time", time_of(job, now)},
      {"command", line(join(texts(record.command()), " "))},
      {"folder", line(record.folder())},
      {"nodes", std::to_string(record.nnodes())},
      {"ranks", record.world_size() > 0 ? std::to_string(record.world_size()) : "-"}};
  if (record.has_progress()) {
    const auto [step, loss, eta] = progress_of(job, now);
    facts.push_back({"step", step});
    facts.push_back({"loss", loss});
    if (job.phase() != JobInfo::ENDED) facts.push_back({"eta", eta});
  }
  if (record.generation() > 1) facts.push_back({"generation", std::to_string(record.generation())});
  if (!job.verdict_path().empty()) facts.push_back({"verdict", line(job.verdict_path())});
  std::string text = format_table(facts);
  for (const JobInfo& part : parts) {
    const JobRecord& here = part.record();
    text += "node " + (here.node_rank() < 0 ? "?" : std::to_string(here.node_rank())) + " (" +
            line(here.address()) + "): " + state_of(part) +
            (part.gpus().empty() ? "" : ", GPUs " + join(texts(part.gpus()), ",")) + ", logs in " +
            line(here.log_dir()) + "\n";
    if (part.phase() == JobInfo::ENDED) continue;
    for (const JobRecord::Rank& rank : here.ranks()) {
      text += "  " + std::string(rank.server() ? "server " : "rank ") +
              std::to_string(rank.rank()) + "  pid " + std::to_string(rank.pid()) + "  " +
              line(rank.log_path()) + "\n";
    }
  }
  const std::string failure = failure_text(record.verdict());
  return failure.empty() ? text : text + shown_lines(failure);
}

}  // namespace fleet
