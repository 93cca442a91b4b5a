#include "rendezvous/client.h"

#include "rendezvous/client_impl.h"

namespace fleet {

RendezvousClient::RendezvousClient(RendezvousClientOptions options, OnEvent on_event)
    : impl_(std::make_shared<Impl>(std::move(options), std::move(on_event))) {}

RendezvousClient::~RendezvousClient() { impl_->close(); }

void RendezvousClient::start(NodeInfo info) { impl_->start(std::move(info)); }

Assignment RendezvousClient::join(NodeInfo info) {
  impl_->start(std::move(info));
  return impl_->wait_for_outcome();
}

void RendezvousClient::report(RankExit exit) { impl_->report(std::move(exit)); }

void RendezvousClient::finish() {
  wire::NodeMessage message;
  message.mutable_finished();
  impl_->send(std::move(message));
}

void RendezvousClient::report_failure(const std::string& how) {
  wire::NodeMessage message;
  message.mutable_failure()->set_how(how);
  impl_->send(std::move(message));
}

void RendezvousClient::follow(const std::string& address, std::shared_ptr<JobHost> host) {
  impl_->follow(address, std::move(host));
}

void RendezvousClient::ready(int generation) {
  wire::NodeMessage message;
  message.mutable_ready()->set_generation(generation);
  impl_->send(std::move(message));
}

void RendezvousClient::report(RankStall stall) {
  wire::NodeMessage message;
  *message.mutable_stall() = std::move(stall);
  impl_->send(std::move(message));
}

void RendezvousClient::report(StepReport report) {
  wire::NodeMessage message;
  *message.mutable_steps() = std::move(report);
  impl_->send(std::move(message));
}

void RendezvousClient::send_stacks(Stacks stacks) {
  wire::NodeMessage message;
  *message.mutable_stacks() = std::move(stacks);
  impl_->send(std::move(message));
}

void RendezvousClient::request_stop(wire::StopRequest request) {
  impl_->request_stop(std::move(request));
}

void RendezvousClient::request_signal(int signal) {
  wire::NodeMessage message;
  message.mutable_signal()->set_signal(signal);
  impl_->send(std::move(message));
}

void RendezvousClient::request_stacks() {
  wire::NodeMessage message;
  message.mutable_stack_request();
  impl_->send(std::move(message));
}

void RendezvousClient::leave() { impl_->leave(); }

}  // namespace fleet
