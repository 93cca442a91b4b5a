#include "rendezvous/store_client.h"

#include <grpcpp/grpcpp.h>

#include "base/env.h"
#include "base/error.h"
#include "base/file.h"
#include "proto/control.grpc.pb.h"
#include "rendezvous/grpc_setup.h"
#include "rendezvous/wire.h"
#include "store/env.h"

namespace fleet {
namespace {

// How long the service may take to answer a call without waiting, on a loaded machine and a slow
// network.
constexpr std::chrono::milliseconds kAnswerTime{60'000};

class StoreClient final : public Store {
 public:
  StoreClient(std::string address, const std::string& job_id, int generation, int rank,
              const Security& security)
      : address_(std::move(address)),
        stub_(wire::Rendezvous::NewStub(make_channel(address_, security, kStreamTimeout))) {
    caller_.set_job_id(job_id);
    caller_.set_generation(generation);
    caller_.set_rank(rank);
  }

  void set(const std::string& key, std::string_view value) override {
    wire::SetRequest request;
    request.set_key(key);
    request.set_value(std::string(value));
    call(&wire::Rendezvous::Stub::Set, std::move(request), key, kAnswerTime);
  }
  std::string get(const std::string& key, std::chrono::milliseconds timeout) override {
    wire::GetRequest request;
    request.set_key(key);
    request.set_timeout_ms(timeout.count());
    // Bounded to a day, as in the service: larger values could overflow.
    const auto bounded = std::min(timeout, std::chrono::milliseconds(86'400'000));
    return std::move(
        *call(&wire::Rendezvous::Stub::Get, std::move(request), key, bounded + kAnswerTime)
             .mutable_value());
  }
  int64_t add(const std::string& key, int64_t amount) override {
    wire::AddRequest request;
    request.set_key(key);
    request.set_amount(amount);
    return call(&wire::Rendezvous::Stub::Add, std::move(request), key, kAnswerTime).sum();
  }

 private:
  template <typename Method, typename Request>
  wire::StoreReply call(Method method, Request request, const std::string& key,
                        std::chrono::milliseconds deadline) {
    *request.mutable_caller() = caller_;
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + deadline);
    wire::StoreReply reply;
    const grpc::Status status = (stub_.get()->*method)(&context, request, &reply);
    if (!status.ok()) fail(status, key);
    if (reply.has_failure()) throw from_wire(reply.failure());
    return reply;
  }

  [[noreturn]] void fail(const grpc::Status& status, const std::string& key) const {
    const std::string where = "rendezvous of job '" + caller_.job_id() + "' at " + address_;
    if (status.error_code() == grpc::StatusCode::RESOURCE_EXHAUSTED) {
      throw Error(ErrorCode::kUsage, "the value of key '" + key + "' is too large", where,
                  "the store is for ids and addresses, not for data");
    }
    if (status.error_code() == grpc::StatusCode::UNAUTHENTICATED) {
      throw Error(ErrorCode::kUsage, reason_of(status), where, "ranks are started by fleetrun");
    }
    if (status.error_code() == grpc::StatusCode::UNIMPLEMENTED) {
      throw Error(ErrorCode::kUsage, "the server there is not a fleetrun rendezvous", where);
    }
    throw Error(ErrorCode::kPeerLost,
                "node 0's fleetrun, which hosts the job's store, is gone (" + reason_of(status) +
                    ") during the request for key '" + key + "'",
                where, "see the output of fleetrun on node 0");
  }

  std::string address_;
  std::unique_ptr<wire::Rendezvous::Stub> stub_;
  wire::Caller caller_;
};

}  // namespace

std::shared_ptr<Store> connect_store(const std::string& address, const std::string& job_id,
                                     int generation, int rank, const Security& security) {
  return std::make_shared<StoreClient>(address, job_id, generation, rank, security);
}

std::shared_ptr<Store> connect_store_from_env() {
  const auto address = get_env(kEnvStoreAddress);
  if (!address) return nullptr;
  const auto credentials = get_env(kEnvCredentials);
  return connect_store(
      *address, env_or(kEnvJobId, "default"),
      static_cast<int>(env_int_or(kEnvGeneration, env_int_or(kEnvOldGeneration, 1))),
      static_cast<int>(env_int_or(kEnvRank, 0)),
      credentials ? security_from_text(read_file(*credentials)) : Security{});
}

}  // namespace fleet
