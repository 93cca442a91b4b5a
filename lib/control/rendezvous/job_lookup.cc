#include "rendezvous/job_lookup.h"

#include <grpcpp/grpcpp.h>

#include <condition_variable>
#include <memory>
#include <mutex>

#include "proto/control.grpc.pb.h"
#include "rendezvous/grpc_setup.h"
#include "rendezvous/wire.h"

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
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<Question> questions(addresses.size());
  size_t open = addresses.size();
  const auto deadline = std::chrono::system_clock::now() + timeout;
  for (size_t i = 0; i < addresses.size(); ++i) {
    Question& one = questions[i];
    one.stub = wire::Rendezvous::NewStub(make_channel(addresses[i], security));
    one.context.set_deadline(deadline);
    one.stub->async()->Describe(&one.context, &one.request, &one.reply,
                                [&, i](const grpc::Status& status) {
                                  std::lock_guard lock(mutex);
                                  questions[i].answered = status.ok();
                                  --open;
                                  changed.notify_all();
                                });
  }
  std::unique_lock lock(mutex);
  changed.wait(lock, [&] { return open == 0; });
  for (size_t i = 0; i < addresses.size(); ++i) {
    const Question& one = questions[i];
    if (one.answered && one.reply.running() && one.reply.job_id() == job_id) return addresses[i];
  }
  return {};
}

}  // namespace fleet
