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

void RendezvousClient::send(wire::NodeMessage message) { impl_->send(std::move(message)); }

void RendezvousClient::follow(const std::string& address, std::shared_ptr<JobHost> host) {
  impl_->follow(address, std::move(host));
}

void RendezvousClient::leave() { impl_->leave(); }

}  // namespace fleet
