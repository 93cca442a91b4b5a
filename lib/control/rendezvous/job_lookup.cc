#include "rendezvous/job_lookup.h"

#include <grpcpp/grpcpp.h>

#include <latch>
#include <memory>
#include <utility>

#include "proto/control.grpc.pb.h"
#include "transport/grpc_setup.h"

namespace fleet {
namespace {

struct Question {
  std::unique_ptr<wire::Rendezvous::Stub> stub;
  grpc::ClientContext context;
  wire::DescribeRequest request;
  wire::DescribeReply reply;
};

}  // namespace

void ask_rendezvous(const std::string& address, const Security& security,
                    std::chrono::milliseconds timeout, DescribeDone done) {
  const auto question = std::make_shared<Question>();
  question->stub = wire::Rendezvous::NewStub(make_channel(address, security));
  question->context.set_deadline(std::chrono::system_clock::now() + timeout);
  question->stub->async()->Describe(
      &question->context, &question->request, &question->reply,
      [question, done = std::move(done)](const grpc::Status& status) {
        done(status.ok() ? std::optional(std::move(question->reply)) : std::nullopt);
      });
}

bool runs_job(const std::optional<wire::DescribeReply>& reply, const std::string& job_id) {
  return reply && reply->running() && reply->job_id() == job_id;
}

std::string find_running_job(const std::vector<std::string>& addresses, const std::string& job_id,
                             const Security& security, std::chrono::milliseconds timeout) {
  // Shared, because the last callback still uses them when wait() has returned.
  struct Answers {
    explicit Answers(size_t count) : runs(count), open(static_cast<ptrdiff_t>(count)) {}
    std::vector<char> runs;  // not bool: threads write neighbours
    std::latch open;
  };
  const auto answers = std::make_shared<Answers>(addresses.size());
  for (size_t i = 0; i < addresses.size(); ++i) {
    ask_rendezvous(addresses[i], security, timeout,
                   [answers, i, job_id](const std::optional<wire::DescribeReply>& reply) {
                     answers->runs[i] = runs_job(reply, job_id);
                     answers->open.count_down();
                   });
  }
  answers->open.wait();
  for (size_t i = 0; i < addresses.size(); ++i) {
    if (answers->runs[i]) return addresses[i];
  }
  return {};
}

}  // namespace fleet
