#include <signal.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <optional>
#include <utility>

#include "base/error.h"
#include "base/log.h"
#include "base/terminal_text.h"
#include "daemon/job_info.h"
#include "daemon/message_stream.h"
#include "transport/control_messages.h"
#include "transport/event_loop.h"
#include "transport/security.h"
#include "transport/validate.h"
#include "viewing/web/job_site.h"
#include "viewing/web/sites.h"
#include "viewing/web/web_config.h"

namespace fleet {
namespace {

// One request to a fleetd. Calls `on_message` with each reply, and `on_end` last: with an error, or
// without.
std::shared_ptr<ClientStream> ask_fleetd(EventLoop& loop, const std::string& address,
                                         const Security& security, wire::ClientMessage request,
                                         std::function<void(const wire::FleetdMessage&)> on_message,
                                         std::function<void(std::optional<Error>)> on_end) {
  const auto refused = std::make_shared<std::optional<Error>>();
  return ClientStream::start(
      loop, address, security, std::move(request),
      {[refused, on_message = std::move(on_message)](const wire::FleetdMessage& message) {
         try {
           validate(message);
           message.has_refused() ? void(*refused = from_wire(message.refused()))
                                 : on_message(message);
         } catch (const Error& error) {
           *refused = error;
         }
       },
       [] {},
       [refused, address, on_end = std::move(on_end)](const grpc::Status& status) {
         if (!*refused && !status.ok()) {
           *refused = Error(ErrorCode::kTimeout, "no connection to its fleetd", address);
         }
         on_end(std::move(*refused));
       }});
}

// A log that fleetd sends from its beginning: only its end is passed on.
class FleetdLogStream : public std::enable_shared_from_this<FleetdLogStream> {
 public:
  FleetdLogStream(EventLoop& loop, std::shared_ptr<HttpStream> stream)
      : timer_(loop), stream_(std::move(stream)) {}

  void begin(EventLoop& loop, const std::string& address, const Security& security,
             wire::ClientMessage request) {
    const std::weak_ptr weak = weak_from_this();
    log_ = ask_fleetd(
        loop, address, security, std::move(request),
        [weak](const wire::FleetdMessage& message) {
          const auto self = weak.lock();
          if (self && message.has_output()) self->add(message.output().text());
        },
        [weak](const std::optional<Error>& error) {
          const auto self = weak.lock();
          if (self && error) self->add(error->failure() + "\n");
        });
    pass_on();
  }

 private:
  void add(const std::string& bytes) {
    waiting_ += bytes;
    if (waiting_.size() <= kPastLogBytes) return;
    waiting_.erase(0, waiting_.size() - kPastLogBytes);
    lines_.skip_to_next_line();
  }

  // Holds itself until the browser has gone.
  void pass_on() {
    if (!stream_->open()) return log_->cancel();
    if (!waiting_.empty() && stream_->queued() < kPastLogBytes) {
      stream_->send(std::make_shared<const std::string>(lines_.add(waiting_)));
      waiting_.clear();
    }
    timer_.after(std::chrono::milliseconds(300), [self = shared_from_this()] { self->pass_on(); });
  }

  LoopTimer timer_;
  const std::shared_ptr<HttpStream> stream_;
  std::shared_ptr<ClientStream> log_;
  std::string waiting_;
  LogLines lines_{false, false};
};

// Every launcher of the job knows about all ranks: asks one after the other.
class JobOfParts : public WatchedJob {
 public:
  JobOfParts(EventLoop& loop, std::vector<JobPart> parts, Security security)
      : loop_(loop), parts_(std::move(parts)), security_(std::move(security)) {}

  void live(bool history, std::function<void(Answer)> done) override {
    ask(0, history, std::nullopt, std::move(done));
  }

  void outcome(std::function<void(std::optional<JobOutcome>)> done) override {
    std::vector<JobInfo> ended;
    for (JobPart& part : parts_) {
      if (!part.address.empty()) continue;
      const auto now = refresh(part.job.record());
      if (!now) return done(JobOutcome{"ended", "Its outcome is no longer recorded."});
      part.job = *now;
      if (now->phase() == JobInfo::ENDED) ended.push_back(*now);
    }
    if (!ended.empty()) return done(outcome_of(authoritative_part(ended)));
    for (const JobPart& part : parts_) {
      if (!part.address.empty()) return ask_outcome(part, std::move(done));
    }
    done(std::nullopt);
  }

  void log(const WatchedLog& which, std::shared_ptr<HttpStream> stream) override {
    bool by_fleetd = false;
    for (JobPart& part : parts_) {
      by_fleetd = by_fleetd || !part.address.empty();
      if (!part.address.empty()) continue;
      if (auto now = refresh(part.job.record())) part.job = *std::move(now);
    }
    for (const JobPart& part : parts_) {
      for (const JobRecord::Rank& rank : part.job.record().ranks()) {
        if (rank.rank() != which.rank || rank.server() != which.server) continue;
        if (part.address.empty()) return stream_local_log(loop_, rank, std::move(stream));
        return stream_log_of(part, which, std::move(stream));
      }
    }
    throw Error(ErrorCode::kNotFound, "its log is on another node",
                "rank " + std::to_string(which.rank),
                by_fleetd ? "name that node with --fleetd" : "run fleetrun top --web there");
  }

 private:
  void ask(size_t at, bool history, std::optional<Error> failure,
           std::function<void(Answer)> done) {
    if (at == parts_.size()) return done({.failure = std::move(failure)});
    // A launcher that hangs says more about the job than one that has ended.
    auto next = [this, at, history, failure = std::move(failure),
                 done = std::move(done)](const Answer& answer) {
      if (answer.report) return done(answer);
      const bool says_more = !failure || answer.failure->code() != ErrorCode::kNotFound;
      ask(at + 1, history, says_more ? answer.failure : failure, done);
    };
    const JobPart& part = parts_[at];
    if (part.address.empty()) {
      return ask_launcher(loop_, part.job.record().pid(), history, std::move(next));
    }
    wire::ClientMessage request;
    request.mutable_live()->set_job_id(part.job.record().job_id());
    request.mutable_live()->set_history(history);
    const auto report = std::make_shared<std::optional<LiveReport>>();
    call(
        part.address, std::move(request),
        [report](const wire::FleetdMessage& message) {
          if (message.has_live()) *report = message.live();
        },
        [report, next = std::move(next)](std::optional<Error> error) {
          if (*report) return next({.report = std::move(*report)});
          next({.failure = error ? std::move(error)
                                 : Error(ErrorCode::kTimeout, "fleetd has sent no answer")});
        });
  }

  void ask_outcome(const JobPart& part, std::function<void(std::optional<JobOutcome>)> done) {
    wire::ClientMessage request;
    request.mutable_query()->set_job_id(part.job.record().job_id());
    const auto outcome = std::make_shared<std::optional<JobOutcome>>();
    call(
        part.address, std::move(request),
        [outcome](const wire::FleetdMessage& message) {
          for (const JobInfo& job : message.jobs().jobs()) {
            if (job.phase() == JobInfo::ENDED) *outcome = outcome_of(job);
          }
        },
        [outcome, done = std::move(done)](const std::optional<Error>&) { done(*outcome); });
  }

  // Ends a fleetd's silence too.
  void call(const std::string& address, wire::ClientMessage request,
            std::function<void(const wire::FleetdMessage&)> on_message,
            std::function<void(std::optional<Error>)> on_end) {
    const auto timer = std::make_shared<LoopTimer>(loop_);
    const auto stream =
        ask_fleetd(loop_, address, security_, std::move(request), std::move(on_message),
                   [timer, on_end = std::move(on_end)](std::optional<Error> error) {
                     timer->cancel();
                     on_end(std::move(error));
                   });
    timer->after(std::chrono::seconds(5), [stream] { stream->cancel(); });
  }

  void stream_log_of(const JobPart& part, const WatchedLog& which,
                     std::shared_ptr<HttpStream> stream) {
    wire::ClientMessage request;
    request.mutable_read_log()->set_job_id(part.job.record().job_id());
    request.mutable_read_log()->set_rank(which.rank);
    request.mutable_read_log()->set_server(which.server);
    request.mutable_read_log()->set_follow(true);
    std::make_shared<FleetdLogStream>(loop_, std::move(stream))
        ->begin(loop_, part.address, security_, std::move(request));
  }

  EventLoop& loop_;
  std::vector<JobPart> parts_;
  const Security security_;
};

}  // namespace

std::unique_ptr<WatchedJob> job_of_parts(EventLoop& loop, std::vector<JobPart> parts,
                                         FleetdClient* fleetds) {
  const bool local =
      std::ranges::all_of(parts, [](const JobPart& part) { return part.address.empty(); });
  const Security security = local ? Security{} : fleetds->security();
  return std::make_unique<JobOfParts>(loop, std::move(parts), security);
}

int serve_top(const WebConfig& config, std::vector<JobPart> parts, FleetdClient* fleetds) {
  const std::string name = shown_name(parts[0].job.record().job_id());
  auto& loop = *new EventLoop;  // never destroyed: gRPC's threads post to it
  const auto site = std::make_shared<JobSite>(loop, job_of_parts(loop, std::move(parts), fleetds),
                                              std::chrono::seconds(1));
  site->on_end = [&](const JobOutcome& outcome) {
    std::printf("job %s: %s; the page stays until you press Ctrl-C\n", name.c_str(),
                outcome.state.c_str());
    std::fflush(stdout);
  };
  std::optional<WebGate> gate;
  const HttpServer server(
      loop, config.address, config.port,
      [&](const HttpRequest& request, const HttpServer::Respond& respond) {
        const std::string path = path_of_request(request);
        respond(gate->respond(request, [&] {
          return path.starts_with('/') ? site->respond(path.substr(1), request) : not_found();
        }));
      },
      config.https);
  gate.emplace(config.token, server.port(), config.https != nullptr);
  // A token from a file is not printed: other people may see this line.
  const std::string token = config.token_file.empty()
                                ? "?token=" + config.token
                                : "?token=TOKEN, with that of " + config.token_file;
  std::printf("job %s: %s%s\n", name.c_str(), config.url(server.port()).c_str(), token.c_str());
  std::fflush(stdout);
  LoopSignals signals(loop, {SIGINT, SIGTERM});
  int ended_by = 0;
  signals.on_signal([&](int signal) {
    ended_by = signal;
    loop.stop();
  });
  site->begin();
  loop.run();
  return ended_by == SIGINT ? 0 : 128 + ended_by;
}

}  // namespace fleet
