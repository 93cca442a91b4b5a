#include <grpcpp/grpcpp.h>

#include <latch>
#include <memory>

#include "proto/control.grpc.pb.h"
#include "rendezvous/client.h"
#include "transport/control_messages.h"
#include "transport/grpc_setup.h"

namespace fleet {
namespace {

struct Question {
  std::unique_ptr<wire::Rendezvous::Stub> stub;
  grpc::ClientContext context;
  wire::DescribeRequest request;
  wire::DescribeReply reply;
  bool answered = false;
};

}  // namespace

std::string find_running_job(const std::vector<std::string>& addresses, const std::string& job_id,
                             const Security& security, std::chrono::milliseconds timeout) {
  std::vector<Question> questions(addresses.size());
  // Shared, because the last callback still uses it when wait() has returned.
  const auto open = std::make_shared<std::latch>(static_cast<ptrdiff_t>(addresses.size()));
  const auto deadline = std::chrono::system_clock::now() + timeout;
  for (size_t i = 0; i < addresses.size(); ++i) {
    Question& one = questions[i];
    one.stub = wire::Rendezvous::NewStub(make_channel(addresses[i], security));
    one.context.set_deadline(deadline);
    one.stub->async()->Describe(&one.context, &one.request, &one.reply,
                                [&one, open](const grpc::Status& status) {
                                  one.answered = status.ok();
                                  open->count_down();
                                });
  }
  open->wait();
  for (size_t i = 0; i < addresses.size(); ++i) {
    const Question& one = questions[i];
    if (one.answered && one.reply.running() && one.reply.job_id() == job_id) return addresses[i];
  }
  return {};
}

}  // namespace fleet
