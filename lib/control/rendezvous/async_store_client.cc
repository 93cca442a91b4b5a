#include "rendezvous/async_store_client.h"

#include <grpcpp/grpcpp.h>

#include <set>

#include "base/mutex.h"
#include "proto/control.grpc.pb.h"
#include "rendezvous/grpc_setup.h"
#include "rendezvous/wire.h"

namespace fleet {
namespace {

// Same as kAnswerTime of the blocking store client.
constexpr std::chrono::milliseconds kAnswerTime{60'000};
constexpr std::chrono::milliseconds kLongest{86'400'000};

class AsyncStoreClient final : public AsyncStore {
 public:
  AsyncStoreClient(const std::string& address, const std::string& job_id, int generation,
                   const Security& security, std::function<void(std::function<void()>)> post)
      : address_(address),
        stub_(wire::Rendezvous::NewStub(make_channel(address, security, kStreamTimeout))),
        post_(std::move(post)) {
    caller_.set_job_id(job_id);
    caller_.set_generation(generation);
    caller_.set_rank(-1);
  }

  ~AsyncStoreClient() override {
    const MutexLock lock(mutex_);
    for (grpc::ClientContext* context : pending_) context->TryCancel();
    while (!pending_.empty()) none_left_.wait(mutex_);
  }

  void set(const std::string& key, std::string_view value, Done done) override {
    wire::SetRequest request;
    request.set_key(key);
    request.set_value(std::string(value));
    call(&Async::Set, std::move(request), kAnswerTime, std::move(done));
  }
  void get(const std::string& key, std::chrono::milliseconds timeout, Done done) override {
    wire::GetRequest request;
    request.set_key(key);
    request.set_timeout_ms(timeout.count());
    call(&Async::Get, std::move(request), std::min(timeout, kLongest) + kAnswerTime,
         std::move(done));
  }
  void add(const std::string& key, int64_t amount, Done done) override {
    wire::AddRequest request;
    request.set_key(key);
    request.set_amount(amount);
    call(&Async::Add, std::move(request), kAnswerTime, std::move(done));
  }

 private:
  using Async = wire::Rendezvous::StubInterface::async_interface;

  template <typename Request>
  struct Call {
    grpc::ClientContext context;
    Request request;
    wire::StoreReply reply;
    Done done;
  };

  template <typename Request>
  void call(void (Async::*method)(grpc::ClientContext*, const Request*, wire::StoreReply*,
                                  std::function<void(grpc::Status)>),
            Request request, std::chrono::milliseconds deadline, Done done) {
    auto call = std::make_shared<Call<Request>>();
    call->request = std::move(request);
    *call->request.mutable_caller() = caller_;
    call->context.set_deadline(std::chrono::system_clock::now() + deadline);
    call->done = std::move(done);
    {
      const MutexLock lock(mutex_);
      pending_.insert(&call->context);
    }
    // The stub's callbacks run on gRPC's threads; `call` lives until the last of them.
    (stub_->async()->*method)(&call->context, &call->request, &call->reply,
                              [this, call](const grpc::Status& status) { over(*call, status); });
  }

  template <typename Request>
  void over(Call<Request>& call, const grpc::Status& status) {
    Answer answer;
    if (!status.ok()) {
      answer.error =
          Error(ErrorCode::kPeerLost,
                "lost the connection to the job's store: " + reason_of(status), address_);
    } else if (call.reply.has_failure()) {
      answer.error = from_wire(call.reply.failure());
    } else if constexpr (std::is_same_v<Request, wire::AddRequest>) {
      answer.value = std::to_string(call.reply.sum());
    } else {
      answer.value = std::move(*call.reply.mutable_value());
    }
    const MutexLock lock(mutex_);
    pending_.erase(&call.context);
    none_left_.notify_all();
    post_([alive = std::weak_ptr<bool>(alive_), done = std::move(call.done),
           answer = std::move(answer)]() mutable {
      if (!alive.expired()) done(std::move(answer));
    });
  }

  std::string address_;
  std::unique_ptr<wire::Rendezvous::Stub> stub_;
  std::function<void(std::function<void()>)> post_;
  wire::Caller caller_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);  // read in the loop
  Mutex mutex_;
  CondVar none_left_;
  std::set<grpc::ClientContext*> pending_ FLEET_GUARDED_BY(mutex_);
};

}  // namespace

std::unique_ptr<AsyncStore> connect_async_store(const std::string& address,
                                                const std::string& job_id, int generation,
                                                const Security& security,
                                                std::function<void(std::function<void()>)> post) {
  return std::make_unique<AsyncStoreClient>(address, job_id, generation, security, std::move(post));
}

}  // namespace fleet
