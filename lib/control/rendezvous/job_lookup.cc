#include "rendezvous/job_lookup.h"

#include <grpcpp/grpcpp.h>

#include <memory>

#include "base/mutex.h"
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

// Counts the questions without an answer. The last answer publishes all of them.
class OpenQuestions {
 public:
  explicit OpenQuestions(size_t count) : open_(count) {}
  void close_one() {
    const MutexLock lock(mutex_);
    // Notify under the lock: the waiter may destroy this object as soon as it holds the lock.
    if (--open_ == 0) closed_.notify_all();
  }
  void wait() {
    const MutexLock lock(mutex_);
    while (open_ > 0) closed_.wait(mutex_);
  }

 private:
  Mutex mutex_;
  CondVar closed_;
  size_t open_ FLEET_GUARDED_BY(mutex_);
};

}  // namespace

std::string find_running_job(const std::vector<std::string>& addresses, const std::string& job_id,
                             const Security& security, std::chrono::milliseconds timeout) {
  std::vector<Question> questions(addresses.size());
  OpenQuestions open(addresses.size());
  const auto deadline = std::chrono::system_clock::now() + timeout;
  for (size_t i = 0; i < addresses.size(); ++i) {
    Question& one = questions[i];
    one.stub = wire::Rendezvous::NewStub(make_channel(addresses[i], security));
    one.context.set_deadline(deadline);
    one.stub->async()->Describe(&one.context, &one.request, &one.reply,
                                [&, i](const grpc::Status& status) {
                                  questions[i].answered = status.ok();
                                  open.close_one();
                                });
  }
  open.wait();
  for (size_t i = 0; i < addresses.size(); ++i) {
    const Question& one = questions[i];
    if (one.answered && one.reply.running() && one.reply.job_id() == job_id) return addresses[i];
  }
  return {};
}

}  // namespace fleet
