// The gRPC service of the rendezvous: decodes, calls JobHost, encodes.
#include <grpcpp/grpcpp.h>

#include <memory>
#include <utility>

#include "proto/control.grpc.pb.h"
#include "rendezvous/job_host.h"
#include "transport/control_messages.h"
#include "transport/queued_writer.h"

namespace fleet {
namespace {

// The queue limit of a node that does not read; its session then ends. There may be thousands.
constexpr size_t kMaxUnsentOfNode = 4 << 20;

using Part = std::shared_ptr<const std::string>;

// Shares the bytes.
grpc::Slice slice_of(const Part& part) {
  const auto release = [](void* kept) { delete static_cast<Part*>(kept); };
  return {const_cast<char*>(part->data()), part->size(), release, new Part(part)};
}

using Reactor = grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>;

// A node's session over gRPC. Deletes itself when gRPC is done with it.
class GrpcNodeSession final : public NodeSession, public QueuedWriter<Reactor, grpc::ByteBuffer> {
 public:
  GrpcNodeSession(JobHost* host, grpc::CallbackServerContext* context)
      : QueuedWriter(kMaxUnsentOfNode), host_(host), context_(context) {}

  void begin() { StartRead(&in_); }
  void send(EncodedMessage message) override {
    std::vector<grpc::Slice> slices;
    for (const Part& part : message) slices.push_back(slice_of(part));
    write(grpc::ByteBuffer(slices.data(), slices.size()));
  }
  void end() override { close(); }
  void OnReadDone(bool ok) override {
    wire::NodeMessage message;
    if (!ok || !grpc::SerializationTraits<wire::NodeMessage>::Deserialize(&in_, &message).ok()) {
      return host_->on_stream_closed(this);
    }
    if (host_->on_message(this, std::move(message))) StartRead(&in_);
  }
  void OnDone() override {
    host_->on_session_done(this);
    delete this;
  }

 private:
  void on_last_written() override { Finish(grpc::Status::OK); }
  void on_overflow() override { context_->TryCancel(); }

  JobHost* const host_;
  grpc::CallbackServerContext* const context_;
  grpc::ByteBuffer in_;
};

void put(KvState::Answer answer, wire::StoreReply* reply) {
  if (answer.error) {
    *reply->mutable_failure() = to_wire(*answer.error);
  } else {
    reply->set_value(std::move(answer.value));
  }
}

grpc::ServerUnaryReactor* finish(grpc::CallbackServerContext* context) {
  auto* reactor = context->DefaultReactor();
  reactor->Finish(grpc::Status::OK);
  return reactor;
}

// A waiting Get costs this object but no thread.
class WaitingGet final : public grpc::ServerUnaryReactor {
 public:
  WaitingGet(JobHost* host, wire::StoreReply* reply) : host_(host), reply_(reply) {}

  void begin(const wire::GetRequest& request) {
    host_->get(request, &ticket_, [this](KvState::Answer answer) {
      put(std::move(answer), reply_);
      Finish(grpc::Status::OK);
    });
  }
  void OnCancel() override {
    if (host_->cancel(ticket_)) Finish(grpc::Status::CANCELLED);  // else answered, or about to be
  }
  void OnDone() override { delete this; }

 private:
  JobHost* const host_;
  wire::StoreReply* const reply_;
  KvState::Ticket ticket_ = 0;  // written under the host's lock
};

// The generated classes: sessions exchange bytes, the store's calls messages.
using RendezvousMethods =
    wire::Rendezvous::WithRawCallbackMethod_Session<wire::Rendezvous::WithCallbackMethod_Describe<
        wire::Rendezvous::WithCallbackMethod_Set<wire::Rendezvous::WithCallbackMethod_Get<
            wire::Rendezvous::WithCallbackMethod_Add<wire::Rendezvous::Service>>>>>;

class RendezvousService final : public RendezvousMethods {
 public:
  explicit RendezvousService(JobHost* host) : host_(host) {}

  Reactor* Session(grpc::CallbackServerContext* context) override {
    auto* session = new GrpcNodeSession(host_, context);
    if (host_->open(session)) session->begin();
    return session;
  }
  grpc::ServerUnaryReactor* Describe(grpc::CallbackServerContext* context,
                                     const wire::DescribeRequest*,
                                     wire::DescribeReply* reply) override {
    *reply = host_->describe();
    return finish(context);
  }
  grpc::ServerUnaryReactor* Set(grpc::CallbackServerContext* context,
                                const wire::SetRequest* request, wire::StoreReply* reply) override {
    if (const auto error = host_->set(*request)) *reply->mutable_failure() = to_wire(*error);
    return finish(context);
  }
  grpc::ServerUnaryReactor* Add(grpc::CallbackServerContext* context,
                                const wire::AddRequest* request, wire::StoreReply* reply) override {
    KvState::Answer answer = host_->add(*request);
    if (!answer.error) reply->set_sum(std::stoll(answer.value));
    put(std::move(answer), reply);
    return finish(context);
  }
  grpc::ServerUnaryReactor* Get(grpc::CallbackServerContext*, const wire::GetRequest* request,
                                wire::StoreReply* reply) override {
    auto* get = new WaitingGet(host_, reply);
    get->begin(*request);
    return get;
  }

 private:
  JobHost* const host_;
};

}  // namespace

std::unique_ptr<grpc::Service> make_rendezvous_service(JobHost* host) {
  return std::make_unique<RendezvousService>(host);
}

}  // namespace fleet
