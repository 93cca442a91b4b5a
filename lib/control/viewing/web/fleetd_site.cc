#include <charconv>
#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "base/owned_file.h"
#include "launch/planning/addresses.h"
#include "node/runtime_folder.h"
#include "viewing/web/job_site.h"
#include "viewing/web/page_events.h"
#include "viewing/web/sites.h"
#include "viewing/web/web_config.h"

namespace fleet {
namespace {

// A job of this fleetd.
class TableJob : public WatchedJob {
 public:
  TableJob(EventLoop& loop, NodeJobs& jobs, int number)
      : loop_(loop), jobs_(jobs), number_(number) {}

  void live(bool history, std::function<void(Answer)> done) override {
    const JobInfo* job = jobs_.find(number_);
    if (!job || job->phase() == JobInfo::ENDED || job->phase() == JobInfo::PREPARED) {
      return done({.failure = Error(ErrorCode::kNotFound, "it does not run")});
    }
    ask_launcher(loop_, job->record().pid(), history, std::move(done));
  }
  void outcome(std::function<void(std::optional<JobOutcome>)> done) override {
    const JobInfo* job = jobs_.find(number_);
    if (!job) return done(JobOutcome{"ended", "This fleetd no longer knows it."});
    done(job->phase() == JobInfo::ENDED ? std::optional(outcome_of(*job)) : std::nullopt);
  }
  void log(const WatchedLog& which, std::shared_ptr<HttpStream> stream) override {
    if (const JobInfo* job = jobs_.find(number_)) {
      for (const JobRecord::Rank& rank : job->record().ranks()) {
        if (rank.rank() != which.rank || rank.server() != which.server) continue;
        return stream_local_log(loop_, rank, std::move(stream));
      }
    }
    throw Error(ErrorCode::kNotFound, "its log is on another node",
                "rank " + std::to_string(which.rank), "see the page of fleetd there");
  }

 private:
  EventLoop& loop_;
  NodeJobs& jobs_;
  const int number_;
};

// For a job that no page shows: its launcher keeps the curves, and they end with it.
constexpr std::chrono::seconds kIdleInterval{10};
// Between the curves of the list, in ticks of its timer.
constexpr int kCurvesEvery = 5;

// Not thread-safe: everything happens in the loop's thread. `jobs` must outlive it.
class FleetdSite {
 public:
  // Throws kUsage if it cannot listen, and if the runtime folder is not private.
  FleetdSite(EventLoop& loop, NodeJobs& jobs, const WebConfig& config)
      : loop_(loop),
        jobs_(jobs),
        timer_(loop),
        server_(
            loop, config.address, config.port,
            [this](const HttpRequest& request, const HttpServer::Respond& respond) {
              respond(gate_->respond(request, [&] { return this->respond(request); }));
            },
            config.https) {
    gate_.emplace(config.token, server_.port(), config.https != nullptr);
    // A log may have other readers than this user: only the file has the token.
    const std::string address = config.url(server_.port());
    const std::string file =
        make_runtime_folder() + "/fleetd." + std::to_string(server_.port()) + ".web";
    replace_owned_file(file, address + "?token=" + config.token + "\n",
                       {.mode = 0600, .sync = false});
    spdlog::info("the page of its jobs is at {}; {} has its address with the token", address, file);
    show_jobs();
  }

 private:
  HttpServer::Response respond(const HttpRequest& request) {
    const std::string path = path_of_request(request);
    constexpr std::string_view kJobs = "/jobs/";
    if (path.starts_with(kJobs)) {
      return respond_for_job(std::string_view(path).substr(kJobs.size()), request);
    }
    if (path == "/events") {
      return {.type = "text/event-stream",
              .on_stream = [this](const std::shared_ptr<HttpStream>& stream) {
                for (const auto& [event, data] :
                     {std::pair{"jobs", jobs_event(host_name(), jobs_.all())},
                      std::pair{"curves", curves_event(curves())}}) {
                  stream->send(std::make_shared<const std::string>(server_sent_event(event, data)));
                }
                streams_.add(stream);
              }};
    }
    auto file = path.starts_with('/') ? page_file(path.substr(1)) : std::nullopt;
    return file ? *std::move(file) : not_found();
  }
  // "12/events"
  HttpServer::Response respond_for_job(std::string_view path, const HttpRequest& request) {
    int number = 0;
    const auto [end, error] = std::from_chars(path.data(), path.data() + path.size(), number);
    if (error != std::errc() || end == path.data() + path.size() || *end != '/' ||
        !jobs_.find(number)) {
      return not_found();
    }
    return site_of(number).respond(
        std::string(path.substr(static_cast<size_t>(end + 1 - path.data()))), request);
  }
  JobSite& site_of(int number) {
    auto& site = sites_[number];
    if (!site) {
      site = std::make_shared<JobSite>(loop_, std::make_unique<TableJob>(loop_, jobs_, number),
                                       kIdleInterval);
      site->begin();
    }
    return *site;
  }
  std::vector<JobCurve> curves() const {
    std::vector<JobCurve> all;
    for (const auto& [number, site] : sites_) all.push_back({number, &site->history()});
    return all;
  }
  void show_jobs() {
    const std::vector<JobInfo> jobs = jobs_.all();
    std::erase_if(sites_, [this](const auto& entry) { return !jobs_.find(entry.first); });
    for (const JobInfo& job : jobs) {
      if (job.phase() != JobInfo::ENDED) site_of(job.number());
    }
    for (const auto& [number, site] : sites_) site->tidy();
    if (streams_.any()) {
      streams_.send("jobs", jobs_event(host_name(), jobs));
      if (++ticks_ % kCurvesEvery == 0) streams_.send("curves", curves_event(curves()));
    }
    timer_.after(std::chrono::seconds(1), [this] { show_jobs(); });
  }

  EventLoop& loop_;
  NodeJobs& jobs_;
  std::map<int, std::shared_ptr<JobSite>> sites_;  // by the job's number
  EventStreams streams_;
  int ticks_ = 0;
  LoopTimer timer_;
  std::optional<WebGate> gate_;
  HttpServer server_;
};

void add_page_options(OptionGroup* options) {
  add_web_options("127.0.0.1:6780",
                  "serve a page with its jobs (without a value: at 127.0.0.1:6780)", options);
}

FleetdPage::Serve read_page_options(const Settings& settings) {
  const WebConfig config = read_web_config(settings);
  if (!config.wanted()) return {};
  return [config](EventLoop& loop, NodeJobs& jobs) {
    return std::make_shared<FleetdSite>(loop, jobs, config);
  };
}

}  // namespace

FleetdPage fleetd_page() { return {add_page_options, read_page_options}; }

}  // namespace fleet
