#include "rendezvous/store_client.h"

#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <set>

#include "base/env.h"
#include "base/error.h"
#include "base/file.h"
#include "base/log.h"
#include "base/mutex.h"
#include "base/running_clock.h"
#include "proto/control.grpc.pb.h"
#include "store/env.h"
#include "transport/control_messages.h"
#include "transport/grpc_setup.h"

namespace fleet {
namespace {

// How long the service may take to answer a call without waiting, on a loaded machine and a slow
// network.
constexpr std::chrono::milliseconds kAnswerTime{60'000};
// As in the service: larger values could overflow.
constexpr std::chrono::milliseconds kLongestWait{86'400'000};

// A connection to the store, and the requests over it.
struct StoreConnection {
  StoreConnection(const std::string& at, const std::string& job_id, int generation, int rank,
                  const Security& security)
      : address(at), stub(wire::Rendezvous::NewStub(make_channel(at, security, kStreamTimeout))) {
    caller.set_job_id(job_id);
    caller.set_generation(generation);
    caller.set_rank(rank);
  }
  template <typename Request>
  Request request(const std::string& key) const {
    Request request;
    *request.mutable_caller() = caller;
    request.set_key(key);
    return request;
  }
  wire::SetRequest set(const std::string& key, std::string_view value) const {
    auto request = this->request<wire::SetRequest>(key);
    request.set_value(value.data(), value.size());
    return request;
  }
  wire::GetRequest get(const std::string& key, std::chrono::milliseconds timeout) const {
    auto request = this->request<wire::GetRequest>(key);
    request.set_timeout_ms(timeout.count());
    return request;
  }
  wire::AddRequest add(const std::string& key, int64_t amount) const {
    auto request = this->request<wire::AddRequest>(key);
    request.set_amount(amount);
    return request;
  }
  // Why a call failed that the service did not answer.
  Error error_of(const grpc::Status& status, const std::string& key) const;

  std::string address;
  std::unique_ptr<wire::Rendezvous::Stub> stub;
  wire::Caller caller;
};

Error StoreConnection::error_of(const grpc::Status& status, const std::string& key) const {
  const std::string where = "rendezvous of job '" + caller.job_id() + "' at " + address;
  if (status.error_code() == grpc::StatusCode::RESOURCE_EXHAUSTED) {
    return Error(ErrorCode::kUsage, "the value of key '" + key + "' is too large", where,
                 "the store is for ids and addresses, not for data");
  }
  if (status.error_code() == grpc::StatusCode::UNAUTHENTICATED) {
    return Error(ErrorCode::kUsage, reason_of(status), where, "ranks are started by fleetrun");
  }
  if (status.error_code() == grpc::StatusCode::UNIMPLEMENTED) {
    return Error(ErrorCode::kUsage, "the server there is not a fleetrun rendezvous", where);
  }
  const std::string reason = reason_of(status);
  for (const int error : {EMFILE, ENFILE}) {  // this process gets no socket
    if (reason.find(std::strerror(error)) == std::string::npos) continue;
    return SystemError(ErrorCode::kIo, "cannot connect", error, where);
  }
  return Error(ErrorCode::kPeerLost,
               "node 0's fleetrun, which hosts the job's store, is gone (" + reason +
                   ") during the request for key '" + key + "'",
               where, "see the output of fleetrun on node 0");
}

class StoreClient final : public Store {
 public:
  explicit StoreClient(StoreConnection to) : to_(std::move(to)) {}

  void set(const std::string& key, std::string_view value) override {
    call(&Stub::AsyncSet, to_.set(key, value), {}, Again::kMay);
  }
  std::string get(const std::string& key, std::chrono::milliseconds timeout) override {
    auto reply = call(&Stub::AsyncGet, to_.get(key, timeout), timeout, Again::kMay);
    return std::move(*reply.mutable_value());
  }
  int64_t add(const std::string& key, int64_t amount) override {
    return call(&Stub::AsyncAdd, to_.add(key, amount), {}, Again::kMustNot).sum();
  }

 private:
  using Stub = wire::Rendezvous::Stub;
  using Reader = grpc::ClientAsyncResponseReader<wire::StoreReply>;
  template <typename Request>
  using Method = std::unique_ptr<Reader> (Stub::*)(grpc::ClientContext*, const Request&,
                                                   grpc::CompletionQueue*);
  // Whether a request has the same effect if the service gets it twice.
  enum class Again { kMay, kMustNot };

  template <typename Request>
  wire::StoreReply call(Method<Request> method, const Request& request,
                        std::chrono::milliseconds wait, Again again) {
    RunningDeadline deadline(std::min(wait, kLongestWait) + kAnswerTime);
    wire::StoreReply reply;
    for (;;) {
      const auto stood = deadline.skipped();
      const grpc::Status status = call_once(method, request, &reply, &deadline);
      // The host has closed the connection of a process that was suspended.
      if (status.error_code() == grpc::StatusCode::UNAVAILABLE && again == Again::kMay &&
          deadline.skipped() > stood) {
        continue;
      }
      if (!status.ok()) throw to_.error_of(status, request.key());
      if (reply.has_failure()) throw from_wire(reply.failure());
      return reply;
    }
  }

  // Without a deadline of gRPC's, which would count the time of a suspension.
  template <typename Request>
  grpc::Status call_once(Method<Request> method, const Request& request, wire::StoreReply* reply,
                         RunningDeadline* deadline) {
    grpc::ClientContext context;
    grpc::CompletionQueue queue;
    grpc::Status status;
    const std::unique_ptr<Reader> reader = (to_.stub.get()->*method)(&context, request, &queue);
    reader->Finish(reply, &status, nullptr);
    void* tag = nullptr;
    bool ok = false, late = false;
    while (!late &&
           queue.AsyncNext(&tag, &ok, std::chrono::system_clock::now() + deadline->look_for()) !=
               grpc::CompletionQueue::GOT_EVENT) {
      late = deadline->passed();
    }
    if (late) {
      context.TryCancel();
      queue.Next(&tag, &ok);
    }
    deadline->passed();  // counts a suspension right before the answer
    queue.Shutdown();
    while (queue.Next(&tag, &ok)) continue;
    if (!late || status.ok()) return status;
    return {grpc::StatusCode::DEADLINE_EXCEEDED, "no answer in time"};
  }

  const StoreConnection to_;
};

// Its calls have no deadline: the launcher's heartbeats notice a host that no longer answers.
class AsyncStoreClient final : public AsyncStore {
 public:
  AsyncStoreClient(StoreConnection to, std::function<void(std::function<void()>)> post)
      : to_(std::move(to)), post_(std::move(post)) {}

  ~AsyncStoreClient() override {
    const MutexLock lock(mutex_);
    for (grpc::ClientContext* context : pending_) context->TryCancel();
    while (!pending_.empty()) none_left_.wait(mutex_);
  }

  void set(const std::string& key, std::string_view value, Done done) override {
    call(&Async::Set, to_.set(key, value), std::move(done));
  }
  void get(const std::string& key, std::chrono::milliseconds timeout, Done done) override {
    call(&Async::Get, to_.get(key, timeout), std::move(done));
  }
  void add(const std::string& key, int64_t amount, Done done) override {
    call(&Async::Add, to_.add(key, amount), std::move(done));
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
            Request request, Done&& done) {
    auto call = std::make_shared<Call<Request>>();
    call->request = std::move(request);
    call->done = std::move(done);
    {
      const MutexLock lock(mutex_);
      pending_.insert(&call->context);
    }
    // The stub's callbacks run on gRPC's threads; `call` lives until the last of them.
    (to_.stub->async()->*method)(&call->context, &call->request, &call->reply,
                                 [this, call](const grpc::Status& status) { over(*call, status); });
  }

  template <typename Request>
  void over(Call<Request>& call, const grpc::Status& status) {
    Answer answer;
    if (!status.ok()) {
      answer.error = to_.error_of(status, call.request.key());
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

  const StoreConnection to_;
  std::function<void(std::function<void()>)> post_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);  // read in the loop
  Mutex mutex_;
  CondVar none_left_;
  std::set<grpc::ClientContext*> pending_ FLEET_GUARDED_BY(mutex_);
};

}  // namespace

std::shared_ptr<Store> connect_store(const std::string& address, const std::string& job_id,
                                     int generation, int rank, const Security& security) {
  return std::make_shared<StoreClient>(
      StoreConnection(address, job_id, generation, rank, security));
}

std::unique_ptr<AsyncStore> connect_async_store(const std::string& address,
                                                const std::string& job_id, int generation,
                                                const Security& security,
                                                std::function<void(std::function<void()>)> post) {
  return std::make_unique<AsyncStoreClient>(
      StoreConnection(address, job_id, generation, -1, security), std::move(post));
}

std::shared_ptr<Store> connect_store_from_env() {
  const auto address = get_env(kEnvStoreAddress);
  if (!address) return nullptr;
  const auto credentials = get_env(kEnvCredentials);
  return connect_store(*address, env_or(kEnvJobId, "default"),
                       static_cast<int>(env_int_or(kEnvGeneration, 1)),
                       static_cast<int>(env_int_or(kEnvRank, 0)),
                       credentials ? security_from_text(read_file(*credentials)) : Security{});
}

}  // namespace fleet
